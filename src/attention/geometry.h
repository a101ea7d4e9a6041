/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_GEOMETRY_H
#define LOCUS_ATTENTION_GEOMETRY_H

#include "attention/plan.h"

/* Choose the path, the extents of the tiles and the cut of the work. After lowering. `path` is
 * that of the config: "rows", "tiles", or NULL: by the shapes. */
void locus_choose_geometry(locus_plan *plan, const char *path);

#endif

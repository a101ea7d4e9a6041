/* SPDX-License-Identifier: Apache-2.0 */
/* Every operation, written against the vocabulary that was included before. */

#include <math.h>
#include <string.h>

#include "core/compiler.h"
#include "core/cpu.h"
#include "core/random.h"
#include "kernels/kernels.h"

_Static_assert(LOCUS_LANES % VL == 0 && LOCUS_PANEL % (GEMM_VECTORS * VL) == 0,
               "tiles and panels are whole numbers of vectors");

/* What the others build on. */
#include "kernels/exp.inc.c"
#include "kernels/tails.inc.c"

#include "kernels/lanes.inc.c"

#include "kernels/gemm.inc.c"

/* What ends of products and rows share. */
#include "kernels/activation.inc.c"

#include "kernels/activate.inc.c"
#include "kernels/cap.inc.c"
#include "kernels/columns.inc.c"
#include "kernels/depthwise.inc.c"
#include "kernels/dots.inc.c"
#include "kernels/drop.inc.c"
#include "kernels/half.inc.c"
#include "kernels/lookup.inc.c"
#include "kernels/norm.inc.c"
#include "kernels/places.inc.c"
#include "kernels/rows.inc.c"
#include "kernels/softmax.inc.c"
#include "kernels/softmax_rows.inc.c"
#include "kernels/table.inc.c"

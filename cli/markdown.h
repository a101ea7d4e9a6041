/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_MARKDOWN_H
#define CLI_MARKDOWN_H

#include <locus/locus.h>

/* docs/schemes.md on stdout; with `only`, the section of that scheme. */
void markdown_schemes(const locus_scheme_info *only);

#endif

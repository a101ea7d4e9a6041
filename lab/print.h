/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_PRINT_H
#define LOCUS_LAB_PRINT_H

/* Small files of a run as text under construction. */

#include "core/compiler.h"
#include "plot/text.h"

/* At most a line's worth: 511 bytes. */
void lab_print(plot_text *text, const char *format, ...) LOCUS_PRINTF(2, 3);

/* A JSON string with its quotes. */
void lab_print_string(plot_text *text, const char *string);

/* Write it as FOLDER/NAME and free it. */
locus_status lab_print_save(plot_text *text, const char *folder, const char *name,
                            locus_error *error);

#endif

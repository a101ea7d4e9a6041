/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/print.h"
#include "core/print.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/error.h"
#include "lab/files.h"

void lab_print(plot_text *text, const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    locus_vprint(line, sizeof line, format, arguments);
    va_end(arguments);
    plot_puts(text, line);
}

void lab_print_string(plot_text *text, const char *string)
{
    plot_char(text, '"');
    for (; *string != '\0'; string++) {
        const unsigned char byte = (unsigned char)*string;
        if (byte < 0x20)
            lab_print(text, "\\u%04x", byte);
        else if (byte == '"' || byte == '\\')
            lab_print(text, "\\%c", byte);
        else
            plot_char(text, *string);
    }
    plot_char(text, '"');
}

locus_status lab_print_save(plot_text *text, const char *folder, const char *name,
                            locus_error *error)
{
    const locus_status status = text->failed
                                    ? locus_fail(error, LOCUS_ERR_MEMORY, "no memory for %s", name)
                                    : lab_file_write(folder, name, text->to, error);
    locus_text_free(text->to);
    return status;
}

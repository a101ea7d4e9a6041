/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "page.h"
#include "terms.h"
#include "text.h"

/* "+1.3 MB", "0" */
static char *bytes_text(char *buffer, size_t capacity, double bytes)
{
    const double size = fabs(bytes);
    const char *sign = bytes > 0 ? "+" : bytes < 0 ? "&minus;" : "";
    if (size < 500)
        snprintf(buffer, capacity, "%s%.0f", sign, size);
    else if (size < 999500)
        snprintf(buffer, capacity, "%s%.0f KB", sign, size / 1e3);
    else
        snprintf(buffer, capacity, "%s%.1f MB", sign, size / 1e6);
    return buffer;
}

static void print_head(FILE *out, const char *label, int all)
{
    fprintf(out,
            "<div class=\"scroll%s\" tabindex=\"0\" role=\"group\" aria-label=\"%s\">\n<table>\n"
            "<thead><tr><th scope=\"col\">scheme</th>",
            all ? " broad" : "", label);
    for (int i = 1; all && i <= TERM_COUNT; i++)
        fprintf(out, "<th scope=\"col\" class=\"term\"><abbr title=\"%s\">%d</abbr></th>",
                locus_term_name(1u << (i - 1)), i);
    fputs("<th scope=\"col\">forward</th><th scope=\"col\">with<br>backward</th>"
          "<th scope=\"col\">extra<br>memory</th><th scope=\"col\">learned<br>numbers</th>"
          "<th scope=\"col\">error,<br>output</th><th scope=\"col\">error,<br>gradients</th>",
          out);
    fputs("</tr></thead>\n<tbody>\n", out);
}

static void print_row(FILE *out, const demo *d, const demo_outcome *o, int all)
{
    char learned[32], memory[32];
    const char *judged = demo_exact(d, o) ? "good" : "bad";
    const demo_errors worst = demo_worst(o);
    fprintf(out, "<tr><th scope=\"row\">%s%s</th>", o->scheme->name,
            o->level == LOCUS_LAYER ? " <small>(layer)</small>" : "");
    for (size_t i = 0; all && i < TERM_COUNT; i++)
        fprintf(out, "<td class=\"term\">%s</td>",
                (o->scheme->terms >> i & 1) != 0
                    ? "<span aria-label=\"yes\" role=\"img\">&#9679;</span>"
                    : "");
    if (demo_is_plain(o))
        fputs("<td>plain</td><td>plain</td><td>plain</td>", out);
    else
        fprintf(out, "<td>%.2f&nbsp;&times;</td><td>%.2f&nbsp;&times;</td><td>%s</td>",
                o->pace.forward_ratio, o->pace.both_ratio,
                bytes_text(memory, sizeof memory, (double)o->bytes - (double)o->plain_bytes));
    fprintf(out, "<td>%s</td>", text_thousands(learned, sizeof learned, (uint64_t)o->parameters));
    fprintf(out, "<td class=\"%s\">%.1e</td><td class=\"%s\">%.1e</td>", judged, worst.outputs,
            judged, worst.gradients);
    fputs("</tr>\n", out);
}

void page_print_costs(FILE *out, const demo *d, const char *label, const char *const *schemes)
{
    print_head(out, label, schemes == NULL);
    for (size_t i = 0; schemes == NULL && i < d->count; i++) print_row(out, d, &d->outcomes[i], 1);
    for (; schemes != NULL && *schemes != NULL; schemes++) {
        const demo_outcome *o = demo_find(d, *schemes);
        if (o != NULL) print_row(out, d, o, 0);
    }
    fputs("</tbody>\n</table>\n</div>\n", out);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* locus bench --svg: horizontal bars, % of the FMA peak on the left, time as a multiple of
 * plain attention on the right. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "bench/measure.h"
#include "cli/machine.h"
#include "cli/text.h"

enum {
    LABELS = 500, /* width of the names           */
    PANEL = 300,  /* of the bars of one panel     */
    GAP = 90,     /* for the figure behind a bar  */
    LINE = 20,    /* height of a line             */
    TOP = 74,
};

static void print_text(FILE *out, int x, int y, const char *class, const char *text)
{
    fprintf(out, "<text x=\"%d\" y=\"%d\" class=\"%s\">", x, y, class);
    for (; *text != '\0'; text++) {
        if (*text == '<')
            fputs("&lt;", out);
        else if (*text == '&')
            fputs("&amp;", out);
        else
            fputc(*text, out);
    }
    fputs("</text>\n", out);
}

static void print_bar(FILE *out, int x, int y, double value, double whole, const char *class,
                      const char *label)
{
    const double share = isnan(value) ? 0 : value > whole ? 1 : value / whole;
    const int width = (int)(share * PANEL);
    fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" class=\"%s\"/>\n", x, y + 3,
            width, LINE - 6, class);
    print_text(out, x + width + 6, y + 14, "figure", label);
}

static double largest_ratio(const bench *b)
{
    double largest = 1;
    for (size_t i = 0; i < b->row_count; i++) {
        bench_figures f;
        bench_figure(&f, b, &b->rows[i]);
        if (b->rows[i].shown && f.over_plain > largest) largest = f.over_plain;
    }
    return largest;
}

static void print_row(FILE *out, const bench *b, const bench_row *row, int y, double largest)
{
    char name[48], size[64], label[160], figure[32] = "";
    const char *class = row->direction == BENCH_FORWARD ? "forward" : "backward";
    const bench_extents e = bench_row_extents(row);
    bench_figures f;
    bench_figure(&f, b, row);
    snprintf(label, sizeof label, "%s, %s, %s, %s x%u", bench_row_name(name, sizeof name, row),
             bench_direction_name(row->direction), bench_extents_text(size, sizeof size, &e),
             row->isa, (unsigned)row->threads);
    print_text(out, LABELS - 8, y + 14, "label", label);
    snprintf(figure, sizeof figure, "%.0f %%", f.percent);
    print_bar(out, LABELS, y, f.percent, 100, class, figure);
    if (row->plain == row)
        snprintf(figure, sizeof figure, "plain");
    else if (!isnan(f.over_plain))
        snprintf(figure, sizeof figure, "%.2f", f.over_plain);
    print_bar(out, LABELS + PANEL + GAP, y, f.over_plain, largest, class,
              isnan(f.over_plain) ? "" : figure);
}

static void print_frame(FILE *out, int height)
{
    const int width = LABELS + 2 * (PANEL + GAP);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\">\n",
            width, height, width, height);
    fputs("<style>text{font-family:sans-serif;font-size:13px;fill:#222}"
          ".title{font-size:16px;font-weight:bold}.label{text-anchor:end}"
          ".small{font-size:12px;fill:#555}.forward{fill:#2b6cb0}.backward{fill:#c05621}"
          ".mark{stroke:#bbb}</style>\n",
          out);
    fprintf(out, "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", width, height);
}

static void print_mark(FILE *out, double x, int height)
{
    fprintf(out, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" class=\"mark\"/>\n", x, TOP - 6,
            x, height - 8);
}

static void print_chart(FILE *out, const bench *b)
{
    char machine[256];
    int y = TOP;
    size_t shown = 0;
    for (size_t i = 0; i < b->row_count; i++) shown += b->rows[i].shown ? 1 : 0;
    const int height = TOP + (int)shown * LINE + 12;
    const double largest = largest_ratio(b);
    print_frame(out, height);
    print_text(out, 12, 24, "title", "locus bench");
    print_text(out, 12, 44, "small", machine_text(machine, sizeof machine));
    print_text(out, LABELS, 64, "small", "% of the FMA peak of this run");
    print_text(out, LABELS + PANEL + GAP, 64, "small", "time / plain attention");
    print_mark(out, LABELS + PANEL, height);
    print_mark(out, LABELS + PANEL + GAP + PANEL / largest, height);
    for (size_t i = 0; i < b->row_count; i++) {
        if (!b->rows[i].shown) continue;
        print_row(out, b, &b->rows[i], y, largest);
        y += LINE;
    }
    fputs("</svg>\n", out);
}

int bench_write_svg(const bench *b, const char *path)
{
    cli_output output;
    cli_output_begin(&output, path);
    if (output.file != NULL) print_chart(output.file, b);
    return cli_output_finish(&output, "bench");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* locus bench: the table as text, as Markdown, as JSON. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/measure.h"
#include "cli/json.h"
#include "cli/machine.h"
#include "cli/text.h"

/* ---- the machine ---- */

static void print_blas(const bench *b)
{
    if (!b->request.baseline || b->request.views[BENCH_DECODE]) return;
    if (!b->has_blas) {
        puts("OpenBLAS: not found, so no baselines");
        return;
    }
    printf("%s, core %s, one thread", b->blas.version, b->blas.core);
    if (strcmp(b->blas.core, b->blas.chosen) != 0)
        printf(" (OPENBLAS_CORETYPE set: it would have chosen %s, not knowing this CPU)",
               b->blas.chosen);
    putchar('\n');
}

static void print_limits(const bench *b)
{
    for (size_t i = 0; i < b->peak_count; i++) {
        const bench_limit *p = &b->peaks[i];
        printf("FMA peak, %s, %u %s: %.1f GF/s (best of %zu samples, lowest %.1f)\n", p->loops->isa,
               (unsigned)p->threads, p->threads == 1 ? "thread" : "threads", p->best, p->samples,
               p->lowest);
    }
    printf("read, one thread: %.1f GB/s from L2 (lowest %.1f), %.1f GB/s from memory (lowest "
           "%.1f)\n",
           b->near_read.best, b->near_read.lowest, b->far_read.best, b->far_read.lowest);
}

static void print_notes(const bench *b)
{
    printf("%u %s over all lines; ms: the median of each round's fastest call, and the range\n",
           (unsigned)b->rounds, b->rounds == 1 ? "round" : "rounds");
    puts("baseline x: its time / ours, the faster one where there are two; above 1 ours is faster");
    if (bench_compares_threads(&b->request))
        puts("all on the wall; x 1 thread: the time of one thread / this one");
}

/* ---- cells ---- */

enum { COLUMNS = 15, SPEEDUP = 12, CELL = 48 };

static const char *const heads[COLUMNS] = {
    "scheme", "direction", "n",      "d",       "heads",      "isa",        "threads", "ms",
    "range",  "GF/s",      "% peak", "x plain", "x 1 thread", "baseline x", "max err",
};

/* A column of dashes is none. */
static int has_column(const bench *b, size_t column)
{
    return column != SPEEDUP || bench_compares_threads(&b->request);
}

/* The names are set left, numbers right. */
static int is_left(size_t column) { return column < 2 || column == 5; }

static void ratio_cell(char *cell, double ratio)
{
    if (isnan(ratio))
        snprintf(cell, CELL, "-");
    else
        snprintf(cell, CELL, "%.2f", ratio);
}

/* Three digits that count. */
static char *time_cell(char *cell, double ms)
{
    snprintf(cell, CELL, "%.*f", ms < 1 ? 3 : ms < 10 ? 2 : ms < 100 ? 1 : 0, ms);
    return cell;
}

static void fill_cells(char cells[COLUMNS][CELL], const bench *b, const bench_row *row)
{
    char low[CELL], high[CELL];
    const bench_extents e = bench_row_extents(row);
    bench_figures f;
    bench_figure(&f, b, row);
    bench_row_name(cells[0], CELL, row);
    snprintf(cells[1], CELL, "%s", bench_direction_name(row->direction));
    snprintf(cells[2], CELL, "%" PRId64, e.n);
    if (e.outputs > 0)
        snprintf(cells[3], CELL, "%" PRId64 " to %" PRId64, e.d, e.outputs);
    else
        snprintf(cells[3], CELL, "%" PRId64, e.d);
    snprintf(cells[4], CELL, "%" PRId64, e.batch * e.heads);
    snprintf(cells[5], CELL, "%s", row->isa);
    snprintf(cells[6], CELL, "%u", (unsigned)row->threads);
    time_cell(cells[7], f.ms_median);
    snprintf(cells[8], CELL, "%.20s-%.20s", time_cell(low, f.ms_min), time_cell(high, f.ms_max));
    snprintf(cells[9], CELL, "%.1f", f.gflops);
    snprintf(cells[10], CELL, "%.1f", f.percent);
    if (row->plain == row)
        snprintf(cells[11], CELL, "plain");
    else
        ratio_cell(cells[11], f.over_plain);
    ratio_cell(cells[SPEEDUP], f.speedup);
    ratio_cell(cells[13], f.baseline_over_ours);
    snprintf(cells[14], CELL, "%.1e%s", row->max_err, f.exact ? "" : " (!)");
}

/* ---- text and Markdown ---- */

static void measure_widths(const bench *b, int *widths)
{
    char cells[COLUMNS][CELL];
    for (size_t c = 0; c < COLUMNS; c++) widths[c] = (int)strlen(heads[c]);
    for (size_t i = 0; i < b->row_count; i++) {
        if (!b->rows[i].shown) continue;
        fill_cells(cells, b, &b->rows[i]);
        for (size_t c = 0; c < COLUMNS; c++)
            if ((int)strlen(cells[c]) > widths[c]) widths[c] = (int)strlen(cells[c]);
    }
}

static void print_line(const bench *b, const int *widths, const char *const *cells,
                       const char *between)
{
    for (size_t c = 0; c < COLUMNS; c++) {
        if (!has_column(b, c)) continue;
        printf("%s%*s", c > 0 ? between : "", is_left(c) ? -widths[c] : widths[c], cells[c]);
    }
}

static void print_rows(const bench *b, const int *widths, int markdown)
{
    for (size_t i = 0; i < b->row_count; i++) {
        char cells[COLUMNS][CELL];
        const char *pointers[COLUMNS];
        if (!b->rows[i].shown) continue;
        fill_cells(cells, b, &b->rows[i]);
        for (size_t c = 0; c < COLUMNS; c++) pointers[c] = cells[c];
        if (markdown) printf("| ");
        print_line(b, widths, pointers, markdown ? " | " : "  ");
        puts(markdown ? " |" : "");
    }
}

static void print_head(const bench *b)
{
    char machine[256];
    text_print(stdout, machine_text(machine, sizeof machine));
    putchar('\n');
    print_blas(b);
    print_limits(b);
    print_notes(b);
}

void bench_print_text(const bench *b)
{
    int widths[COLUMNS];
    print_head(b);
    putchar('\n');
    measure_widths(b, widths);
    printf("%s", text_bold());
    print_line(b, widths, heads, "  ");
    printf("%s\n", text_plain());
    print_rows(b, widths, 0);
}

void bench_print_markdown(const bench *b)
{
    int widths[COLUMNS];
    puts("```");
    print_head(b);
    puts("```\n");
    measure_widths(b, widths);
    printf("| ");
    print_line(b, widths, heads, " | ");
    puts(" |");
    for (size_t c = 0; c < COLUMNS; c++)
        if (has_column(b, c)) printf(is_left(c) ? "|---" : "|--:");
    puts("|");
    print_rows(b, widths, 1);
}

/* ---- JSON ---- */

/* Five digits are more than a clock gives. */
static void json_figure(json *j, const char *key, double value)
{
    char buffer[40];
    if (isnan(value)) {
        json_null(j, key);
        return;
    }
    snprintf(buffer, sizeof buffer, "%.5g", value);
    json_real(j, key, strtod(buffer, NULL));
}

static void json_row(json *j, const bench *b, const bench_row *row)
{
    char name[48];
    const bench_extents e = bench_row_extents(row);
    bench_figures f;
    bench_figure(&f, b, row);
    json_object(j, NULL);
    json_text(j, "scheme", bench_row_name(name, sizeof name, row));
    json_text(j, "direction", bench_direction_name(row->direction));
    json_text(j, "isa", row->isa);
    json_integer(j, "threads", row->threads);
    json_integer(j, "batch", e.batch);
    json_integer(j, "heads", e.heads);
    json_integer(j, "n", e.n);
    json_integer(j, "d", e.d);
    if (e.outputs > 0) json_integer(j, "outputs", e.outputs);
    json_real(j, "dropout", row->config.dropout);
    json_figure(j, "ms_median", f.ms_median);
    json_figure(j, "ms_min", f.ms_min);
    json_figure(j, "useful_gflops", f.gflops);
    json_figure(j, "pct_fma_peak", f.percent);
    json_figure(j, "time_over_plain", f.over_plain);
    json_figure(j, "speedup", f.speedup);
    json_text(j, "baseline", f.baseline);
    json_figure(j, "baseline_over_ours", f.baseline_over_ours);
    json_figure(j, "max_err", row->max_err);
    json_size(j, "extra_bytes", f.extra_bytes);
    json_end(j);
}

void bench_print_json(const bench *b)
{
    json j = {.out = stdout};
    json_array(&j, NULL);
    for (size_t i = 0; i < b->row_count; i++)
        if (b->rows[i].shown) json_row(&j, b, &b->rows[i]);
    json_end(&j);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/report/sheet.h"
#include "core/print.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "io/system.h"
#include "io/tensorfile.h"

enum { LINE_BYTES = 4096, WIDE = 960, SOLO = 620, NARROW = 340 };

void sheet_print(lab_sheet *sheet, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    locus_vprint(line, sizeof line, format, arguments);
    va_end(arguments);
    plot_puts(&sheet->html, line);
}

void sheet_escape(lab_sheet *sheet, const char *text) { plot_escaped(&sheet->html, text); }

/* What the report adds to the style of the demo page. */
static const char *const own_style[] = {
    ".g{display:inline-block;width:1em;margin-left:.3em;text-align:center;color:var(--faint)}",
    ".g.good{color:var(--good)}",
    ".aside{color:var(--faint)}",
    "dl.answer{display:grid;grid-template-columns:max-content 1fr;gap:.35rem 1.25rem;margin:1.5rem 0}",
    "dl.answer dt{color:var(--faint)}",
    "dl.answer dd{margin:0}",
    "dl.answer b{font-weight:600}",
    "@media (min-width:62.01rem){.wide.solo{width:38.75rem;margin:0 auto}}",
    "#answer th,#answer td{padding-left:.3rem;padding-right:.3rem}",
    "#answer thead th{white-space:normal;min-width:4.4rem}",
    "#answer thead th:first-child{min-width:0}",
    "td.text,th.text{text-align:left;white-space:normal}",
    "table.words td,table.words th{vertical-align:top;white-space:normal;text-align:left}",
    "table.words td:first-child,table.words th:first-child{white-space:nowrap}",
    ".verdict{white-space:nowrap;font-weight:600}",
    ".verdict.open,.verdict.none{color:var(--faint);font-weight:500}",
    "details{margin:0 0 1rem}",
    "summary{cursor:pointer;color:var(--link);padding:.25rem 0}",
    ".note{border-left:3px solid var(--line);padding-left:1rem;color:var(--faint)}",
    "figcaption a{white-space:nowrap}",
    "code{overflow-wrap:anywhere}",
    "p code,li code,dd code,td code{background:var(--soft);padding:.1em .3em;border-radius:.25rem;"
    "font-size:.9em}",
    "@media (max-width:40rem){dl.answer{grid-template-columns:1fr;gap:0}dl.answer "
    "dd{margin-bottom:.6rem}}",
    NULL,
};

void sheet_head(lab_sheet *sheet)
{
    const char *const *style = sheet->options != NULL ? sheet->options->style : NULL;
    /* The policy makes a promise of "no network, no script" that a browser holds us to. */
    plot_puts(&sheet->html,
              "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
              "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
              "style-src 'unsafe-inline'; img-src data:\">\n"
              "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
              "<meta name=\"color-scheme\" content=\"light dark\">\n"
              "<meta name=\"description\" content=\"Position schemes trained from scratch on the "
              "same weights, batches and budget, and compared.\">\n"
              "<link rel=\"icon\" href=\"data:,\">\n"
              "<title>Which position embedding should I use?</title>\n<style>\n");
    for (; style != NULL && *style != NULL; style++) sheet_print(sheet, "%s\n", *style);
    for (style = own_style; *style != NULL; style++) sheet_print(sheet, "%s\n", *style);
    plot_puts(&sheet->html, "</style>\n</head>\n<body>\n"
                            "<a class=\"skip\" href=\"#main\">Skip to the answer</a>\n");
}

void sheet_foot(lab_sheet *sheet)
{
    plot_puts(&sheet->html,
              "</main>\n<footer>\n<p>Written by <code>locus lab report</code>. All numbers: "
              "<a href=\"results.csv\">results.csv</a>, <a href=\"scoreboard.json\">"
              "scoreboard.json</a>, and each figure beside it as SVG and CSV. Apache License "
              "2.0.</p>\n</footer>\n</body>\n</html>\n");
}

void sheet_section(lab_sheet *sheet, const char *id, const char *title)
{
    sheet_print(sheet,
                "<section id=\"%s\" aria-labelledby=\"%s-heading\">\n<h2 "
                "id=\"%s-heading\">%s</h2>\n",
                id, id, id, title);
    sheet->sections++;
}

void sheet_section_end(lab_sheet *sheet) { plot_puts(&sheet->html, "</section>\n"); }

void sheet_details(lab_sheet *sheet, const char *title)
{
    sheet_print(sheet, "<details aria-label=\"%s\"><summary>%s</summary>\n", title, title);
}

void sheet_details_end(lab_sheet *sheet) { plot_puts(&sheet->html, "</details>\n"); }

/* ---- figures ---- */

static void keep(lab_sheet *sheet, locus_status status)
{
    if (sheet->status == LOCUS_OK) sheet->status = status;
}

/* Renamed when it is whole, but not synced: a figure is drawn again in no time. */
static locus_status put_file(const char *folder, const char *name, const locus_text *text,
                             locus_error *error)
{
    char path[LAB_PATH], part[LAB_PATH];
    if (!lab_path(path, folder, name) ||
        snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "the name of the folder is too long");
    remove(part); /* and a new file: one that a link names stays as it is */
    FILE *file = fopen(part, "wbx");
    int good = file != NULL && fwrite(text->data, 1, text->length, file) == text->length;
    if (file != NULL) good &= fclose(file) == 0;
    if (good && rename(part, path) == 0) return LOCUS_OK;
    const int code = errno;
    remove(part);
    return locus_file_fail_in(error, locus_system_fail(error, "cannot write", code), path);
}

/* A panel alone does not grow to the width of several. */
static uint32_t width_of(const locus_figure *figure)
{
    return figure->panel_count == 1 ? SOLO : WIDE;
}

static void write_figure(lab_sheet *sheet, const char *name, const char *end, locus_format format,
                         const locus_figure *figure)
{
    char folder[LAB_PATH], file[LAB_NAME];
    const locus_render render = {.size = sizeof render, .width = width_of(figure)};
    locus_text out = {0};
    if (sheet->status != LOCUS_OK) return;
    if (!lab_path(folder, sheet->results->folder, "figures")) {
        keep(sheet, locus_fail(sheet->error, LOCUS_ERR_ARGUMENT, "the folder's name is too long"));
        return;
    }
    snprintf(file, sizeof file, "%s.%s", name, end);
    keep(sheet, lab_folder_make(folder, sheet->error));
    if (sheet->status == LOCUS_OK)
        keep(sheet, locus_figure_render(figure, format, &render, &out, sheet->error));
    if (sheet->status == LOCUS_OK) keep(sheet, put_file(folder, file, &out, sheet->error));
    locus_text_free(&out);
}

static void put_drawing(lab_sheet *sheet, const char *name, const locus_figure *figure, int wide)
{
    char prefix[LAB_NAME];
    snprintf(prefix, sizeof prefix, "%s-%s", wide ? "wide" : "narrow", name);
    const locus_render render = {.size = sizeof render,
                                 .width = wide ? width_of(figure) : NARROW,
                                 .fragment = 1,
                                 .prefix = prefix};
    if (sheet->status != LOCUS_OK) return;
    sheet_print(sheet, "<div class=\"%s\">\n",
                !wide                      ? "narrow"
                : figure->panel_count == 1 ? "wide solo"
                                           : "wide");
    keep(sheet,
         locus_figure_render(figure, LOCUS_FORMAT_SVG, &render, sheet->html.to, sheet->error));
    plot_puts(&sheet->html, "</div>\n");
}

void sheet_figure(lab_sheet *sheet, const char *name, const locus_figure *figure,
                  const char *caption)
{
    if (sheet->status != LOCUS_OK || figure->panel_count == 0) return;
    write_figure(sheet, name, "svg", LOCUS_FORMAT_SVG, figure);
    write_figure(sheet, name, "csv", LOCUS_FORMAT_CSV, figure);
    plot_puts(&sheet->html, "<figure>\n");
    put_drawing(sheet, name, figure, 1);
    put_drawing(sheet, name, figure, 0);
    sheet_print(sheet,
                "<figcaption>%s <a href=\"figures/%s.svg\" aria-label=\"%s as SVG\">SVG</a> "
                "<a href=\"figures/%s.csv\" aria-label=\"%s as CSV\">CSV</a></figcaption>\n"
                "</figure>\n",
                caption, name, name, name, name);
    sheet->figures++;
}

void sheet_chart(lab_sheet *sheet, const char *name, lab_chart *chart, const char *caption)
{
    if (chart->failed)
        keep(sheet, locus_fail(sheet->error, LOCUS_ERR_MEMORY, "no memory for a figure"));
    sheet_figure(sheet, name, &chart->figure, caption);
    chart_free(chart);
}

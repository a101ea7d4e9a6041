/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "plot.h"
#include "text.h"

/* What the ending of a file's name asks for. */
typedef enum ending { END_SVG, END_PNG, END_CSV, END_JSON, END_TEXT, END_UNKNOWN } ending;

static ending ending_of(const char *path)
{
    static const char *const endings[] = {".svg", ".png", ".csv", ".json", ".txt"};
    const char *dot = strrchr(path, '.');
    for (int i = 0; dot != NULL && i < END_UNKNOWN; i++)
        if (strcasecmp(dot, endings[i]) == 0) return (ending)i;
    return END_UNKNOWN;
}

static uint32_t terminal_columns(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) return size.ws_col;
    return 80;
}

static locus_theme theme_of(const plot_values *values)
{
    if (values->theme == NULL || strcmp(values->theme, "auto") == 0) return LOCUS_THEME_AUTO;
    return strcmp(values->theme, "dark") == 0 ? LOCUS_THEME_DARK : LOCUS_THEME_LIGHT;
}

static int write_letters(const plot_values *v, const locus_figure *figure)
{
    /* Dark is what most terminals are. */
    const locus_theme theme = theme_of(v);
    const locus_render render = {
        .size = sizeof render,
        .theme = theme == LOCUS_THEME_AUTO ? LOCUS_THEME_DARK : theme,
        .width = terminal_columns(),
        .plain = text_bold()[0] == '\0' || v->output != NULL,
    };
    return cli_write_figure("plot", figure, LOCUS_FORMAT_TERMINAL, &render, v->output);
}

int plot_write(const plot_values *v, const locus_figure *figure)
{
    const locus_render render = {.size = sizeof render, .theme = theme_of(v), .width = v->width};
    char quoted[160];
    if (v->csv) return cli_write_figure("plot", figure, LOCUS_FORMAT_CSV, NULL, v->output);
    if (v->json) return cli_write_figure("plot", figure, LOCUS_FORMAT_JSON, NULL, v->output);
    if (v->output == NULL) return write_letters(v, figure);
    switch (ending_of(v->output)) {
    case END_SVG: return cli_write_figure("plot", figure, LOCUS_FORMAT_SVG, &render, v->output);
    case END_PNG: return plot_write_png(figure, &render, v->output);
    case END_CSV: return cli_write_figure("plot", figure, LOCUS_FORMAT_CSV, NULL, v->output);
    case END_JSON: return cli_write_figure("plot", figure, LOCUS_FORMAT_JSON, NULL, v->output);
    case END_TEXT: return write_letters(v, figure);
    case END_UNKNOWN: break;
    }
    return cli_complain("plot", CLI_USAGE,
                        "--output: found \"%s\", expected a name that ends in .svg, .png, .csv, "
                        ".json or .txt",
                        text_quote(quoted, sizeof quoted, v->output));
}

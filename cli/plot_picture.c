/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "plot.h"

static void *keep(picture *p, void *block)
{
    if (p->block_count == p->block_room) {
        const size_t room = 2 * p->block_room + 32;
        void **blocks = realloc(p->blocks, room * sizeof *blocks);
        if (blocks == NULL) {
            free(block);
            block = NULL;
        } else {
            p->blocks = blocks;
            p->block_room = room;
        }
    }
    if (block == NULL)
        p->failed = 1;
    else
        p->blocks[p->block_count++] = block;
    return block;
}

double *picture_numbers(picture *p, size_t count)
{
    return keep(p, calloc(count > 0 ? count : 1, sizeof(double)));
}

const char *picture_text(picture *p, const char *format, ...)
{
    va_list arguments;
    char *text = keep(p, malloc(PLOT_TEXT));
    if (text == NULL) return "";
    va_start(arguments, format);
    vsnprintf(text, PLOT_TEXT, format, arguments);
    va_end(arguments);
    return text;
}

const char *const *picture_names(picture *p, const token_list *tokens)
{
    if (tokens->count == 0) return NULL;
    const char **names = keep(p, malloc(tokens->count * sizeof *names));
    for (size_t i = 0; names != NULL && i < tokens->count; i++)
        names[i] = picture_text(p, "%s", tokens->names[i]);
    return names;
}

void picture_free(picture *p)
{
    for (size_t i = 0; i < p->block_count; i++) free(p->blocks[i]);
    free(p->blocks);
    memset(p, 0, sizeof *p);
}

locus_panel *picture_panel(picture *p, locus_panel_kind kind, const char *title)
{
    if (p->panel_count == PLOT_PANELS) {
        p->failed = 1;
        p->panel_count--;
    }
    locus_panel *panel = &p->panels[p->panel_count++];
    *panel = (locus_panel){.kind = kind, .title = title};
    return panel;
}

locus_panel *picture_map(picture *p, const char *title, const double *values, int64_t queries,
                         int64_t keys, int64_t offset, const char *const *names)
{
    locus_panel *panel = picture_panel(p, LOCUS_PANEL_HEATMAP, title);
    panel->values = values;
    panel->rows = (size_t)queries;
    panel->columns = (size_t)keys;
    panel->y = (locus_axis){.label = "query m", .names = names, .first = (double)offset};
    panel->x = (locus_axis){.label = "key n", .names = names};
    p->pairs = 1;
    return panel;
}

void picture_curve(picture *p, locus_panel *panel, const char *name, const double *x,
                   const double *y, size_t count, int steps)
{
    if (p->series_count == PLOT_SERIES) {
        p->failed = 1;
        return;
    }
    if (panel->series == NULL) panel->series = &p->series[p->series_count];
    p->series[p->series_count++] =
        (locus_series){.name = name, .x = x, .y = y, .count = count, .steps = steps ? 1 : 0};
    panel->series_count++;
}

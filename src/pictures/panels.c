/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "core/print.h"
#include "pictures/pictures.h"

/* Zeroed memory that is freed with the picture. */
static void *keep(locus_picture *p, size_t count, size_t bytes)
{
    if (p->block_count == p->block_room) {
        const size_t room = 2 * p->block_room + 32;
        void **blocks = locus_allocate(p->allocator, room, sizeof *blocks);
        if (blocks == NULL) {
            p->out_of_memory = 1;
            return NULL;
        }
        if (p->block_count > 0) memcpy(blocks, p->blocks, p->block_count * sizeof *blocks);
        locus_release(p->allocator, p->blocks);
        p->blocks = blocks;
        p->block_room = room;
    }
    void *block = locus_allocate(p->allocator, count, bytes);
    if (block == NULL)
        p->out_of_memory = 1;
    else
        p->blocks[p->block_count++] = block;
    return block;
}

double *picture_numbers(locus_picture *p, size_t count) { return keep(p, count, sizeof(double)); }

const char *picture_text(locus_picture *p, const char *format, ...)
{
    va_list arguments;
    char *text = keep(p, 1, PICTURE_TEXT);
    if (text == NULL) return "";
    va_start(arguments, format);
    locus_vprint(text, PICTURE_TEXT, format, arguments);
    va_end(arguments);
    return text;
}

const char *const *picture_names(locus_picture *p, const picture_call *call)
{
    if (call->names == NULL) return NULL;
    const char **names = keep(p, call->name_count, sizeof *names);
    for (size_t i = 0; names != NULL && i < call->name_count; i++)
        names[i] = picture_text(p, "%s", call->names[i]);
    return names;
}

int picture_failed(const locus_picture *p) { return p->out_of_memory || p->too_much; }

void picture_let_go(locus_picture *p)
{
    for (size_t i = 0; i < p->block_count; i++) locus_release(p->allocator, p->blocks[i]);
    locus_release(p->allocator, p->blocks);
}

locus_panel *picture_panel(locus_picture *p, locus_panel_kind kind, const char *title)
{
    if (p->panel_count == PICTURE_PANELS) {
        p->too_much = 1;
        p->panel_count--;
    }
    locus_panel *panel = &p->panels[p->panel_count++];
    *panel = (locus_panel){.size = sizeof *panel, .kind = kind, .title = title};
    return panel;
}

locus_panel *picture_map(locus_picture *p, const char *title, const double *values, int64_t queries,
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

void picture_curve(locus_picture *p, locus_panel *panel, const char *name, const double *x,
                   const double *y, size_t count, int steps)
{
    if (p->series_count == PICTURE_SERIES) {
        p->too_much = 1;
        return;
    }
    if (panel->series == NULL) panel->series = &p->series[p->series_count];
    p->series[p->series_count++] = (locus_series){.size = sizeof(locus_series),
                                                  .steps = steps ? 1 : 0,
                                                  .name = name,
                                                  .x = x,
                                                  .y = y,
                                                  .count = count};
    panel->series_count++;
}

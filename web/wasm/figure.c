/* SPDX-License-Identifier: Apache-2.0 */
/* What the reader takes along: the numbers on the screen as a figure, the call as a case file. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <locus/plot.h>

#include "call.h"
#include "exports.h"
#include "system.h"
#include "text.h"

enum { PANELS = CALL_TERMS + 2 };

/* Terms and score share `limit`, so that their colours can be compared; weights have a scale of their own. */
static locus_panel map_panel(const page_call_state *call, const char *title, const double *values,
                             double limit)
{
    const locus_axis axis = {.names = call->tokens};
    locus_panel panel = {.size = sizeof panel,
                         .kind = LOCUS_PANEL_HEATMAP,
                         .title = title,
                         .values = values,
                         .rows = call->token_count,
                         .columns = call->token_count,
                         .low = -limit,
                         .high = limit,
                         .x = axis,
                         .y = axis};
    panel.x.label = "key n";
    panel.y.label = "query m";
    return panel;
}

/* The largest magnitude among the terms and scores of the pairs that are seen. */
static double largest(const page_call_state *call)
{
    const size_t pairs = call->token_count * call->token_count;
    double most = 0.0;
    for (size_t i = 0; i < (call->info.terms + 1) * pairs; i++)
        if (call->visible[i % pairs]) most = fmax(most, fabs(call->numbers[i]));
    return most;
}

/* Hidden pairs are NaN in a figure. */
static double *shown(const page_call_state *call, const double *values)
{
    const size_t pairs = call->token_count * call->token_count;
    double *copy = malloc(pairs * sizeof *copy);
    for (size_t i = 0; copy != NULL && i < pairs; i++) copy[i] = call->visible[i] ? values[i] : NAN;
    return copy;
}

static locus_status render(const page_call_state *call, const locus_panel *panels, size_t count,
                           uint32_t format, locus_text *out, locus_error *error)
{
    char caption[240], whence[128];
    if (call->trained != NULL)
        snprintf(whence, sizeof whence,
                 "The first layer of a model with the scheme %s, trained on novels", call->trained);
    else
        snprintf(whence, sizeof whence, "Contents and tables are made up, seed %llu",
                 (unsigned long long)call->seed);
    snprintf(caption, sizeof caption, "Head %u. Queries down, keys across. %s. Locus %s.",
             (unsigned)call->head, whence, locus_version());
    const locus_figure figure = {
        .size = sizeof figure,
        .title = locus_scheme_find(call->trained != NULL ? call->trained : call->scheme)->title,
        .description = "Terms, scores and weights of one head, one map each.",
        .caption = caption,
        .panels = panels,
        .panel_count = count,
        .columns = 2,
    };
    return locus_figure_render(&figure, format == 0 ? LOCUS_FORMAT_SVG : LOCUS_FORMAT_CSV, NULL,
                               out, error);
}

int page_figure(uint32_t slot, uint32_t format)
{
    const page_call_state *call = call_at(slot);
    locus_error error = {"figure: nothing was explained yet"};
    locus_text out = {0};
    locus_panel panels[PANELS];
    double *copies[PANELS] = {NULL};
    size_t count = 0;
    if (call == NULL || call->numbers == NULL) return call_fail(&error);
    const size_t pairs = call->token_count * call->token_count;
    for (size_t i = 0; i < call->info.terms + 2 && i < PANELS; i++, count++) {
        const char *title = i < call->info.terms ? locus_explainer_term_at(call->explainer, i)->name
                            : i == call->info.terms ? "score"
                                                    : "weight";
        copies[i] = shown(call, call->numbers + i * pairs);
        panels[i] = map_panel(call, title, copies[i], i <= call->info.terms ? largest(call) : 0.0);
    }
    const locus_status status = render(call, panels, count, format, &out, &error);
    for (size_t i = 0; i < count; i++) free(copies[i]);
    if (status != LOCUS_OK) return call_fail(&error);
    text_begin();
    text_add(out.data, out.length);
    locus_text_free(&out);
    return 0;
}

int page_case(uint32_t slot)
{
    static const char name[] = "view.safetensors";
    const page_call_state *call = call_at(slot);
    locus_error error = {"case file: no call"};
    if (call == NULL || locus_case_write(name, call->level, call->problem->config,
                                         call->problem->in, NULL, &error) != LOCUS_OK)
        return call_fail(&error);
    const page_file *file = page_file_find(name);
    text_begin();
    text_add((const char *)file->data, file->bytes);
    page_file_remove(name);
    return 0;
}

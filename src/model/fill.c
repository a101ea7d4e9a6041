/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "core/error.h"
#include "model/pass.h"
#include "nn/embedding.h"
#include "nn/top.h"

/* The head that fills masks: logits of all tokens of the vocabulary, for every token or for the
 * rows that are asked for.
 *     logits = norm(activation(map h)) word^T + bias,   or h word^T + bias */

/* States of the rows that are asked for, one behind the other. `room` [rows, E]. */
static const float *gather(const locus_model *m, const locus_model_batch *batch, const float *h,
                           float *room)
{
    const int64_t E = m->description.width;
    if (batch->rows == NULL) return h;
    const locus_rows y = {room, batch->row_count, E};
    const locus_embedding states = {h, E, batch->rows, 0, 1.0f};
    model_embed_apply(m, &y, &states, 1, E, 0);
    return room;
}

void model_fill_rows(const locus_model *m, const pass_work *w, float *logits, const float *states,
                     int64_t rows)
{
    const model_description *d = &m->description;
    if (!d->fill_plain) {
        model_map_apply(m, w->linear, &m->fill_map, w->fill, states, rows,
                        &(model_end){.activation = d->fill_activation});
        const locus_norm_rule rule = model_norm_rule(d, &m->fill_norm, d->embedding_width);
        model_norm_apply(m, &rule, w->fill, w->fill, rows);
        states = w->fill;
    }
    model_map_apply(m, w->linear, &m->fill_out, logits, states, rows, NULL);
}

void model_fill(const locus_model_pass *pass, const locus_model_batch *batch, const pass_work *w,
                float *logits)
{
    const int64_t rows = batch->rows != NULL ? batch->row_count : pass->tokens;
    model_fill_rows(pass->model, w, logits, gather(pass->model, batch, w->h, w->other), rows);
}

int64_t locus_model_top(const float *logits, int64_t width, int64_t count, int64_t *best,
                        double *probability)
{
    if (logits == NULL || best == NULL || probability == NULL || width < 1 || count < 1) return 0;
    const int64_t found = locus_top(best, count, logits, width);
    const double most = (double)logits[best[0]];
    double sum = 0.0;
    for (int64_t i = 0; i < width; i++) sum += exp((double)logits[i] - most);
    for (int64_t i = 0; i < found; i++) probability[i] = exp((double)logits[best[i]] - most) / sum;
    return found;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "model/ops/ops.h"
#include "model/run.h"

/* move: parameters in another order: transposed, sorted by parts, one behind the other, divided.
 * fold: a batch norm inside the taps in front of it, with the statistics of its training.
 * sinusoid: a table of fixed positions. All are made when a model is opened. */

static void move(const move_rule *m, float *out, const float *in, int back)
{
    for (int64_t i = 0; i < m->extent[0]; i++)
        for (int64_t j = 0; j < m->extent[1]; j++) {
            const int64_t from = m->from_first + i * m->from[0] + j * m->from[1];
            const int64_t to = m->to_first + i * m->to[0] + j * m->to[1];
            for (int64_t k = 0; k < m->extent[2]; k++)
                if (back)
                    out[from + k * m->from[2]] += in[to + k * m->to[2]] / m->divisor;
                else
                    out[to + k * m->to[2]] = in[from + k * m->from[2]] / m->divisor;
        }
}

static locus_status move_forward(const run *r, const op *o)
{
    for (int i = 0; i < OP_INPUTS && o->in[i] != NONE; i++)
        move(&o->as.moves[i], run_at(r, o->out), run_at(r, o->in[i]), 0);
    return LOCUS_OK;
}

static locus_status move_backward(const run *r, const op *o)
{
    for (int i = 0; i < OP_INPUTS && o->in[i] != NONE; i++)
        if (run_grad(r, o->in[i]) != NULL)
            move(&o->as.moves[i], run_grad(r, o->in[i]), run_grad(r, o->out), 1);
    return LOCUS_OK;
}

/* ---- fold ---- */

enum { TAPS, GAIN, SHIFT, MEAN, VARIANCE };

/* out[k][c] = weight[c][k] gain[c] / s[c], and behind them shift[c] - mean[c] gain[c] / s[c],
 * s = sqrt(variance + epsilon) */
static double deviation(const run *r, const op *o, int64_t channel)
{
    return sqrt((double)run_at(r, o->in[VARIANCE])[channel] + o->as.fold.epsilon);
}

static locus_status fold_forward(const run *r, const op *o)
{
    const int64_t width = r->p->values[o->out].width, taps = o->as.fold.taps;
    const float *weight = run_at(r, o->in[TAPS]), *gain = run_at(r, o->in[GAIN]);
    const float *shift = run_at(r, o->in[SHIFT]), *mean = run_at(r, o->in[MEAN]);
    float *to = run_at(r, o->out);
    for (int64_t c = 0; c < width; c++) {
        const double factor = (double)gain[c] / deviation(r, o, c);
        for (int64_t k = 0; k < taps; k++)
            to[k * width + c] = (float)((double)weight[c * taps + k] * factor);
        to[taps * width + c] = (float)((double)shift[c] - (double)mean[c] * factor);
    }
    return LOCUS_OK;
}

static locus_status fold_backward(const run *r, const op *o)
{
    const int64_t width = r->p->values[o->out].width, taps = o->as.fold.taps;
    const float *weight = run_at(r, o->in[TAPS]), *gain = run_at(r, o->in[GAIN]);
    const float *mean = run_at(r, o->in[MEAN]), *given = run_grad(r, o->out);
    float *dweight = run_grad(r, o->in[TAPS]), *dgain = run_grad(r, o->in[GAIN]);
    float *dshift = run_grad(r, o->in[SHIFT]);
    for (int64_t c = 0; c < width; c++) {
        const double factor = (double)gain[c] / deviation(r, o, c);
        double sum = -(double)mean[c] * (double)given[taps * width + c];
        for (int64_t k = 0; k < taps; k++) {
            const double tap = (double)given[k * width + c];
            dweight[c * taps + k] += (float)(tap * factor);
            sum += tap * (double)weight[c * taps + k];
        }
        dgain[c] += (float)(sum / deviation(r, o, c));
        dshift[c] += given[taps * width + c];
    }
    return LOCUS_OK;
}

/* ---- sinusoid ---- */

static locus_status sinusoid_forward(const run *r, const op *o)
{
    const value_info *v = &r->p->values[o->out];
    double *row = r->linear; /* one row of doubles fits: program_fold sees to it */
    for (int64_t i = 0; i < v->count; i++) {
        locus_sinusoid(o->as.sinusoid.table, v->width, i, row);
        const int blank = i == o->as.sinusoid.blank;
        for (int64_t k = 0; k < v->width; k++)
            run_at(r, o->out)[i * v->width + k] = blank ? 0.0F : (float)row[k];
    }
    return LOCUS_OK;
}

static locus_status no_backward(const run *r, const op *o)
{
    (void)r, (void)o;
    return LOCUS_OK;
}

const op_kind op_move = {.name = "move", .forward = move_forward, .backward = move_backward};
const op_kind op_fold = {.name = "fold", .forward = fold_forward, .backward = fold_backward};
const op_kind op_sinusoid = {.name = "sinusoid",
                             .forward = sinusoid_forward,
                             .backward = no_backward};

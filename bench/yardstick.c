/* SPDX-License-Identifier: Apache-2.0 */
/* Setting a yardstick up: what the scheme adds, as tables and vectors by distance. */
#include "bench/yardstick.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_TOKENS = 8192,     /* an n x n buffer of 256 MB      */
    MOST_WEIGHTS = 1 << 26, /* floats kept for a backward pass */
    MOST_PAIRS = 512,       /* of columns that turn            */
};

static int is(const char *scheme, const char *name) { return strcmp(scheme, name) == 0; }

static const struct {
    const char *scheme;
    yardstick_rule rule;
} known[] = {
    {"none", YARDSTICK_NO_TABLE},      {"t5", YARDSTICK_NO_TABLE},
    {"alibi", YARDSTICK_NO_TABLE},     {"kerple", YARDSTICK_NO_TABLE},
    {"distance", YARDSTICK_NO_TABLE},  {"tupe", YARDSTICK_NO_TABLE},
    {"rope", YARDSTICK_NO_TABLE},      {"xpos", YARDSTICK_NO_TABLE},
    {"shaw", YARDSTICK_BAND},          {"transformer_xl", YARDSTICK_STRIP},
    {"relative_key", YARDSTICK_STRIP}, {"relative_key_query", YARDSTICK_STRIP},
    {"deberta", YARDSTICK_MAP},
};

/* ---- rules ---- */

static double bias_at(const locus_config *config, const locus_tensors *in, int64_t h, int64_t rho)
{
    const locus_options *o = &config->options;
    const double distance = fabs((double)rho);
    if (is(config->scheme, "distance"))
        return (double)((const float *)in->bias.data)[h * in->bias.shape[1] - rho - o->delta_min];
    if (in->bias.rank != 0) {
        const int64_t bucket =
            locus_t5_bucket(rho, o->buckets, o->max_distance, o->bidirectional != 0);
        return (double)((const float *)in->bias.data)[bucket * in->bias.shape[1] + h];
    }
    if (in->slopes.rank != 0) return -(double)((const float *)in->slopes.data)[h] * distance;
    const double a = (double)((const float *)in->a.data)[h];
    const double p = (double)((const float *)in->p.data)[h];
    return -p * log1p(a * distance);
}

static int64_t deberta_row(const locus_options *o, int64_t rho)
{
    const int64_t t = locus_deberta_beta(-rho, o->buckets, o->max_distance) + o->span;
    return t < 0 ? 0 : t > 2 * o->span - 1 ? 2 * o->span - 1 : t;
}

/* ---- memory ---- */

static void *floats(int64_t count) { return calloc((size_t)count + 1, sizeof(float)); }

static int reserve(yardstick_scratch *scratch, size_t count)
{
    if (scratch->floats >= count) return 1;
    free(scratch->data);
    scratch->data = aligned_alloc(64, (count * sizeof(float) / 64 + 1) * 64);
    scratch->floats = scratch->data != NULL ? count : 0;
    return scratch->data != NULL;
}

/* Scores, a table product for each table, folded values, two sets of widened queries. */
static size_t scratch_floats(const yardstick *y)
{
    const size_t T = (size_t)y->T, R = (size_t)y->R, D = (size_t)y->D;
    return T * T + 2 * T * R + 4 * T * D + 4096 * 16;
}

/* ---- tables ---- */

/* A copy with its rows turned around, for tables whose rows go by m - n: keys ascend along
 * a row of scores, and so must the table. */
static float *turned(const locus_tensor *table, int64_t D)
{
    const int64_t rows = table->shape[table->rank - 2];
    const int64_t heads = table->rank == 3 ? table->shape[0] : 1;
    float *to = floats(heads * rows * D);
    if (to == NULL) return NULL;
    for (int64_t h = 0; h < heads; h++)
        for (int64_t r = 0; r < rows; r++)
            memcpy(to + (h * rows + rows - 1 - r) * D,
                   (const float *)table->data + (h * rows + r) * D, (size_t)D * sizeof *to);
    return to;
}

static float *copied(const locus_tensor *table)
{
    const int64_t count = locus_tensor_elements(table);
    float *to = floats(count);
    if (to != NULL) memcpy(to, table->data, (size_t)count * sizeof *to);
    return to;
}

static int make_map(yardstick *y, const locus_options *options)
{
    const int64_t count = 2 * y->T - 1;
    y->map = calloc((size_t)count + 1, sizeof *y->map);
    if (y->map == NULL) return 0;
    for (int64_t i = 0; i < count; i++) y->map[i] = (int32_t)deberta_row(options, i - y->T + 1);
    while (y->near < count && y->map[y->near] == y->map[0]) y->near++;
    y->far = count;
    while (y->far > y->near && y->map[y->far - 1] == y->map[count - 1]) y->far--;
    return 1;
}

static int make_tables(yardstick *y, const locus_config *config)
{
    const locus_tensors *in = &y->in;
    if (y->rule == YARDSTICK_NO_TABLE) return 1;
    y->shared = in->rel_k.rank == 2;
    y->R = in->rel_k.shape[in->rel_k.rank - 2];
    y->left = config->options.clip_left;
    y->right = config->options.clip_right;
    y->key_table = y->rule == YARDSTICK_STRIP ? turned(&in->rel_k, y->D) : copied(&in->rel_k);
    if (y->key_table == NULL) return 0;
    if (is(config->scheme, "relative_key_query")) y->query_table = turned(&in->rel_k, y->D);
    if (is(config->scheme, "deberta")) y->query_table = copied(&in->rel_q);
    return y->rule != YARDSTICK_MAP || make_map(y, &config->options);
}

static int make_bias(yardstick *y, const locus_config *config)
{
    const locus_tensors *in = &y->in;
    if (in->bias.rank == 0 && in->slopes.rank == 0 && in->a.rank == 0) return 1;
    const int64_t count = 2 * y->T - 1;
    y->bias = floats(y->H * count);
    for (int64_t h = 0; y->bias != NULL && h < y->H; h++)
        for (int64_t i = 0; i < count; i++)
            y->bias[h * count + i] = (float)bias_at(config, in, h, i - y->T + 1);
    return y->bias != NULL;
}

/* ---- rotations ---- */

/* Cosines and sines of every position and pair; q grows by the gain, k shrinks by it. */
static void fill_turns(yardstick *y, const double *frequency, const double *log_gain)
{
    const int64_t pairs = y->pairs.count;
    for (int64_t at = 0; at < y->T * pairs; at++) {
        const double p = (double)(at / pairs), angle = p * frequency[at % pairs];
        for (int which = 0; which < 2; which++) {
            const double gain = exp((which == 0 ? p : -p) * log_gain[at % pairs]);
            y->turns[2 * which][at] = (float)(gain * cos(angle));
            y->turns[2 * which + 1][at] = (float)(gain * sin(angle));
        }
    }
}

static int make_turns(yardstick *y, const locus_config *config)
{
    double frequency[MOST_PAIRS], log_gain[MOST_PAIRS];
    locus_error unused;
    size_t pairs = MOST_PAIRS;
    if (locus_call_turns(LOCUS_ATTEND, config, &y->in, &pairs, frequency, log_gain, &unused) !=
        LOCUS_OK)
        return 0;
    if (pairs == 0) return 1;
    y->pairs.count = (int64_t)pairs;
    y->pairs.interleaved =
        is(config->scheme, "xpos") || config->options.pairing == LOCUS_PAIRING_INTERLEAVED;
    locus_tensor *const turned[] = {&y->in.q, &y->in.k};
    for (int i = 0; i < 4; i++) y->turns[i] = floats(y->T * y->pairs.count);
    for (int i = 0; i < 2; i++) {
        y->given[i] = turned[i]->data;
        turned[i]->data = y->turned[i] = floats(y->B * y->H * y->T * y->D);
    }
    if (!(y->turns[0] && y->turns[1] && y->turns[2] && y->turns[3] && y->turned[0] && y->turned[1]))
        return 0;
    fill_turns(y, frequency, log_gain);
    return 1;
}

/* ---- results ---- */

static int make_results(yardstick *y, int backward)
{
    const int64_t rows = y->B * y->H * y->T;
    y->out = floats(rows * y->D);
    y->lse = floats(rows);
    if (y->out == NULL || y->lse == NULL) return 0;
    y->has_backward = backward && rows * y->T <= MOST_WEIGHTS; /* a dense bias is a constant */
    if (!y->has_backward) return 1;
    y->weights = floats(rows * y->T);
    y->dq = floats(rows * y->D);
    y->dk = floats(rows * y->D);
    y->dv = floats(rows * y->D);
    y->dtable = floats(y->H * y->R * y->D);
    y->dvalue_table = floats(y->R * y->D);
    y->dbias = floats(2 * y->T * y->H);
    const int other = y->in.rel_q.rank != 0; /* than the table of the queries */
    if (other) y->dquery_table = floats(y->H * y->R * y->D);
    y->du = floats(y->H * y->D);
    y->dw = floats(y->H * y->D);
    y->dpos_q = floats(y->in.pos_q.rank != 0 ? y->H * y->T * y->D : 0);
    y->dpos_k = floats(y->in.pos_q.rank != 0 ? y->H * y->T * y->D : 0);
    return y->weights && y->dq && y->dk && y->dv && y->dtable && y->dvalue_table && y->dbias &&
           y->du && y->dw && y->dpos_q && y->dpos_k && (!other || y->dquery_table);
}

static int find_rule(yardstick *y, const char *scheme)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!is(known[i].scheme, scheme)) continue;
        y->rule = known[i].rule;
        y->has_flash = is(scheme, "none") && y->in.bias_dense.rank == 0;
        return 1;
    }
    return 0;
}

int yardstick_new(yardstick *y, const blas *b, const bench_loops *loops, yardstick_scratch *scratch,
                  const locus_config *config, double scale, const locus_tensors *in, int backward)
{
    memset(y, 0, sizeof *y);
    y->blas = b;
    y->loops = loops;
    y->scratch = scratch;
    y->in = *in;
    y->B = in->q.shape[0];
    y->H = in->q.shape[1];
    y->T = in->q.shape[2];
    y->D = in->q.shape[3];
    y->scale = (float)scale;
    const int plain = in->k.shape[1] == y->H && in->k.shape[2] == y->T && y->T <= MOST_TOKENS;
    if (plain && find_rule(y, config->scheme) && make_tables(y, config) && make_bias(y, config) &&
        make_turns(y, config) && make_results(y, backward) && reserve(scratch, scratch_floats(y)))
        return 1;
    yardstick_free(y);
    return 0;
}

void yardstick_free(yardstick *y)
{
    float *const blocks[] = {y->key_table,    y->query_table, y->bias,      y->out,
                             y->lse,          y->weights,     y->dq,        y->dk,
                             y->dv,           y->dtable,      y->dbias,     y->dquery_table,
                             y->dvalue_table, y->du,          y->dw,        y->dpos_q,
                             y->dpos_k,       y->turned[0],   y->turned[1], y->turns[0],
                             y->turns[1],     y->turns[2],    y->turns[3]};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
    free(y->map);
    memset(y, 0, sizeof *y);
}

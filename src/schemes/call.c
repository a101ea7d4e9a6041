/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "core/error.h"
#include "core/tensor.h"
#include "schemes/scheme.h"

/* Limits that CASES sets; positions stay far from the ends of int64_t. */
enum { MAX_ROWS = 1 << 20, MAX_OTHER = 1 << 24 };

/* ---- dimensions ---- */

static locus_status need_rank(const locus_tensor *t, const char *name, uint32_t rank,
                              locus_error *error)
{
    if (!locus_present(t)) return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s is missing", name);
    if (t->rank != rank)
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s: found %u axes, expected %u", name,
                          (unsigned)t->rank, (unsigned)rank);
    return LOCUS_OK;
}

static locus_status read_attend_dims(locus_call *call, const locus_tensors *s, locus_error *error)
{
    LOCUS_TRY(need_rank(&s->q, "q", 4, error));
    LOCUS_TRY(need_rank(&s->k, "k", 4, error));
    LOCUS_TRY(need_rank(&s->v, "v", 4, error));
    call->B = s->q.shape[0];
    call->H = s->q.shape[1];
    call->Tq = s->q.shape[2];
    call->D = s->q.shape[3];
    call->Hk = s->k.shape[1];
    call->Tk = s->k.shape[2];
    call->Dv = s->v.shape[3];
    if (call->Hk == 0 ? call->H != 0 : call->H % call->Hk != 0)
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor q: found %" PRId64 " heads beside %" PRId64
                          " of k, expected a multiple",
                          call->H, call->Hk);
    return LOCUS_OK;
}

static locus_status read_layer_dims(locus_call *call, const locus_config *config,
                                    const locus_tensors *s, locus_error *error)
{
    LOCUS_TRY(need_rank(&s->x, "x", 3, error));
    LOCUS_TRY(need_rank(&s->w_q, "w_q", 2, error));
    if (locus_present(&s->memory)) LOCUS_TRY(need_rank(&s->memory, "memory", 3, error));
    call->B = s->x.shape[0];
    call->T = call->Tq = s->x.shape[1];
    call->E = s->x.shape[2];
    call->M = locus_present(&s->memory) ? s->memory.shape[1] : 0;
    call->Tk = call->M + call->T;
    call->H = call->Hk = config->heads;
    if (config->heads == 0)
        return locus_fail(error, LOCUS_ERR_OPTION, "heads: found 0, expected at least 1");
    if (s->w_q.shape[0] % call->H != 0)
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor w_q: found %" PRId64 " rows, expected a multiple of %" PRId64
                          " heads",
                          s->w_q.shape[0], call->H);
    call->D = call->Dv = s->w_q.shape[0] / call->H;
    return LOCUS_OK;
}

static locus_status check_limits(const locus_call *call, locus_error *error)
{
    const int layer = call->level == LOCUS_LAYER;
    const struct {
        const char *tensor, *what;
        int64_t value, most;
    } limits[] = {
        {layer ? "x" : "q", "batch", call->B, MAX_OTHER},
        {layer ? "w_q" : "q", "heads", call->H, MAX_OTHER},
        {layer ? "w_k" : "k", "KV heads", call->Hk, MAX_OTHER},
        {layer ? "x" : "q", "rows", call->Tq, MAX_ROWS},
        {layer ? "memory" : "k", "rows (with those of x, in a layer)", call->Tk, MAX_ROWS},
        {layer ? "w_q" : "q", "head width", call->D, LOCUS_MAX_WIDTH},
        {layer ? "w_v" : "v", "width", call->Dv, LOCUS_MAX_WIDTH},
        {"x", "width", call->E, MAX_OTHER},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].value < 0 || limits[i].value > limits[i].most)
            return locus_fail(error, LOCUS_ERR_TENSOR,
                              "tensor %s: found %" PRId64 " %s, expected 0..%" PRId64,
                              limits[i].tensor, limits[i].value, limits[i].what, limits[i].most);
    return LOCUS_OK;
}

/* ---- options ---- */

static double option_value(const locus_options *options, const locus_option_info *info)
{
    const char *field = (const char *)options + info->offset;
    if (info->kind == LOCUS_OPTION_REAL) {
        double value;
        memcpy(&value, field, sizeof value);
        return value;
    }
    int64_t value;
    memcpy(&value, field, sizeof value);
    return (double)value;
}

static int is_unset(const locus_option_info *info, double value)
{
    return value == (info->kind == LOCUS_OPTION_REAL ? LOCUS_UNSET_REAL : (double)LOCUS_UNSET);
}

/* 1 when the tensor of that name is part of the call. */
static int has_tensor(const locus_tensors *shapes, const char *name)
{
    const int index = locus_tensor_index(name);
    return index >= 0 && locus_present(locus_tensor_at_const(shapes, (size_t)index));
}

static locus_status check_option(const locus_option_info *o, double value,
                                 const locus_tensors *shapes, locus_error *error)
{
    if (is_unset(o, value))
        return o->with != NULL && !has_tensor(shapes, o->with)
                   ? LOCUS_OK
                   : locus_fail(error, LOCUS_ERR_OPTION, "option %s is missing", o->name);
    if (o->without != NULL && value != o->preset && has_tensor(shapes, o->without))
        return locus_fail(error, LOCUS_ERR_OPTION,
                          "option %s: found beside tensor %s, expected one of them", o->name,
                          o->without);
    /* a default may stand outside the range that text must keep: rope's width 0 is D */
    if ((value >= o->minimum && value <= o->maximum) || value == o->preset) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_OPTION, "option %s: found %.15g, expected %.15g..%.15g",
                      o->name, value, o->minimum, o->maximum);
}

static locus_status check_options(const locus_call *call, const locus_tensors *shapes,
                                  locus_error *error)
{
    for (const locus_option_info *o = call->scheme->options; o->name != NULL; o++)
        if ((o->levels & call->level) != 0)
            LOCUS_TRY(check_option(o, option_value(&call->options, o), shapes, error));
    return LOCUS_OK;
}

/* ---- the whole ---- */

/* Far beyond every distance, far from the ends of int64_t. */
static const int64_t no_limit = (int64_t)1 << 60;

/* causal keeps delta >= 0, the window keeps -right <= delta <= left. */
static void set_limits(locus_call *call, const locus_config *config)
{
    call->low = config->causal ? 0 : -no_limit;
    call->high = no_limit;
    if (config->window_right >= 0 && call->low < -config->window_right)
        call->low = -config->window_right;
    if (config->window_left >= 0 && call->high > config->window_left)
        call->high = config->window_left;
}

/* Every sequence's distances hold its own query_offset or 0, so the union has no gaps. */
static void find_distances(locus_call *call)
{
    call->least = 0;
    call->most = -1;
    for (int64_t i = 0; i < locus_sequence_count(call); i++) {
        const locus_sequence s = locus_call_sequence(call, i);
        const int first = call->least > call->most;
        if (s.least > s.most && (i > 0 || call->sequences > 0)) continue;
        if (first || s.least < call->least) call->least = s.least;
        if (first || s.most > call->most) call->most = s.most;
    }
    if (call->sequences == 0) call->query_offset = locus_call_sequence(call, 0).query_offset;
}

/* What the scheme's rules read when they are asked for a row or a turn. */
static void take_views(locus_call *call, const locus_tensors *shapes)
{
    call->q_offsets = shapes->q_offsets;
    call->k_offsets = shapes->k_offsets;
    call->rows = shapes->rows;
    call->frequencies = shapes->frequencies;
    call->q_positions = shapes->q_positions;
    call->k_positions = shapes->k_positions;
}

/* Layers and ragged batches are whole calls. */
static locus_status check_part(const locus_call *call, locus_error *error)
{
    if (call->key_offset == 0 && call->first_query == 0 && call->first_batch == 0) return LOCUS_OK;
    if (call->level != LOCUS_LAYER && call->sequences == 0) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_OPTION,
                      "key_offset, first_query, first_batch: found one above 0, expected 0 (%s)",
                      call->level == LOCUS_LAYER ? "a layer is a whole call"
                                                 : "a ragged batch is a whole call");
}

/* Gates are those of what was seen in between. */
static locus_status check_log_gates(const locus_config *config, const locus_tensors *shapes,
                                    locus_error *error)
{
    const char *found = locus_present(&shapes->log_gate) ? "log_gate"
                        : locus_present(&shapes->w_f)    ? "w_f"
                                                         : NULL;
    if (found == NULL) return LOCUS_OK;
    if (!config->causal)
        return locus_fail(error, LOCUS_ERR_OPTION,
                          "causal: found 0 beside tensor %s, expected 1 (gates look back only)",
                          found);
    return LOCUS_OK;
}

locus_status locus_call_resolve(locus_call *call, uint32_t level, const locus_config *config,
                                const locus_tensors *shapes, locus_error *error)
{
    const locus_scheme *scheme = locus_scheme_lookup(config->scheme);
    if (scheme == NULL) return locus_unknown_scheme(config->scheme, error);
    const locus_call fresh = {
        .scheme = scheme,
        .level = level,
        .options = config->options,
        .R = -1,
        .Ry = -1,
        .Rx = -1,
        .query_offset = config->query_offset == LOCUS_UNSET
                            ? LOCUS_UNSET
                            : config->query_offset - config->key_offset,
        .key_offset = config->key_offset,
        .first_query = config->first_query,
        .first_batch = config->first_batch,
        .softcap = config->softcap == LOCUS_UNSET_REAL ? 0.0 : config->softcap,
        .dropout = config->dropout,
        .dropout_seed = config->dropout_seed,
        .threads = config->threads,
    };
    *call = fresh;

    LOCUS_TRY(level == LOCUS_LAYER ? read_layer_dims(call, config, shapes, error)
                                   : read_attend_dims(call, shapes, error));
    LOCUS_TRY(check_limits(call, error));
    if ((scheme->info.traits & LOCUS_TRAIT_CAUSAL) != 0 && !config->causal)
        return locus_fail(error, LOCUS_ERR_OPTION,
                          "causal: found 0, expected 1 (scheme %s looks back only)",
                          scheme->info.name);
    LOCUS_TRY(locus_refuse_strangers(call, shapes, error));
    LOCUS_TRY(check_options(call, shapes, error));
    LOCUS_TRY(locus_check_common(call, shapes, error));
    LOCUS_TRY(locus_check_offsets(call, shapes, error));
    LOCUS_TRY(check_part(call, error));
    LOCUS_TRY(check_log_gates(config, shapes, error));
    take_views(call, shapes);
    set_limits(call, config);
    find_distances(call);

    /* Twice: the first pass proves ranks before the scheme reads extents, the second
     * knows R. */
    LOCUS_TRY(locus_check_declared(call, shapes, error));
    LOCUS_TRY(locus_check_places(call, shapes, config->allocator, error));
    if (scheme->check != NULL) LOCUS_TRY(scheme->check(call, shapes, error));
    if (locus_present(&shapes->log_gate))
        LOCUS_TRY(locus_check_gates(call, "log_gate", shapes->log_gate.shape[2], error));
    LOCUS_TRY(locus_check_declared(call, shapes, error));

    /* At D = 0 every product is an empty sum, which no scale may turn into 0 * inf. */
    call->scale = config->scale != LOCUS_UNSET_REAL ? config->scale
                  : call->D == 0                    ? 1.0
                                                    : scheme->default_scale(call, shapes);
    return LOCUS_OK;
}

void locus_call_inner(locus_call *inner, const locus_call *outer)
{
    *inner = *outer;
    inner->level = LOCUS_ATTEND;
}

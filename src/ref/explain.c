/* SPDX-License-Identifier: Apache-2.0 */
#include <locus/runtime.h>

#include "core/adopt.h"
#include "core/error.h"
#include "core/tensor.h"
#include "ref/explainer.h"
#include "ref/layer.h"

/* ---- which terms there are ---- */

static int has_part(const locus_explainer *e, enum ref_part part)
{
    const locus_scheme *scheme = e->call.scheme;
    const locus_tensors *in = &e->in;
    const int keys = locus_tensor_slot(in, scheme->key_table) != NULL;
    switch (part) {
    case REF_CONTENT: return 1;
    case REF_CONTENT_POSITION: return keys || e->at.split;
    case REF_U_CONTENT: return locus_present(&in->u);
    case REF_W_POSITION: return keys && locus_present(&in->w);
    case REF_POSITION_CONTENT:
        return locus_tensor_slot(in, scheme->query_table) != NULL || e->at.split;
    case REF_POSITION_POSITION: return locus_present(&in->pos_q);
    case REF_BIAS:
        return scheme->bias != NULL && (scheme->bias_row == NULL || locus_present(&in->bias));
    case REF_RESET: return locus_present(&in->cls);
    case REF_SOFTCAP: return e->call.softcap > 0.0;
    case REF_GATES: return locus_present(&in->log_gate);
    case REF_DENSE: return locus_present(&in->bias_dense);
    case REF_PARTS: break;
    }
    return 0;
}

static locus_explainer_term describe_part(const locus_explainer *e, enum ref_part part)
{
    static const locus_explainer_term plain[REF_PARTS] = {
        [REF_CONTENT] = {LOCUS_TERM_CONTENT, "content", "c q_m . k_n"},
        [REF_CONTENT_POSITION] = {LOCUS_TERM_CONTENT_POSITION, "content-position",
                                  "c q_m . RK[row(m - n)]"},
        [REF_U_CONTENT] = {LOCUS_TERM_CONTENT, "u.k", "c u . k_n"},
        [REF_W_POSITION] = {LOCUS_TERM_CONTENT_POSITION, "w.r", "c w . RK[row(m - n)]"},
        [REF_POSITION_CONTENT] = {LOCUS_TERM_POSITION_CONTENT, "position-content",
                                  "c RQ[row(m - n)] . k_n"},
        [REF_POSITION_POSITION] = {LOCUS_TERM_POSITION_POSITION, "position-position",
                                   "c pq_m . pk_n"},
        [REF_BIAS] = {LOCUS_TERM_BIAS, "bias", "b_h[m - n]"},
        [REF_RESET] = {LOCUS_TERM_POSITION_POSITION, "cls", "cls_h, where m = 0 or n = 0"},
        [REF_SOFTCAP] = {0, "softcap", "C tanh(s / C) - s"},
        [REF_GATES] = {0, "log_gate", "log_gate[n + 1] + ... + log_gate[m]"},
        [REF_DENSE] = {0, "bias_dense", "bias_dense[m, n]"},
    };
    static const locus_explainer_term split[REF_PARTS] = {
        [REF_CONTENT] = {LOCUS_TERM_CONTENT, "content", "c (Wq x_m) . (Wk x_n)"},
        [REF_CONTENT_POSITION] = {LOCUS_TERM_INPUT, "content-position", "c (Wq x_m) . (Wk p_n)"},
        [REF_POSITION_CONTENT] = {LOCUS_TERM_INPUT, "position-content", "c (Wq p_m) . (Wk x_n)"},
        [REF_POSITION_POSITION] = {LOCUS_TERM_INPUT, "position-position", "c (Wq p_m) . (Wk p_n)"},
    };
    static const locus_explainer_term turned = {LOCUS_TERM_ROTATION, "rotation",
                                                "c q_m . k_n, both turned"};
    static const locus_explainer_term gated = {LOCUS_TERM_BIAS, "bias", "gate_m b_h[m - n]"};
    static const locus_explainer_term own_query = {LOCUS_TERM_CONTENT_POSITION, "content-position",
                                                   "p_m . RK[row(m - n)]"};
    static const locus_explainer_term counted = {LOCUS_TERM_CONTENT_POSITION, "content-position",
                                                 "q_m . RK[counted(m, n)]"};
    static const locus_explainer_term decayed = {LOCUS_TERM_CONTENT, "content",
                                                 "c sum_d q_md k_nd e^(P_md - P_nd)"};
    static const locus_explainer_term two_axes = {LOCUS_TERM_CONTENT_POSITION, "content-position",
                                                  "q_m . RK[dy] + q_m . RK2[dx]"};
    static const locus_explainer_term by_pair = {LOCUS_TERM_BIAS, "bias", "b_h(m, n)"};
    if (part == REF_CONTENT && e->call.pairs > 0) return turned;
    if (part == REF_CONTENT && e->call.scheme->log_decay != 0) return decayed;
    if (part == REF_CONTENT_POSITION && e->call.scheme->second_table != 0) return two_axes;
    if (part == REF_BIAS && e->call.scheme->bias_by_pair) return by_pair;
    if (part == REF_BIAS && locus_present(&e->in.gate)) return gated;
    if (part == REF_CONTENT_POSITION && e->call.scheme->counts) return counted;
    if (part == REF_CONTENT_POSITION && locus_present(&e->in.pos_query)) return own_query;
    return e->at.split && split[part].name != NULL ? split[part] : plain[part];
}

static void list_terms(locus_explainer *e)
{
    for (int part = 0; part < REF_PARTS; part++) {
        if (!has_part(e, (enum ref_part)part)) continue;
        e->part[e->count] = (enum ref_part)part;
        e->term[e->count++] = describe_part(e, (enum ref_part)part);
    }
}

/* ---- making one ---- */

/* Rows of [.., heads, rows, D] one after another, turned to their positions. */
static double *turn_all(locus_explainer *e, const locus_tensor *from, int is_key)
{
    const int64_t D = e->call.D, heads = from->shape[1], rows = from->shape[2];
    double *turned = locus_ref_take(&e->memory, from->shape[0] * heads, rows * D, sizeof(double));
    for (int64_t s = 0; turned != NULL && s < locus_sequence_count(&e->call); s++) {
        const locus_sequence seq = locus_call_sequence(&e->call, s);
        const int64_t first = is_key ? seq.first_key : seq.first_query;
        const int64_t count = is_key ? seq.keys : seq.queries,
                      origin = is_key ? 0 : seq.query_offset;
        for (int64_t x = 0; x < from->shape[0] * heads * count; x++) {
            const int64_t b = x / (heads * count), h = x / count % heads, i = first + x % count;
            const double *plain = locus_ref_at(from, b, h, i);
            double *row = turned + ((b * heads + h) * rows + i) * D;
            for (int64_t d = 0; d < D; d++) row[d] = plain[d];
            locus_ref_turn(&e->call, row, is_key, b, i, origin + i - first, 1);
        }
    }
    return turned;
}

/* The sums of gates and decays of every head. */
static void sum_gates(locus_explainer *e)
{
    ref_attention at = e->at;
    const int64_t heads = e->call.B * e->call.H;
    locus_ref_take_gates(&at, &e->memory);
    const int64_t gates = at.gates != NULL ? e->in.log_gate.shape[2] : 0;
    const locus_tensor *decay =
        at.decays != NULL ? locus_tensor_slot(&e->in, e->call.scheme->log_decay) : NULL;
    e->gate_step = gates;
    e->decay_step = decay != NULL ? decay->shape[2] * e->call.D : 0;
    e->gates = gates > 0 ? locus_ref_take(&e->memory, heads, gates, sizeof(double)) : NULL;
    e->decays =
        decay != NULL ? locus_ref_take(&e->memory, heads, e->decay_step, sizeof(double)) : NULL;
    for (int64_t x = 0; !e->memory.failed && x < heads; x++)
        for (at.s = 0; at.s < locus_sequence_count(&e->call); at.s++) {
            at.b = x / e->call.H;
            at.h = x % e->call.H;
            at.sequence = locus_call_sequence(&e->call, at.s);
            at.gates = e->gates != NULL ? e->gates + x * e->gate_step : NULL;
            at.decays = e->decays != NULL ? e->decays + x * e->decay_step : NULL;
            locus_ref_sum_gates(&at);
        }
}

static void prepare(locus_explainer *e, const locus_tensors *in)
{
    const locus_tensors wide = locus_ref_widen_all(&e->memory, in);
    e->in = wide;
    if (e->call.level == LOCUS_LAYER && !e->memory.failed) {
        const locus_call outer = e->call;
        ref_layer l = {
            .call = &outer, .in = &wide, .memory = &e->memory, .inner = {.size = sizeof l.inner}};
        locus_ref_project(&l);
        if (!e->memory.failed) locus_ref_split_input(&l);
        locus_call_inner(&e->call, &outer);
        e->in = l.inner;
    }
    if (e->memory.failed) return;
    e->at = locus_ref_begin(&e->call, &e->in, NULL, &e->memory);
    e->at.split = e->call.scheme->embed != NULL && locus_present(&e->in.pos_q);
    e->q = turn_all(e, &e->in.q, 0);
    e->k = turn_all(e, &e->in.k, 1);
    if (e->call.scheme->counts)
        e->place =
            locus_ref_take(&e->memory, (int64_t)e->call.threads, e->call.Tk, sizeof *e->place);
    sum_gates(e);
    list_terms(e);
}

locus_status locus_explainer_new(locus_explainer **explainer, uint32_t level,
                                 const locus_config *config, const locus_tensors *in,
                                 locus_error *error)
{
    if (explainer == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "explainer: found NULL to put it into");
    *explainer = NULL;
    if (config == NULL || in == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "explainer: config or tensors are NULL");
    if (level != LOCUS_ATTEND && level != LOCUS_LAYER)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "explainer: found level %u, expected LOCUS_ATTEND or LOCUS_LAYER",
                          (unsigned)level);
    locus_call call;
    locus_config own;
    locus_tensors copy;
    LOCUS_TRY(locus_adopt_config(&own, config, error));
    LOCUS_TRY(locus_adopt_tensors(&in, &copy, "tensors", error));
    LOCUS_TRY(locus_call_resolve(&call, level, &own, in, error));
    LOCUS_TRY(locus_ref_check_inputs(in, error));
    if (call.threads == 0) call.threads = locus_default_threads();

    ref_memory memory = {.allocator = own.allocator};
    locus_explainer *e = locus_ref_take(&memory, 1, 1, sizeof *e);
    if (e != NULL) {
        e->memory = memory;
        e->call = call;
        prepare(e, in);
        if (!e->memory.failed) {
            *explainer = e;
            return LOCUS_OK;
        }
        locus_explainer_free(e);
    }
    return locus_fail(error, LOCUS_ERR_MEMORY, "explainer: the allocator returned no memory");
}

void locus_explainer_free(locus_explainer *explainer)
{
    if (explainer == NULL) return;
    ref_memory memory = explainer->memory;
    locus_ref_release(&memory);
}

void locus_explainer_describe(const locus_explainer *explainer, locus_explainer_info *info)
{
    const locus_call *call = &explainer->call;
    const locus_explainer_info full = {
        .size = sizeof full,
        .batch = call->B,
        .heads = call->H,
        .queries = call->Tq,
        .keys = call->Tk,
        .head_dim = call->D,
        .query_offset = call->sequences > 0 ? 0 : call->query_offset,
        .scale = call->scale,
        .terms = explainer->count,
        .sequences = call->sequences,
    };
    locus_hand_back(info, &full, sizeof full);
}

const locus_explainer_term *locus_explainer_term_at(const locus_explainer *explainer, size_t index)
{
    return index < explainer->count ? &explainer->term[index] : NULL;
}

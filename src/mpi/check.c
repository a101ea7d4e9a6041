/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/adopt.h"
#include "core/error.h"
#include "core/tensor.h"

/* ---- one rank ---- */

static locus_status check_axis(const locus_tensor *t, const char *name, uint32_t axis,
                               int64_t expected, locus_error *error)
{
    if (!locus_present(t)) return LOCUS_OK;
    if (t->rank <= axis || t->shape[axis] != expected)
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor %s: found %" PRId64 " on axis %u, expected %" PRId64, name,
                          t->rank <= axis ? (int64_t)0 : t->shape[axis], (unsigned)axis, expected);
    return LOCUS_OK;
}

static locus_status check_positions(const locus_mpi_plan *plan, const locus_tensor *t,
                                    const char *name, int64_t rows, locus_error *error)
{
    if (locus_present(t) && t->rank < (plan->config.options.axes > 1 ? 2u : 1u))
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s: found %u axes, expected 2 or more",
                          name, (unsigned)t->rank);
    return check_axis(t, name, ring_position_axis(plan, t), rows, error);
}

/* What a rank would have to know of the rows of others: gates and decays of all positions in between,
 * the keys that a query counts, and the distances of positions that are not here yet. */
static locus_status refuse_places(const locus_mpi_plan *plan, const locus_tensors *s,
                                  locus_error *error)
{
    static const char *const names[] = {"q_positions", "k_positions", "log_gate", "log_decay"};
    const locus_scheme_info *scheme = locus_scheme_find(plan->config.scheme);
    const int turns = scheme != NULL && (scheme->terms & LOCUS_TERM_ROTATION) != 0;
    if (scheme != NULL && (scheme->traits & LOCUS_TRAIT_COUNTED) != 0)
        return locus_fail(error, LOCUS_ERR_UNSUPPORTED,
                          "scheme: found %s over ranks, expected one that counts no keys",
                          plan->config.scheme);
    for (size_t i = turns ? 2 : 0; i < sizeof names / sizeof *names; i++) {
        const int index = locus_tensor_index(names[i]);
        if (index >= 0 && locus_present(locus_tensor_at_const(s, (size_t)index)))
            return locus_fail(error, LOCUS_ERR_UNSUPPORTED,
                              "tensor %s: found over ranks with scheme %s, expected none", names[i],
                              plan->config.scheme);
    }
    return LOCUS_OK;
}

locus_status ring_check_shapes(const locus_mpi_plan *plan, const locus_tensors *s,
                               locus_error *error)
{
    LOCUS_TRY(refuse_places(plan, s, error));
    const int64_t queries = s->q.shape[2], keys = s->k.shape[2], all_keys = plan->layout.k.rows;
    LOCUS_TRY(check_axis(&s->v, "v", 2, keys, error));
    LOCUS_TRY(check_axis(&s->pos_query, "pos_query", 2, queries, error));
    LOCUS_TRY(check_axis(&s->gate, "gate", 2, queries, error));
    LOCUS_TRY(check_axis(&s->key_mask, "key_mask", 1, keys, error));
    LOCUS_TRY(check_axis(&s->mask, "mask", 2, queries, error));
    LOCUS_TRY(check_axis(&s->mask, "mask", 3, all_keys, error));
    LOCUS_TRY(check_axis(&s->bias_dense, "bias_dense", 2, queries, error));
    LOCUS_TRY(check_axis(&s->bias_dense, "bias_dense", 3, all_keys, error));
    LOCUS_TRY(check_positions(plan, &s->q_positions, "q_positions", queries, error));
    LOCUS_TRY(check_positions(plan, &s->k_positions, "k_positions", keys, error));
    const int ragged = locus_present(&s->q_offsets);
    if (ragged && (locus_present(&s->mask) || locus_present(&s->bias_dense)))
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor %s: found beside q_offsets, expected one of them",
                          locus_present(&s->mask) ? "mask" : "bias_dense");
    if (ragged && s->q.shape[0] != 1)
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor q: found a batch of %" PRId64 " beside q_offsets, expected 1",
                          s->q.shape[0]);
    return LOCUS_OK;
}

static locus_status check_side(const ring_layout *layout, const ring_side *side, const char *name,
                               int64_t rows, locus_error *error)
{
    const int64_t expected = ring_rows_held(layout, side, layout->rank);
    if (rows != expected)
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor %s: found %" PRId64 " rows, expected %" PRId64 " of %" PRId64
                          " in zigzag order",
                          name, rows, expected, side->rows);
    return LOCUS_OK;
}

locus_status ring_check_layout(const locus_mpi_plan *plan, locus_error *error)
{
    LOCUS_TRY(check_side(&plan->layout, &plan->layout.q, "q", plan->shapes.q.shape[2], error));
    return check_side(&plan->layout, &plan->layout.k, "k", plan->shapes.k.shape[2], error);
}

/* ---- all ranks ---- */

/* What must be the same on all ranks, as numbers in an order that all ranks have. */
enum { MOST_NUMBERS = 64 + 8 * LOCUS_TENSOR_COUNT };
typedef struct number_list {
    int count;
    const char *name[MOST_NUMBERS];
    int64_t value[MOST_NUMBERS];
} number_list;

static void put(number_list *list, const char *name, int64_t value)
{
    list->name[list->count] = name;
    list->value[list->count++] = value;
}

static void put_real(number_list *list, const char *name, double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put(list, name, bits);
}

/* FNV-1a */
static int64_t hash_of(const void *data, size_t bytes)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ ((const uint8_t *)data)[i]) * 1099511628211u;
    return (int64_t)hash;
}

/* Options have 8 bytes each. */
static void put_options(number_list *list, const locus_mpi_plan *plan)
{
    const locus_scheme_info *scheme = locus_scheme_find(plan->config.scheme);
    const locus_option_info *option;
    for (size_t i = 0; (option = locus_scheme_option(scheme, i)) != NULL; i++) {
        int64_t value;
        memcpy(&value, (const char *)&plan->config.options + option->offset, sizeof value);
        put(list, option->name, value);
    }
}

/* 1 where axis `axis` of the tensor counts rows, of which each rank has its own number. */
static int counts_rows(const locus_mpi_plan *plan, const locus_tensors *s, const locus_tensor *t,
                       uint32_t axis)
{
    if (t == &s->q || t == &s->k || t == &s->v || t == &s->mask || t == &s->bias_dense ||
        t == &s->pos_query || t == &s->gate)
        return axis == 2;
    if (t == &s->key_mask) return axis == 1;
    if (t == &s->q_positions || t == &s->k_positions) return axis == ring_position_axis(plan, t);
    return 0;
}

static void put_tensor(number_list *list, const locus_mpi_plan *plan, const locus_tensors *s,
                       const locus_tensor *t, const char *name)
{
    put(list, name, locus_present(t) ? 1 + (int64_t)t->dtype * 8 + t->rank : 0);
    for (uint32_t axis = 0; axis < LOCUS_MAX_RANK; axis++)
        put(list, name, axis < t->rank && !counts_rows(plan, s, t, axis) ? t->shape[axis] : 0);
    const int by_value =
        t == &s->q_offsets || t == &s->k_offsets || t == &s->rows || t == &s->frequencies;
    const int is_list = t->rank == 1 && t->shape[0] > 0 && t->data != NULL;
    const size_t bytes = is_list ? (size_t)t->shape[0] * locus_dtype_bytes(t->dtype) : 0;
    put(list, name, by_value && is_list ? hash_of(t->data, bytes) : 0);
}

static void list_numbers(number_list *list, const locus_mpi_plan *plan, const locus_tensors *s)
{
    const locus_config *c = &plan->config;
    put(list, "scheme", hash_of(c->scheme, strlen(c->scheme)));
    put(list, "layout", plan->layout.kind);
    put(list, "block_rows", plan->layout.block_rows);
    put(list, "causal", c->causal);
    put(list, "window_left", c->window_left);
    put(list, "window_right", c->window_right);
    put(list, "query_offset", c->query_offset);
    put_real(list, "scale", c->scale);
    put_real(list, "softcap", c->softcap);
    put_real(list, "dropout", c->dropout);
    put(list, "dropout_seed", (int64_t)c->dropout_seed);
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++)
        put_tensor(list, plan, s, locus_tensor_at_const(s, i), locus_tensor_name(i));
    put_options(list, plan); /* last: another scheme has others */
}

static locus_status compare(const number_list *mine, const int64_t *first, locus_error *error)
{
    for (int i = 0; i < mine->count; i++) {
        if (mine->value[i] == first[i]) continue;
        const int is_tensor = locus_tensor_index(mine->name[i]) >= 0;
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "%s%s: found another %s than on rank 0",
                          is_tensor ? "tensor " : "", mine->name[i],
                          is_tensor ? "type, shape or content" : "value");
    }
    return LOCUS_OK;
}

locus_status ring_check_alike(const locus_mpi_plan *plan, const locus_tensors *shapes,
                              locus_error *error)
{
    number_list mine = {.count = 0};
    int64_t first[MOST_NUMBERS];
    list_numbers(&mine, plan, shapes);
    memcpy(first, mine.value, sizeof first);
    if (MPI_Bcast(first, MOST_NUMBERS, MPI_INT64_T, 0, plan->communicator) != MPI_SUCCESS)
        return locus_fail(error, LOCUS_ERR_IO, "MPI_Bcast failed");
    return compare(&mine, first, error);
}

/* ---- compute calls ---- */

locus_status ring_adopt_results(const locus_results **results, locus_results *copy,
                                const char *name, locus_error *error)
{
    memset(copy, 0, sizeof *copy);
    LOCUS_ADOPT(*results, *copy, name, error);
    return LOCUS_OK;
}

static locus_status check_view(const locus_tensor *t, const locus_tensor *wanted,
                               const char *prefix, const char *name, locus_error *error)
{
    const char *const wrong = !locus_same_shape(t, wanted)                      ? "another shape"
                              : t->dtype != wanted->dtype                       ? "another type"
                              : !locus_strides_fit(t)                           ? "unfit strides"
                              : t->data == NULL && locus_tensor_elements(t) > 0 ? "no data"
                                                                                : NULL;
    if (wrong == NULL) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_TENSOR,
                      "tensor %s%s: found %s, expected what the plan was made for", prefix, name,
                      wrong);
}

locus_status ring_check_inputs(const locus_mpi_plan *plan, const locus_tensors *in,
                               locus_error *error)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(in, i);
        const locus_tensor *wanted = locus_tensor_at_const(&plan->shapes, i);
        if (locus_present(t) || locus_present(wanted))
            LOCUS_TRY(check_view(t, wanted, "", locus_tensor_name(i), error));
    }
    return LOCUS_OK;
}

locus_status ring_check_results(const locus_mpi_plan *plan, const locus_results *results,
                                const char *prefix, int lse_required, locus_error *error)
{
    const locus_tensor *q = &plan->shapes.q;
    const int64_t shape[] = {q->shape[0], q->shape[1], q->shape[2], plan->shapes.v.shape[3]};
    /* dout is an input, of any type that the kernels read */
    const int is_half =
        !lse_required && (results->out.dtype == LOCUS_F16 || results->out.dtype == LOCUS_BF16);
    const locus_tensor out = locus_view(NULL, is_half ? results->out.dtype : LOCUS_F32, 4, shape);
    const locus_tensor lse = locus_view(NULL, LOCUS_F32, 3, shape);
    LOCUS_TRY(check_view(&results->out, &out, prefix, "out", error));
    if (lse_required || locus_present(&results->lse))
        LOCUS_TRY(check_view(&results->lse, &lse, prefix, "lse", error));
    if (locus_present(&results->lse_low))
        LOCUS_TRY(check_view(&results->lse_low, &lse, prefix, "lse_low", error));
    if (locus_present(&results->weights))
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor %sweights: ranks do not give them to each other", prefix);
    return LOCUS_OK;
}

static locus_status check_apart(const locus_tensor *output, const char *name,
                                const locus_tensors *in, locus_error *error)
{
    if (!locus_present(output)) return LOCUS_OK;
    if (locus_overlaps_itself(output))
        return locus_fail(error, LOCUS_ERR_OVERLAP, "output %s overlaps itself", name);
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(in, i);
        if (locus_present(t) && locus_tensors_overlap(output, t))
            return locus_fail(error, LOCUS_ERR_OVERLAP, "output %s overlaps %s", name,
                              locus_tensor_name(i));
    }
    return LOCUS_OK;
}

locus_status ring_check_outputs(const locus_mpi_plan *plan, const locus_tensors *in,
                                const locus_results *results, locus_error *error)
{
    LOCUS_TRY(ring_check_results(plan, results, "", 1, error));
    LOCUS_TRY(check_apart(&results->out, "out", in, error));
    LOCUS_TRY(check_apart(&results->lse, "lse", in, error));
    LOCUS_TRY(check_apart(&results->lse_low, "lse_low", in, error));
    if (locus_tensors_overlap(&results->out, &results->lse) ||
        (locus_present(&results->lse_low) &&
         (locus_tensors_overlap(&results->out, &results->lse_low) ||
          locus_tensors_overlap(&results->lse, &results->lse_low))))
        return locus_fail(error, LOCUS_ERR_OVERLAP, "outputs out, lse and lse_low overlap");
    return LOCUS_OK;
}

/* 1 when some declaration gives the tensor a gradient. */
static int has_gradient(const locus_mpi_plan *plan, size_t index)
{
    const size_t offset = offsetof(locus_tensors, q) + index * sizeof(locus_tensor);
    const locus_scheme_info *scheme = locus_scheme_find(plan->config.scheme);
    const locus_tensor_info *info;
    for (size_t i = 0; (info = locus_common_tensor(i)) != NULL; i++)
        if (info->offset == offset) return (info->uses & LOCUS_USE_GRADIENT) != 0;
    for (size_t i = 0; (info = locus_scheme_tensor(scheme, i)) != NULL; i++)
        if (info->offset == offset) return (info->uses & LOCUS_USE_GRADIENT) != 0;
    return 0;
}

locus_status ring_check_gradients(const locus_mpi_plan *plan, const locus_tensors *in,
                                  const locus_results *results, const locus_results *dresults,
                                  const locus_tensors *grad, locus_error *error)
{
    const locus_tensor *const others[] = {&results->out, &results->lse, &results->lse_low,
                                          &dresults->out, &dresults->lse};
    LOCUS_TRY(ring_check_results(plan, results, "", 1, error));
    LOCUS_TRY(ring_check_results(plan, dresults, "d", 0, error));
    if (locus_present(&dresults->lse_low))
        return locus_fail(error, LOCUS_ERR_TENSOR, "dlse_low: lse_low has no gradient");
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(grad, i);
        const char *name = locus_tensor_name(i);
        if (!locus_present(t)) continue;
        if (!has_gradient(plan, i))
            return locus_fail(error, LOCUS_ERR_TENSOR, "grad.%s: %s has no gradient", name, name);
        locus_tensor wanted = *locus_tensor_at_const(&plan->shapes, i);
        wanted.dtype = LOCUS_F32; /* sums of many ranks, whatever the input has */
        LOCUS_TRY(check_view(t, &wanted, "grad.", name, error));
        LOCUS_TRY(check_apart(t, name, in, error));
        for (size_t k = 0; k < sizeof others / sizeof *others; k++)
            if (locus_tensors_overlap(t, others[k]))
                return locus_fail(error, LOCUS_ERR_OVERLAP,
                                  "output grad.%s overlaps out, lse, lse_low, dout or dlse", name);
        for (size_t k = 0; k < i; k++)
            if (locus_present(locus_tensor_at_const(grad, k)) &&
                locus_tensors_overlap(t, locus_tensor_at_const(grad, k)))
                return locus_fail(error, LOCUS_ERR_OVERLAP, "output grad.%s overlaps grad.%s", name,
                                  locus_tensor_name(k));
    }
    return LOCUS_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "model/pass.h"

#include <inttypes.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "model/run.h"

/* ---- plans ---- */

/* Whether one call can attend in all sequences: nothing lies before their tokens, no score depends
 * on types, and all turn by the same frequencies. */
static int goes_together(const locus_model_pass *p, const attention *a)
{
    const int64_t longest = p->longest[a->stack];
    const int stretched = model_rope_stretches(&a->rope, longest);
    return longest < p->tokens[a->stack] && p->cache == NULL && a->stack == 0 && a->memory == 0 &&
           !a->segments && !stretched;
}

/* q, k and v as the operators have them; data is not read. */
static void set_shapes(const locus_model_pass *p, const pass_plan *like, locus_tensors *t)
{
    const program *all = &p->model->program;
    const attention *a = &all->attentions[like->attention];
    int64_t rows[EXTENTS];
    pass_rows(p, rows);
    *t = (locus_tensors){.size = sizeof *t};
    /* all of its operators have tables alike */
    attend_tables(all, &all->ops[a->op], NULL, rows, t);
    t->q = locus_view_bthd(NULL, 1, like->queries, a->heads, a->head_dim);
    t->k = t->v = locus_view_bthd(NULL, 1, like->keys, a->kv_heads, a->head_dim);
    if (p->cache != NULL) t->frequencies = (locus_tensor){.rank = 0}; /* keys are turned before */
    if (like->all) t->q_offsets = t->k_offsets = pass_offsets(p, a->stack);
    if (like->pairs)
        t->bias_dense = locus_view(NULL, LOCUS_F32, 4,
                                   (const int64_t[]){1, a->heads, like->queries, like->keys});
}

static locus_status make_plan(const locus_model_pass *p, pass_plan *made, locus_error *error)
{
    const attention *a = &p->model->program.attentions[made->attention];
    float frequency[MODEL_MOST_PAIRS];
    locus_config config = a->config;
    locus_tensors shapes;
    set_shapes(p, made, &shapes);
    if (p->cache != NULL && a->rope.base > 0.0) LOCUS_TRY(model_attend_turned(a, &config));
    if (a->distances) config.options.delta_min = p->first_distance;
    const int64_t tokens = made->all ? p->longest[a->stack] : made->keys;
    if (model_rope_stretches(&a->rope, tokens) && shapes.frequencies.rank != 0) {
        model_rope_frequencies(&a->rope, a->turned, tokens, frequency);
        shapes.frequencies.data = frequency;
    }
    return locus_plan_new(&made->plan, &config, &shapes, error);
}

static locus_status add_plan(locus_model_pass *p, const pass_plan *like, size_t *index,
                             locus_error *error)
{
    for (size_t i = 0; i < p->plan_count; i++) {
        const pass_plan *other = &p->plans[i];
        if (other->queries != like->queries || other->keys != like->keys ||
            other->attention != like->attention || other->pairs != like->pairs || other->all ||
            like->all)
            continue;
        *index = i;
        return LOCUS_OK;
    }
    p->plans[p->plan_count] = *like;
    LOCUS_TRY(make_plan(p, &p->plans[p->plan_count], error));
    *index = p->plan_count++;
    return LOCUS_OK;
}

/* The plan of sequence s, and behind it that with pairs of two types where there are such. */
static locus_status add_plans(locus_model_pass *p, int kind, int64_t s, locus_error *error)
{
    const attention *a = &p->model->program.attentions[kind];
    const int64_t length = p->offsets[a->stack][s + 1] - p->offsets[a->stack][s];
    pass_plan like = {.queries = length,
                      .keys = pass_past(p, s) + length + a->memory,
                      .attention = kind};
    size_t behind;
    if (length == 0) return LOCUS_OK;
    if (a->cross) like.keys = pass_text(p, s)[1] - pass_text(p, s)[0];
    LOCUS_TRY(add_plan(p, &like, &p->kinds[kind].plan_of[s], error));
    if (!a->segments) return LOCUS_OK;
    like.pairs = 1;
    return add_plan(p, &like, &behind, error);
}

static void free_plans(locus_model_pass *p)
{
    for (size_t i = 0; i < p->plan_count; i++) locus_plan_free(p->plans[i].plan);
    p->plan_count = 0;
}

static locus_status set_plans(locus_model_pass *p, locus_error *error)
{
    const program *all = &p->model->program;
    for (int k = 0; k < all->attention_count; k++) {
        const attention *a = &all->attentions[k];
        if (!pass_runs(p, a->stack)) continue;
        p->kinds[k].together = goes_together(p, a);
        if (p->kinds[k].together)
            LOCUS_TRY(add_plan(p,
                               &(pass_plan){.queries = p->tokens[a->stack],
                                            .keys = p->tokens[a->stack],
                                            .attention = k,
                                            .all = 1},
                               &p->kinds[k].plan_of[0], error));
        for (int64_t s = 0; s < p->sequences && !p->kinds[k].together; s++)
            LOCUS_TRY(add_plans(p, k, s, error));
    }
    return LOCUS_OK;
}

/* ---- lengths ---- */

static locus_status set_lengths(locus_model_pass *p, int stack, const int64_t *offsets,
                                locus_error *error)
{
    const int64_t most = p->model->stacks[stack].most_tokens;
    LOCUS_TRY(model_check_offsets(offsets, p->sequences, error));
    p->longest[stack] = 0;
    for (int64_t s = 0; s < p->sequences; s++) {
        const int64_t length = offsets[s + 1] - offsets[s];
        const int64_t all = length + pass_past(p, s);
        if (!model_is_length(all))
            return locus_fail(error, LOCUS_ERR_ARGUMENT,
                              "sequence %" PRId64 ": found %" PRId64 " tokens, expected 0 to %d", s,
                              all, MODEL_MOST_TOKENS);
        if (most > 0 && all > most)
            return locus_fail(error, LOCUS_ERR_RANGE,
                              "sequence %" PRId64 ": found %" PRId64
                              " tokens, the model takes at most %" PRId64,
                              s, all, most);
        if (length > p->longest[stack]) p->longest[stack] = length;
    }
    p->tokens[stack] = offsets[p->sequences];
    memcpy(p->offsets[stack], offsets, ((size_t)p->sequences + 1) * sizeof *offsets);
    return LOCUS_OK;
}

/* The most plans that one set of lengths needs: two for each attention and sequence. */
static size_t most_plans(const locus_model_pass *p)
{
    return 2 * (size_t)p->model->program.attention_count * ((size_t)p->sequences + 1);
}

locus_status model_pass_set(locus_model_pass *p, const int64_t *offsets,
                            const int64_t *decoder_offsets, locus_error *error)
{
    const int64_t rows = p->distance_rows;
    LOCUS_TRY(set_lengths(p, p->first_stack, offsets, error));
    if (decoder_offsets != NULL) LOCUS_TRY(set_lengths(p, 1, decoder_offsets, error));
    LOCUS_TRY(model_distances_new(p, error));
    if (p->plan_count + most_plans(p) > p->plan_room || p->distance_rows != rows)
        free_plans(p); /* those of lengths gone by */
    LOCUS_TRY(set_plans(p, error));
    if (!model_measure(p))
        return locus_fail(error, LOCUS_ERR_MEMORY,
                          "model: these lengths need more memory than a machine can address");
    return LOCUS_OK;
}

/* ---- new and free ---- */

enum { SPARE_PLANS = 64 }; /* of lengths that come again */

static int take_arrays(locus_model_pass *p)
{
    const locus_allocator *a = p->model->allocator;
    const size_t count = (size_t)p->sequences + 1;
    const size_t kinds = (size_t)p->model->program.attention_count;
    p->plan_room = most_plans(p) + SPARE_PLANS;
    p->plans = locus_allocate(a, p->plan_room, sizeof *p->plans);
    p->kinds = locus_allocate(a, kinds + 1, sizeof *p->kinds);
    int there = p->plans != NULL && p->kinds != NULL;
    for (size_t k = 0; there && k < kinds; k++) {
        p->kinds[k].plan_of = locus_allocate(a, count, sizeof *p->kinds[k].plan_of);
        there = p->kinds[k].plan_of != NULL;
    }
    for (int s = 0; there && s < 2; s++) {
        if (!pass_runs(p, s)) continue;
        p->offsets[s] = locus_allocate(a, count, sizeof *p->offsets[s]);
        p->ragged[s] = (locus_ragged){.offsets = p->offsets[s], .sequences = p->sequences};
        there = p->offsets[s] != NULL;
    }
    return there;
}

locus_status model_pass_make(locus_model_pass **out, const locus_model *model, model_cache *cache,
                             int first_stack, int stack_count, int64_t sequences,
                             locus_error *error)
{
    *out = NULL;
    locus_model_pass *p = locus_allocate(model->allocator, 1, sizeof *p);
    if (p == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory");
    p->model = model;
    p->cache = cache;
    p->first_stack = first_stack;
    p->stack_count = stack_count;
    p->sequences = sequences;
    if (take_arrays(p)) {
        *out = p;
        return LOCUS_OK;
    }
    locus_model_pass_free(p);
    return locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory");
}

void locus_model_pass_free(locus_model_pass *p)
{
    if (p == NULL) return;
    const locus_allocator *a = p->model->allocator;
    free_plans(p);
    for (int k = 0; p->kinds != NULL && k < p->model->program.attention_count; k++)
        locus_release(a, p->kinds[k].plan_of);
    void *const blocks[] = {p->plans, p->kinds, p->offsets[0], p->offsets[1], p->sinusoid};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) locus_release(a, blocks[i]);
    locus_release(a, p);
}

static locus_status new_pass(locus_model_pass **out, const locus_model *model,
                             const int64_t *offsets, const int64_t *decoder_offsets,
                             int64_t sequences, locus_error *error)
{
    LOCUS_TRY(
        model_pass_make(out, model, NULL, 0, decoder_offsets != NULL ? 2 : 1, sequences, error));
    const locus_status status = model_pass_set(*out, offsets, decoder_offsets, error);
    if (status == LOCUS_OK) return LOCUS_OK;
    locus_model_pass_free(*out);
    *out = NULL;
    return status;
}

locus_status locus_model_pass_new(locus_model_pass **out, const locus_model *model,
                                  const int64_t *offsets, int64_t sequences, locus_error *error)
{
    if (out == NULL || model == NULL || offsets == NULL || sequences < 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "model: NULL or negative argument");
    return new_pass(out, model, offsets, NULL, sequences, error);
}

locus_status locus_model_pass_both(locus_model_pass **out, const locus_model *model,
                                   const int64_t *offsets, const int64_t *decoder_offsets,
                                   int64_t sequences, locus_error *error)
{
    if (out == NULL || model == NULL || offsets == NULL || decoder_offsets == NULL || sequences < 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "model: NULL or negative argument");
    *out = NULL;
    if (model->stack_count < 2)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "model: it has no decoder behind an encoder (model_type %s)",
                          model->family->type);
    return new_pass(out, model, offsets, decoder_offsets, sequences, error);
}

size_t locus_model_workspace(const locus_model_pass *pass) { return pass->bytes; }

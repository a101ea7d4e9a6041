/* SPDX-License-Identifier: Apache-2.0 */
/* locus bench: tensors, plans and workspace for every line of the table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/measure.h"
#include "cli/machine.h"

/* ---- names ---- */

const char *bench_direction_name(bench_direction direction)
{
    static const char *const names[] = {"forward", "backward", "forward+backward", "input grad",
                                        "weight grad"};
    return names[direction];
}

char *bench_row_name(char *buffer, size_t capacity, const bench_row *row)
{
    static const char *const views[] = {"",        "+causal", "+padded", "+dropout",
                                        "+peaked", "+kept",   "+decode"};
    const locus_dtype dtype = row->linear != NULL ? LOCUS_F32 : row->input->group->dtype;
    snprintf(buffer, capacity, "%s%s%s%s", row->linear != NULL ? "linear" : row->input->kind->name,
             views[row->view],
             dtype == LOCUS_F16    ? "+f16"
             : dtype == LOCUS_BF16 ? "+bf16"
                                   : "",
             row->prepared ? "+prepared" : "");
    return buffer;
}

/* ---- memory ---- */

static void *zeroed(size_t bytes)
{
    void *block = aligned_alloc(64, (bytes / 64 + 1) * 64);
    if (block != NULL) memset(block, 0, (bytes / 64 + 1) * 64);
    return block;
}

/* A dense F32 tensor of the shape of `like`, kept in `blocks`. */
static int take_like(void **blocks, size_t *count, locus_tensor *tensor, const locus_tensor *like)
{
    *tensor = locus_view(NULL, LOCUS_F32, like->rank, like->shape);
    tensor->data = zeroed((size_t)locus_tensor_elements(like) * sizeof(float));
    if (tensor->data != NULL) blocks[(*count)++] = tensor->data;
    return tensor->data != NULL;
}

/* The same numbers read as [B,T,H,D]: which is which does not matter to time. */
static locus_tensor laid_out(const bench_group *group, locus_tensor t)
{
    if (!group->by_tokens) return t;
    t.stride[1] = t.shape[3];
    t.stride[2] = t.shape[1] * t.shape[3];
    return t;
}

static int take_rows(void **blocks, size_t *count, locus_tensor *tensor, const locus_tensor *like,
                     const bench_group *group)
{
    if (!take_like(blocks, count, tensor, like)) return 0;
    *tensor = laid_out(group, *tensor);
    tensor->dtype = group->dtype;
    return 1;
}

static int take_results(void **blocks, size_t *count, locus_results *results,
                        const bench_group *group)
{
    const locus_tensor *q = &group->in.q;
    const locus_tensor lse = locus_view(NULL, LOCUS_F32, 3, q->shape);
    return take_rows(blocks, count, &results->out, q, group) &&
           take_like(blocks, count, &results->lse, &lse);
}

static int take_weights(void **blocks, size_t *count, locus_results *results,
                        const bench_group *group)
{
    const int64_t shape[] = {group->batch, group->heads, group->n, group->n};
    const locus_tensor weights = locus_view(NULL, LOCUS_F32, 4, shape);
    return take_like(blocks, count, &results->weights, &weights);
}

/* ---- groups ---- */

/* About the same work at every length, and enough heads in flight at short ones. */
static int64_t usual_heads(int64_t n, int decode)
{
    if (decode) return 12;
    if (n <= 128) return 96;
    return 8192 / n > 2 ? 8192 / n : 2;
}

/* The second half of the keys takes no part. */
static int make_key_mask(bench_group *g)
{
    const int64_t shape[] = {g->batch, g->n};
    unsigned char *mask = zeroed((size_t)(g->batch * g->n));
    if (mask == NULL) return 0;
    g->blocks[g->block_count++] = mask;
    for (int64_t b = 0; b < g->batch; b++) memset(mask + b * g->n, 1, (size_t)((g->n + 1) / 2));
    g->key_mask = locus_view(mask, LOCUS_U8, 2, shape);
    return 1;
}

static int make_peaked(bench_group *g)
{
    const int64_t count = locus_tensor_elements(&g->in.q);
    if (!take_rows(g->blocks, &g->block_count, &g->peaked_q, &g->in.q, g)) return 0;
    for (int64_t i = 0; i < count; i++)
        ((float *)g->peaked_q.data)[i] = BENCH_PEAK * (float)bench_number(&g->in.q, i);
    g->peaked_q.dtype = LOCUS_F32;
    if (g->dtype != LOCUS_F32) bench_narrow(&g->peaked_q, g->dtype);
    return 1;
}

static int share_tensors(bench_group *g)
{
    locus_tensors *made = g->base->in;
    locus_tensor *const rows[] = {&made->q, &made->k, &made->v, &g->base->dout};
    for (size_t i = 0; g->dtype != LOCUS_F32 && i < sizeof rows / sizeof *rows; i++)
        bench_narrow(rows[i], g->dtype);
    void **blocks = g->blocks;
    size_t *count = &g->block_count;
    g->in.size = sizeof g->in;
    g->grad.size = sizeof g->grad;
    g->results.size = sizeof g->results;
    g->in.q = laid_out(g, made->q);
    g->in.k = laid_out(g, made->k);
    g->in.v = laid_out(g, made->v);
    g->dout = laid_out(g, g->base->dout);
    if (g->decode) { /* the last query alone */
        g->in.q.shape[2] = 1;
        g->in.q.data = (char *)made->q.data +
                       (g->n - 1) * g->in.q.stride[2] * (int64_t)locus_dtype_bytes(g->dtype);
    }
    return take_results(blocks, count, &g->results, g) &&
           take_rows(blocks, count, &g->grad.q, &made->q, g) &&
           take_rows(blocks, count, &g->grad.k, &made->k, g) &&
           take_rows(blocks, count, &g->grad.v, &made->v, g) &&
           take_rows(blocks, count, &g->sparse_dout, &g->dout, g) && make_key_mask(g);
}

static locus_status group_new(bench_group *g, const bench_request *r, uint32_t n, uint32_t d,
                              locus_dtype dtype, locus_error *error)
{
    g->dtype = dtype;
    g->n = n;
    g->d = d;
    g->decode = r->views[BENCH_DECODE];
    g->by_tokens = r->by_tokens;
    g->batch = r->batch > 0 ? r->batch : 1;
    g->heads = r->heads > 0 ? r->heads : usual_heads(n, g->decode);
    const locus_problem_request request = {.size = sizeof request,
                                           .scheme = "none",
                                           .level = LOCUS_ATTEND,
                                           .B = g->batch,
                                           .H = g->heads,
                                           .T = n,
                                           .D = d,
                                           .seed = 2017};
    const locus_status status = locus_problem_new(&g->base, &request, error);
    if (status != LOCUS_OK) return status;
    const int made = share_tensors(g) && (!r->views[BENCH_PEAKED] || make_peaked(g));
    return made ? LOCUS_OK : LOCUS_ERR_MEMORY;
}

static void group_free(bench_group *g)
{
    locus_problem_free(g->base);
    for (size_t i = 0; i < g->block_count; i++) free(g->blocks[i]);
}

/* ---- inputs ---- */

static locus_status input_new(bench_input *input, bench_group *group, const bench_kind *kind,
                              locus_error *error)
{
    input->group = group;
    input->kind = kind;
    const locus_status status = bench_build_problem(&input->problem, group, kind, error);
    if (status != LOCUS_OK) return status;
    input->grad = group->grad;
    input->in = *input->problem->in;
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        locus_tensor *tensor = locus_tensor_at(&input->in, i);
        locus_tensor *grad = locus_tensor_at(&input->grad, i);
        if (tensor->rank == 0 || tensor->dtype != LOCUS_F32) continue;
        if (group->dtype != LOCUS_F32) bench_narrow(tensor, group->dtype);
        /* A dense bias is a constant here: its gradient would be n x n. */
        if (grad->rank != 0 || tensor == &input->in.bias_dense) continue;
        if (!take_like(input->blocks, &input->block_count, grad, tensor)) return LOCUS_ERR_MEMORY;
        grad->dtype = group->dtype;
    }
    return LOCUS_OK;
}

static void input_free(bench_input *input)
{
    if (input->has_yardstick) yardstick_free(&input->yardstick);
    locus_problem_free(input->problem);
    for (size_t i = 0; i < input->block_count; i++) free(input->blocks[i]);
}

/* Too large to be measured in passing, or not there at all. */
static int is_passed_over(const bench_kind *kind, const bench_group *g)
{
    return kind->dense && (g->decode || (!kind->asked && g->heads * g->n * g->n > 1 << 26));
}

/* ---- rows ---- */

static void choose_view(bench_row *row, const bench_request *r)
{
    const int looks_back = (row->input->kind->scheme->traits & LOCUS_TRAIT_CAUSAL) != 0;
    row->config.causal = row->view == BENCH_CAUSAL || looks_back;
    if (row->view == BENCH_PADDED) row->in.key_mask = row->input->group->key_mask;
    if (row->view == BENCH_DROPOUT) row->config.dropout = r->dropout;
    if (row->view == BENCH_PEAKED) row->in.q = row->input->group->peaked_q;
    if (row->view != BENCH_DECODE) return;
    row->config.query_offset = row->input->group->n - 1;
}

static locus_status row_new(bench_row *row, const bench_request *r, locus_error *error)
{
    bench_input *input = row->input;
    row->allocator = counted_allocator(&row->plan_bytes);
    row->config = *input->problem->config;
    row->config.allocator = &row->allocator;
    row->config.threads = row->threads;
    row->config.isa = row->isa;
    row->in = input->in;
    choose_view(row, r);
    row->results = input->group->results;
    size_t count = 0;
    if (row->direction == BENCH_BACKWARD && /* keeps what its forward pass gave */
        !take_results(row->blocks, &count, &row->results, input->group))
        return LOCUS_ERR_MEMORY;
    if (row->view == BENCH_KEPT && !take_weights(row->blocks, &count, &row->results, input->group))
        return LOCUS_ERR_MEMORY;
    locus_status status = locus_plan_new(&row->plan, &row->config, &row->in, error);
    if (status == LOCUS_OK && row->prepared)
        status = locus_tables_new(&row->tables, row->plan, &row->in, error);
    if (status == LOCUS_OK && row->prepared && row->direction != BENCH_FORWARD)
        status = locus_tables_new_backward(&row->backward_tables, row->plan, &row->in, error);
    if (status != LOCUS_OK) return status;
    const size_t forward = locus_forward_workspace(row->plan);
    const size_t backward =
        row->direction == BENCH_FORWARD ? 0 : locus_backward_workspace(row->plan);
    row->workspace_bytes = forward > backward ? forward : backward;
    row->flops = bench_flops(row);
    return LOCUS_OK;
}

static void row_free(bench_row *row)
{
    locus_tables_free(row->tables);
    locus_tables_free(row->backward_tables);
    locus_plan_free(row->plan);
    for (size_t i = 0; i < sizeof row->blocks / sizeof *row->blocks; i++) free(row->blocks[i]);
}

/* ---- all together ---- */

static int has_plain(const bench_request *r)
{
    for (size_t i = 0; i < r->kind_count; i++)
        if (strcmp(r->kinds[i].name, "none") == 0) return 1;
    return 0;
}

/* Without plain attention there is nothing to compare with: it is then measured unseen. */
static int add_unseen_plain(bench_request *r)
{
    if (r->kind_count == 0 || has_plain(r) || r->kind_count >= BENCH_KINDS) return 0;
    memmove(r->kinds + 1, r->kinds, r->kind_count * sizeof *r->kinds);
    r->kinds[0] = (bench_kind){.name = "none", .scheme = locus_scheme_find("none")};
    r->kind_count++;
    return 1;
}

static locus_status build_inputs(bench *b, locus_error *error)
{
    const bench_request *r = &b->request;
    for (size_t i = 0; r->kind_count > 0 && i < r->n_count; i++)
        for (size_t k = 0; k < r->d_count * r->dtype_count; k++) {
            bench_group *group = &b->groups[b->group_count++];
            locus_status status = group_new(group, r, r->n[i], r->d[k / r->dtype_count],
                                            r->dtypes[k % r->dtype_count], error);
            for (size_t s = 0; status == LOCUS_OK && s < r->kind_count; s++)
                if (!is_passed_over(&r->kinds[s], group))
                    status = input_new(&b->inputs[b->input_count++], group, &r->kinds[s], error);
            if (status != LOCUS_OK) return status;
        }
    return LOCUS_OK;
}

/* 1: the scheme has tensors of its own, which a call packs or lowers. */
static int has_tables(const bench_input *input)
{
    const locus_tensors *in = &input->in;
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(in, i);
        if (t->rank != 0 && t != &in->q && t != &in->k && t != &in->v && t != &in->bias_dense)
            return 1;
    }
    return 0;
}

/* One line per instruction set and thread count; two, where tables are prepared. */
static locus_status build_rows_of(bench *b, bench_input *input, int view, int direction, int shown,
                                  locus_error *error)
{
    const bench_request *r = &b->request;
    const size_t each = has_tables(input) && r->prepared ? 2 : 1;
    for (size_t i = 0; i < r->isa_count; i++)
        for (size_t k = 0; k < r->thread_count * each; k++) {
            bench_row *row = &b->rows[b->row_count++];
            *row = (bench_row){.input = input,
                               .view = (bench_view)view,
                               .direction = (bench_direction)direction,
                               .isa = r->isas[i],
                               .threads = r->threads[k / each],
                               .prepared = k % each != 0,
                               .shown = shown};
            const locus_status status = row_new(row, r, error);
            if (status != LOCUS_OK) return status;
        }
    return LOCUS_OK;
}

static locus_status build_rows(bench *b, int unseen, locus_error *error)
{
    const bench_request *r = &b->request;
    for (size_t i = 0; i < b->input_count; i++) {
        bench_input *input = &b->inputs[i];
        const int shown = !(unseen && input->kind == &r->kinds[0]);
        for (int view = 0; view < BENCH_VIEWS; view++)
            for (int direction = 0; direction < BENCH_DIRECTIONS; direction++) {
                if (!r->views[view] || !r->directions[direction]) continue;
                if (view == BENCH_KEPT && input->group->n > LOCUS_KEPT_WEIGHTS) continue;
                const locus_status status = build_rows_of(b, input, view, direction, shown, error);
                if (status != LOCUS_OK) return status;
            }
    }
    return LOCUS_OK;
}

static int is_of_size(const bench_group *g, const bench_group *other)
{
    return g->n == other->n && g->d == other->d;
}

/* The same call without positions; for plain attention itself, one that sees every key; for halves,
 * the same call on floats; with prepared tables, without. */
static const bench_row *plain_of(const bench *b, const bench_row *row)
{
    if (row->prepared) return row - 1; /* see build_rows_of */
    const bench_group *group = row->input->group;
    const int halves = group->dtype != LOCUS_F32;
    const char *kind = halves ? row->input->kind->name : "none";
    const int itself = !halves && strcmp(row->input->kind->name, "none") == 0;
    const bench_view view = itself && row->view != BENCH_DECODE ? BENCH_WHOLE : row->view;
    for (size_t i = 0; i < b->row_count; i++) {
        const bench_row *p = &b->rows[i];
        if (is_of_size(p->input->group, group) && p->input->group->dtype == LOCUS_F32 &&
            !p->prepared && p->view == view && p->direction == row->direction &&
            p->threads == row->threads && p->isa == row->isa &&
            strcmp(p->input->kind->name, kind) == 0)
            return p;
    }
    return NULL;
}

static int allocate_workspace(bench *b)
{
    for (size_t i = 0; i < b->row_count; i++) {
        b->rows[i].plain = plain_of(b, &b->rows[i]);
        if (b->rows[i].workspace_bytes > b->workspace_bytes)
            b->workspace_bytes = b->rows[i].workspace_bytes;
    }
    b->workspace = zeroed(b->workspace_bytes);
    return b->workspace != NULL;
}

locus_status bench_build(bench *b, locus_error *error)
{
    bench_request *r = &b->request;
    const int unseen = add_unseen_plain(r);
    const size_t groups = r->n_count * r->d_count * r->dtype_count, inputs = groups * r->kind_count;
    const size_t rows = inputs * BENCH_VIEWS * BENCH_DIRECTIONS * r->isa_count * r->thread_count *
                        (r->prepared ? 2 : 1);
    b->groups = calloc(groups + 1, sizeof *b->groups);
    b->inputs = calloc(inputs + 1, sizeof *b->inputs);
    b->rows = calloc(rows + bench_linear_rows(r) + 1, sizeof *b->rows);
    if (b->groups == NULL || b->inputs == NULL || b->rows == NULL) return LOCUS_ERR_MEMORY;
    locus_status status = build_inputs(b, error);
    if (status == LOCUS_OK) status = build_rows(b, unseen, error);
    if (status == LOCUS_OK && !allocate_workspace(b)) status = LOCUS_ERR_MEMORY;
    if (status == LOCUS_OK) status = bench_build_linear(b);
    return status;
}

void bench_free(bench *b)
{
    for (size_t i = 0; i < b->row_count; i++) row_free(&b->rows[i]);
    for (size_t i = 0; i < b->input_count; i++) input_free(&b->inputs[i]);
    for (size_t i = 0; i < b->group_count; i++) group_free(&b->groups[i]);
    if (b->has_blas) blas_close(&b->blas);
    linear_pool_free(&b->pool);
    free(b->cases);
    free(b->scratch.data);
    free(b->workspace);
    free(b->buffer);
    free(b->rows);
    free(b->inputs);
    free(b->groups);
    memset(b, 0, sizeof *b);
}

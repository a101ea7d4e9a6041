/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi/plan.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include <locus/runtime.h>

#include "core/adopt.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/tensor.h"
#include "mpi/call.h"
#include "mpi/check.h"
#include "mpi/rows.h"

enum {
    BLOCK_ROWS = 8192,         /* of a piece, where the caller does not say */
    MOST_PIECE_BYTES = 1 << 30 /* of a message: MPI counts in int           */
};

/* ---- what the caller says ---- */

static const char *kept_path(const char *path)
{
    return path == NULL ? NULL : strcmp(path, "rows") == 0 ? "rows" : "tiles";
}

/* A copy that outlives the caller's texts. What is wrong in it, locus_plan_new says. */
static locus_status adopt_config(locus_mpi_plan *plan, const locus_config *config,
                                 locus_error *error)
{
    locus_config *own = &plan->config;
    locus_config seen = {.scheme = NULL};
    LOCUS_TRY(locus_adopt(&seen, sizeof seen, config, "config", error));
    if (seen.scheme == NULL || locus_config_init(own, seen.scheme) != LOCUS_OK)
        return locus_fail(error, LOCUS_ERR_SCHEME, "scheme: found %s, expected one of the list",
                          seen.scheme == NULL ? "NULL" : seen.scheme);
    LOCUS_TRY(locus_adopt(own, sizeof *own, config, "config", error));
    own->options.size = sizeof own->options;
    own->scheme = locus_scheme_find(own->scheme)->name;
    own->path = kept_path(own->path);
    if (own->isa != NULL && (own->isa = locus_isa_pick(own->isa)) == NULL)
        return locus_fail(error, LOCUS_ERR_ISA, "isa: config names no kernel table");
    if (own->key_offset != 0 || own->first_query != 0 || own->first_batch != 0)
        return locus_fail(
            error, LOCUS_ERR_OPTION,
            "key_offset, first_query, first_batch: found one above 0, expected 0 (the "
            "ranks share a whole call)");
    plan->allocator = own->allocator;
    plan->threads = own->threads != 0 ? own->threads : locus_default_threads();
    return LOCUS_OK;
}

static locus_status adopt_options(locus_mpi_plan *plan, const locus_mpi_options *options,
                                  locus_error *error)
{
    locus_mpi_options own = {.size = sizeof own};
    if (options != NULL) LOCUS_TRY(locus_adopt(&own, sizeof own, options, "options", error));
    if (own.layout > LOCUS_MPI_ZIGZAG)
        return locus_fail(error, LOCUS_ERR_OPTION, "layout: found %u, expected 0 or 1",
                          (unsigned)own.layout);
    if (own.block_rows < 0)
        return locus_fail(error, LOCUS_ERR_OPTION,
                          "block_rows: found %" PRId64 ", expected 0 or more", own.block_rows);
    plan->layout.kind = own.layout;
    plan->layout.block_rows = own.block_rows > 0 ? own.block_rows : BLOCK_ROWS;
    return LOCUS_OK;
}

static locus_status need_rows(const locus_tensor *t, const char *name, locus_error *error)
{
    if (t->rank == 4 && t->shape[2] >= 0) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s: found %u axes, expected 4", name,
                      (unsigned)t->rank);
}

static locus_status adopt(locus_mpi_plan *plan, const locus_config *config,
                          const locus_mpi_options *options, const locus_tensors *shapes,
                          locus_error *error)
{
    locus_tensors copy;
    if (config == NULL || shapes == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "plan: NULL argument");
    LOCUS_TRY(adopt_config(plan, config, error));
    LOCUS_TRY(adopt_options(plan, options, error));
    LOCUS_TRY(locus_adopt_tensors(&shapes, &copy, "shapes", error));
    LOCUS_TRY(need_rows(&shapes->q, "q", error));
    LOCUS_TRY(need_rows(&shapes->k, "k", error));
    LOCUS_TRY(need_rows(&shapes->v, "v", error));
    plan->shapes = *shapes;
    return LOCUS_OK;
}

/* ---- the layout ---- */

/* causal keeps delta >= 0, the window keeps -right <= delta <= left. */
static void set_reach(ring_layout *layout, const locus_config *config)
{
    layout->low = config->causal ? 0 : -INT64_MAX / 4;
    layout->high = INT64_MAX / 4;
    if (config->window_right >= 0 && layout->low < -config->window_right)
        layout->low = -config->window_right;
    if (config->window_left >= 0) layout->high = config->window_left;
    layout->query_offset = config->query_offset;
}

/* Collective: how many rows each rank has. */
static locus_status count_rows(locus_mpi_plan *plan, ring_side *side, int64_t mine,
                               locus_error *error)
{
    ring_layout *l = &plan->layout;
    if (MPI_Allgather(&mine, 1, MPI_INT64_T, side->first, 1, MPI_INT64_T, plan->communicator) !=
        MPI_SUCCESS)
        return locus_fail(error, LOCUS_ERR_IO, "MPI_Allgather failed");
    for (int rank = 0; rank < l->ranks; rank++) {
        const int64_t rows = side->first[rank];
        side->first[rank] = side->rows;
        side->rows += rows;
    }
    side->first[l->ranks] = side->rows;
    return LOCUS_OK;
}

static locus_status copy_offsets(locus_mpi_plan *plan, ring_side *side, const locus_tensor *t,
                                 const char *name, locus_error *error)
{
    const int64_t count = t->rank == 1 ? t->shape[0] : 0;
    const int64_t *from = t->data;
    if (t->dtype != LOCUS_I64 || count < 2 || from == NULL || from[0] != 0 ||
        from[count - 1] != side->rows)
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor %s: expected I64 [S+1] from 0 to %" PRId64
                          ", the rows of all ranks",
                          name, side->rows);
    side->offsets = locus_allocate(plan->allocator, (size_t)count, sizeof *side->offsets);
    if (side->offsets == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "plan: out of memory");
    memcpy(side->offsets, from, (size_t)count * sizeof *from);
    for (int64_t s = 1; s < count; s++)
        if (from[s] < from[s - 1])
            return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s: found numbers that fall", name);
    plan->layout.sequences = count - 1;
    return LOCUS_OK;
}

static locus_status take_offsets(locus_mpi_plan *plan, locus_error *error)
{
    const locus_tensors *s = &plan->shapes;
    if (locus_present(&s->q_offsets) != locus_present(&s->k_offsets) ||
        (locus_present(&s->q_offsets) && s->q_offsets.shape[0] != s->k_offsets.shape[0]))
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor q_offsets: expected as many numbers as k_offsets has");
    if (!locus_present(&s->q_offsets)) return LOCUS_OK;
    LOCUS_TRY(copy_offsets(plan, &plan->layout.q, &s->q_offsets, "q_offsets", error));
    return copy_offsets(plan, &plan->layout.k, &s->k_offsets, "k_offsets", error);
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }
static int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }

/* Keys, or their gradients, which are floats whatever the keys are. */
static size_t message_bytes(const locus_mpi_plan *plan, int64_t rows)
{
    return larger(ring_piece_of(plan, rows, NULL).bytes,
                  ring_piece_gradients(plan, rows, NULL).bytes);
}

/* Fewer rows where a message would be too long. */
static locus_status fit_pieces(locus_mpi_plan *plan, locus_error *error)
{
    int64_t *rows = &plan->layout.block_rows;
    *rows = min_i64(*rows, MOST_PIECE_BYTES); /* a row has a byte at least */
    while (*rows > 1 && message_bytes(plan, *rows) > MOST_PIECE_BYTES) *rows /= 2;
    if (message_bytes(plan, *rows) > MOST_PIECE_BYTES)
        return locus_fail(error, LOCUS_ERR_MEMORY, "tensor k: found a row of more than 2^30 bytes");
    return LOCUS_OK;
}

/* ---- the largest block ---- */

/* Blocks of one shape at one distance have plans of one size: each is made once. */
typedef struct met_block {
    int64_t queries, keys, distance;
} met_block;

typedef struct met_list {
    met_block *blocks;
    size_t count, room;
    void *positions; /* stand in for those of other ranks */
} met_list;

static int is_new(const met_list *list, const met_block *block)
{
    for (size_t i = list->count; i-- > 0;)
        if (memcmp(&list->blocks[i], block, sizeof *block) == 0) return 0;
    return 1;
}

static locus_status keep_met(const locus_mpi_plan *plan, met_list *list, const met_block *block,
                             locus_error *error)
{
    if (list->count == list->room) {
        const size_t room = 2 * list->room + 64;
        met_block *more = locus_allocate(plan->allocator, room, sizeof *more);
        if (more == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "plan: out of memory");
        if (list->count > 0) memcpy(more, list->blocks, list->count * sizeof *more);
        locus_release(plan->allocator, list->blocks);
        list->blocks = more;
        list->room = room;
    }
    list->blocks[list->count++] = *block;
    return LOCUS_OK;
}

/* Positions of keys are not here yet: any number that is near those of the queries will do. */
static void fill_positions(const locus_tensors *some)
{
    const locus_tensor *k = &some->k_positions, *q = &some->q_positions;
    const int64_t near = locus_tensor_elements(q) > 0 ? *(const int64_t *)q->data : 0;
    for (int64_t i = 0; i < locus_tensor_elements(k); i++) ((int64_t *)k->data)[i] = near;
}

static locus_status measure_block(locus_mpi_plan *plan, const ring_block *block,
                                  const ring_positions *positions, locus_error *error)
{
    ring_arena arena = {.base = NULL};
    locus_plan *made = NULL;
    locus_tensors some = ring_block_inputs(plan, &plan->shapes, block, positions);
    if (block->k.count == 0) some.sink = plan->shapes.sink;
    fill_positions(&some);
    LOCUS_TRY(ring_block_plan(plan, block, &some, &arena, &made, error));
    plan->arena_bytes = larger(plan->arena_bytes, arena.used);
    plan->forward_bytes = larger(plan->forward_bytes, locus_forward_workspace(made));
    plan->backward_bytes = larger(plan->backward_bytes, locus_backward_workspace(made));
    locus_plan_free(made);
    return LOCUS_OK;
}

typedef struct measuring {
    locus_mpi_plan *plan;
    met_list met;
    ring_positions positions;
    locus_error *error;
} measuring;

/* The last rows of a rank are looked at in any case: absolute positions end there. */
static locus_status measure_pair(measuring *m, const ring_block *block, int is_last)
{
    const met_block met = {block->q.count, block->k.count,
                           ring_query_position(&m->plan->layout, &block->q) - block->k.row};
    m->plan->info.blocks++;
    if (!is_last && !is_new(&m->met, &met)) return LOCUS_OK;
    LOCUS_TRY(keep_met(m->plan, &m->met, &met, m->error));
    return measure_block(m->plan, block, &m->positions, m->error);
}

static locus_status measure_piece(measuring *m, int owner, int64_t number)
{
    const ring_layout *l = &m->plan->layout;
    const int64_t queries = m->plan->shapes.q.shape[2];
    const int64_t first = number * l->block_rows, past = first + ring_piece_rows(l, owner, number);
    const ring_piece piece = ring_piece_of(m->plan, past - first, NULL);
    ring_block block = {.piece = &piece};
    for (int64_t at = 0; at < queries; at += block.q.count) {
        block.q = ring_run_at(l, &l->q, l->rank, at, min_i64(at + l->block_rows, queries));
        for (int64_t n = first; n < past; n += block.k.count) {
            block.k = ring_run_at(l, &l->k, owner, n, past);
            block.key = n - first;
            const int is_last = at + block.q.count == queries || number == 0;
            if (ring_runs_meet(l, &block.q, &block.k)) LOCUS_TRY(measure_pair(m, &block, is_last));
        }
    }
    return LOCUS_OK;
}

/* A block without rows: whatever else is wrong with the arguments, locus_plan_new says. Sinks are
 * differentiated in blocks without keys. */
static locus_status measure_empty(measuring *m)
{
    locus_mpi_plan *plan = m->plan;
    const ring_piece piece = ring_piece_of(plan, 0, NULL);
    const int64_t rows = min_i64(plan->layout.block_rows, plan->shapes.q.shape[2]);
    const ring_block empty = {.piece = &piece}, no_keys = {.q = {.count = rows}, .piece = &piece};
    LOCUS_TRY(measure_block(plan, &empty, &m->positions, m->error));
    return measure_block(plan, &no_keys, &m->positions, m->error);
}

static locus_status measure_pieces(measuring *m)
{
    const ring_layout *l = &m->plan->layout;
    locus_mpi_plan_info *info = &m->plan->info;
    LOCUS_TRY(measure_empty(m));
    for (int owner = 0; owner < l->ranks; owner++)
        for (int64_t piece = 0; piece < ring_piece_count(l, owner); piece++) {
            if (owner != l->rank)
                info->pieces_received += ring_piece_needed(l, owner, piece, l->rank);
            LOCUS_TRY(measure_piece(m, owner, piece));
        }
    for (int64_t piece = 0; piece < ring_piece_count(l, l->rank); piece++)
        for (int rank = 0; rank < l->ranks; rank++)
            info->pieces_sent += rank != l->rank && ring_piece_needed(l, l->rank, piece, rank);
    return LOCUS_OK;
}

static void *position_room(const locus_mpi_plan *plan, const locus_tensor *t)
{
    if (!locus_present(t)) return NULL;
    const uint32_t axis = ring_position_axis(plan, t);
    const size_t bytes = ring_dense_bytes(t, t->dtype, axis, plan->layout.block_rows);
    return locus_allocate(plan->allocator, bytes, 1);
}

static locus_status measure(locus_mpi_plan *plan, locus_error *error)
{
    const locus_tensors *s = &plan->shapes;
    measuring m = {.plan = plan, .error = error};
    m.positions.q = position_room(plan, &s->q_positions);
    m.positions.k = position_room(plan, &s->k_positions);
    const int lacks = (locus_present(&s->q_positions) && m.positions.q == NULL) ||
                      (locus_present(&s->k_positions) && m.positions.k == NULL);
    const locus_status status =
        lacks ? locus_fail(error, LOCUS_ERR_MEMORY, "plan: out of memory") : measure_pieces(&m);
    locus_release(plan->allocator, m.met.blocks);
    locus_release(plan->allocator, m.positions.q);
    locus_release(plan->allocator, m.positions.k);
    return status;
}

/* ---- the plan ---- */

static locus_status lay_out(locus_mpi_plan *plan, const locus_tensors *shapes, locus_error *error)
{
    LOCUS_TRY(ring_check_shapes(plan, shapes, error));
    if (plan->layout.kind == LOCUS_MPI_ZIGZAG) LOCUS_TRY(ring_check_layout(plan, error));
    LOCUS_TRY(take_offsets(plan, error));
    LOCUS_TRY(fit_pieces(plan, error));
    set_reach(&plan->layout, &plan->config);
    return measure(plan, error);
}

/* All steps that talk to other ranks, each only after all agree on the one before. */
static void make(locus_mpi_plan *plan, ring_verdict *v)
{
    locus_error text;
    ring_layout *l = &plan->layout;
    if (ring_agree(plan->communicator, RING_PLAN, v) != LOCUS_OK) return;
    ring_note(v, ring_check_alike(plan, &plan->shapes, &text), &text);
    ring_note(v, count_rows(plan, &l->q, plan->shapes.q.shape[2], &text), &text);
    ring_note(v, count_rows(plan, &l->k, plan->shapes.k.shape[2], &text), &text);
    if (ring_agree(plan->communicator, RING_PLAN, v) != LOCUS_OK) return;
    ring_note(v, lay_out(plan, &plan->shapes, &text), &text);
    ring_agree(plan->communicator, RING_PLAN, v);
}

static void fill_info(locus_mpi_plan *plan)
{
    locus_mpi_plan_info *info = &plan->info;
    const ring_layout *l = &plan->layout;
    info->ranks = l->ranks;
    info->rank = l->rank;
    info->layout = l->kind;
    info->queries = l->q.rows;
    info->keys = l->k.rows;
    info->block_rows = l->block_rows;
    info->piece_bytes = ring_piece_of(plan, min_i64(l->block_rows, l->k.rows), NULL).bytes;
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) locus_tensor_at(&plan->shapes, i)->data = NULL;
}

static void release_parts(locus_mpi_plan *plan)
{
    locus_release(plan->allocator, plan->layout.q.first);
    locus_release(plan->allocator, plan->layout.k.first);
    locus_release(plan->allocator, plan->layout.q.offsets);
    locus_release(plan->allocator, plan->layout.k.offsets);
    MPI_Comm_free(&plan->communicator);
}

/* What the steps that talk need to have; in the verdict where it is not to be had. */
static locus_mpi_plan *reserve(locus_mpi_plan *fresh, ring_verdict *v)
{
    ring_layout *l = &fresh->layout;
    locus_error text;
    const size_t firsts = (size_t)l->ranks + 1;
    l->q.first = locus_allocate(fresh->allocator, firsts, sizeof *l->q.first);
    l->k.first = locus_allocate(fresh->allocator, firsts, sizeof *l->k.first);
    locus_mpi_plan *plan = locus_allocate(fresh->allocator, 1, sizeof *plan);
    if (plan == NULL || l->q.first == NULL || l->k.first == NULL)
        ring_note(v, locus_fail(&text, LOCUS_ERR_MEMORY, "plan: out of memory"), &text);
    return plan;
}

static locus_status join_communicator(locus_mpi_plan *fresh, MPI_Comm communicator, ring_verdict *v)
{
    int is_on = 0;
    MPI_Initialized(&is_on);
    if (!is_on || communicator == MPI_COMM_NULL)
        return v->status = locus_fail(&v->error, LOCUS_ERR_ARGUMENT,
                                      "MPI: found %s, expected MPI_Init and a communicator",
                                      is_on ? "MPI_COMM_NULL" : "no MPI_Init");
    ring_note_mpi(v, MPI_Comm_dup(communicator, &fresh->communicator), "MPI_Comm_dup");
    if (v->status != LOCUS_OK) return v->status;
    MPI_Comm_set_errhandler(fresh->communicator, MPI_ERRORS_RETURN);
    MPI_Comm_rank(fresh->communicator, &fresh->layout.rank);
    MPI_Comm_size(fresh->communicator, &fresh->layout.ranks);
    return LOCUS_OK;
}

locus_status locus_mpi_plan_new(locus_mpi_plan **out, MPI_Comm communicator,
                                const locus_config *config, const locus_mpi_options *options,
                                const locus_tensors *shapes, locus_error *error)
{
    ring_verdict v = {.status = LOCUS_OK};
    locus_error text;
    locus_mpi_plan fresh = {.communicator = MPI_COMM_NULL};
    if (join_communicator(&fresh, communicator, &v) != LOCUS_OK) return ring_tell(&v, error);
    ring_note(&v, adopt(&fresh, config, options, shapes, &text), &text);
    locus_mpi_plan *plan = reserve(&fresh, &v);
    if (out == NULL)
        ring_note(&v, locus_fail(&text, LOCUS_ERR_ARGUMENT, "plan: NULL argument"), &text);
    else
        *out = NULL;
    make(&fresh, &v);
    if (v.status != LOCUS_OK) {
        release_parts(&fresh);
        locus_release(fresh.allocator, plan);
        return ring_tell(&v, error);
    }
    fill_info(&fresh);
    *plan = fresh;
    *out = plan;
    return LOCUS_OK;
}

void locus_mpi_plan_free(locus_mpi_plan *plan)
{
    if (plan == NULL) return;
    release_parts(plan);
    locus_release(plan->allocator, plan);
}

void locus_mpi_plan_describe(const locus_mpi_plan *plan, locus_mpi_plan_info *info)
{
    locus_hand_back(info, &plan->info, sizeof plan->info);
}

size_t locus_mpi_forward_workspace(const locus_mpi_plan *plan)
{
    ring_call call;
    return ring_call_carve(plan, 0, NULL, &call);
}

size_t locus_mpi_backward_workspace(const locus_mpi_plan *plan)
{
    ring_call call;
    return ring_call_carve(plan, 1, NULL, &call);
}

void locus_mpi_last_traffic(const locus_mpi_plan *plan, const void *workspace,
                            locus_mpi_traffic *traffic)
{
    ring_call call;
    ring_call_carve(plan, 0, ring_aligned((void *)(uintptr_t)workspace), &call);
    locus_hand_back(traffic, call.traffic, sizeof *call.traffic);
}

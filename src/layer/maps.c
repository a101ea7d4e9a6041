/* SPDX-License-Identifier: Apache-2.0 */
#include "layer/maps.h"

#include <string.h>

#include "core/parallel.h"
#include "core/tensor.h"

static int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }

static int is_half(locus_dtype type) { return type == LOCUS_F16 || type == LOCUS_BF16; }

void locus_layer_carve_multiplier(locus_carver *c, const layer_extents *extents,
                                  layer_multiplier *m)
{
    const locus_linear linear = {.kernels = m->kernels,
                                 .threads = m->threads,
                                 .second_cache = m->second_cache};
    const int64_t rows = min_i64(extents->rows, LOCUS_LAYER_BLOCK), width = extents->width;
    m->workspace = locus_carve(c, locus_linear_workspace(&linear));
    m->y = locus_carve_floats(c, 1, rows, width);
    if (!extents->halves) return;
    m->x = locus_carve_floats(c, 1, rows, width);
    m->w = locus_carve_floats(c, 1, min_i64(width, LOCUS_LAYER_BLOCK), width);
    m->b = locus_carve_floats(c, 1, 1, width);
}

/* ---- rows ---- */

static int64_t all_rows(const layer_matrix *a) { return a->batches * a->rows; }

/* Row `index`, counted over batches, from column `column` on. */
static void *row_at(const layer_matrix *a, int64_t index, int64_t column)
{
    const int64_t at = index / a->rows * a->batch_stride + index % a->rows * a->row_stride + column;
    return (char *)a->data + at * (is_half(a->type) ? 2 : 4);
}

void locus_layer_load(const locus_kernels *kernels, float *to, const layer_matrix *from,
                      int64_t row, int64_t count)
{
    for (int64_t r = 0; r < count; r++, to += from->width) {
        const void *numbers = row_at(from, row + r, 0);
        if (is_half(from->type))
            kernels->widen(to, 0, numbers, 0, from->type, 1, from->width);
        else
            memcpy(to, numbers, (size_t)from->width * sizeof *to);
    }
}

void locus_layer_store(const locus_kernels *kernels, const layer_matrix *to, const float *from,
                       int64_t row, int64_t count)
{
    for (int64_t r = 0; r < count; r++, from += to->width) {
        void *numbers = row_at(to, row + r, 0);
        if (is_half(to->type))
            kernels->narrow(numbers, 0, to->type, from, 0, 1, to->width);
        else
            memcpy(numbers, from, (size_t)to->width * sizeof *from);
    }
}

/* The same by threads. */
enum { COPIED_ROWS = 16 };
typedef struct copying {
    const layer_multiplier *m;
    const layer_matrix *matrix;
    float *floats;
    int64_t row, count;
    int stores;
} copying;

static void copy_rows(void *context, size_t index, uint32_t worker)
{
    const copying *c = context;
    const int64_t first = (int64_t)index * COPIED_ROWS;
    const int64_t count = min_i64(COPIED_ROWS, c->count - first);
    float *floats = c->floats + first * c->matrix->width;
    (void)worker;
    if (c->stores)
        locus_layer_store(c->m->kernels, c->matrix, floats, c->row + first, count);
    else
        locus_layer_load(c->m->kernels, floats, c->matrix, c->row + first, count);
}

static void copy(const layer_multiplier *m, const layer_matrix *matrix, float *floats, int64_t row,
                 int64_t count, int stores)
{
    copying c = {m, matrix, floats, row, count, stores};
    const int64_t tasks = (count + COPIED_ROWS - 1) / COPIED_ROWS;
    locus_parallel_for(m->threads, (size_t)tasks, copy_rows, &c);
}

/* ---- blocks ---- */

/* Rows first .. first + count - 1 of a matrix as floats: its own, or a copy side by side. */
typedef struct block {
    const layer_matrix *of;
    int64_t first, count;
    locus_row_batch rows;
    int is_copy;
} block;

/* 1 where they are floats at equal distances. */
static int is_in_place(const layer_matrix *a, int64_t first, int64_t count)
{
    const int one_run = a->batches <= 1 || a->batch_stride == a->rows * a->row_stride ||
                        (count > 0 && first / a->rows == (first + count - 1) / a->rows);
    return !is_half(a->type) && one_run;
}

/* All rows of floats, batch by batch, or one block of them: that of `room` if it has to be copied. */
static block block_of(const layer_matrix *a, int whole, int64_t first, int64_t count, float *room)
{
    block b = {.of = a, .first = first, .count = count};
    if (whole) {
        b.rows = (locus_row_batch){.data = a->data,
                                   .batches = a->batches,
                                   .rows = a->rows,
                                   .batch_stride = a->batch_stride,
                                   .row_stride = a->row_stride};
        return b;
    }
    b.is_copy = !is_in_place(a, first, count);
    b.rows = (locus_row_batch){.data = b.is_copy || count == 0 ? room : row_at(a, first, 0),
                               .batches = 1,
                               .rows = count,
                               .row_stride = b.is_copy ? a->width : a->row_stride};
    return b;
}

static void load(const layer_multiplier *m, const block *b)
{
    if (b->is_copy) copy(m, b->of, b->rows.data, b->first, b->count, 0);
}

static void store(const layer_multiplier *m, const block *b)
{
    if (b->is_copy) copy(m, b->of, b->rows.data, b->first, b->count, 1);
}

/* What is read: loaded. */
static block read_block(const layer_multiplier *m, const layer_matrix *a, int whole, int64_t first,
                        int64_t count, float *room)
{
    const block b = block_of(a, whole, first, count, room);
    load(m, &b);
    return b;
}

/* Columns from `column` on. */
static locus_row_batch columns_from(const block *b, int64_t column)
{
    locus_row_batch rows = b->rows;
    rows.data += column;
    return rows;
}

static layer_matrix matrix_of(const locus_tensor *t)
{
    const int is_vector = t->rank == 1;
    return (layer_matrix){.data = t->data,
                          .type = t->dtype,
                          .batches = 1,
                          .rows = is_vector ? 1 : t->shape[0],
                          .width = t->shape[t->rank - 1],
                          .row_stride = is_vector ? t->shape[0] : t->stride[0]};
}

/* A block of W, or of its gradient, as a tensor. */
static locus_tensor tensor_of(const block *b)
{
    return (locus_tensor){.data = b->rows.data,
                          .dtype = LOCUS_F32,
                          .rank = 2,
                          .shape = {b->count, b->of->width},
                          .stride = {b->rows.row_stride, 1}};
}

static locus_tensor vector_of(const block *b, int64_t first, int64_t count)
{
    return locus_view(b->rows.data + first, LOCUS_F32, 1, &count);
}

/* Rows of a block where one of the operands is of half precision; else all. */
static int64_t block_rows(int has_halves, int64_t rows)
{
    return has_halves ? LOCUS_LAYER_BLOCK : rows;
}

static locus_linear linear_of(const layer_multiplier *m)
{
    return (locus_linear){.kernels = m->kernels,
                          .threads = m->threads,
                          .second_cache = m->second_cache,
                          .workspace = m->workspace};
}

/* ---- forward ---- */

/* Columns first .. of y for the block of weights in `f`. */
static void forward_columns(const layer_multiplier *m, const layer_map *map, const locus_linear *f,
                            int64_t column)
{
    const int has_halves = is_half(map->x.type) || is_half(map->y.type);
    const int64_t rows = all_rows(&map->x), step = block_rows(has_halves, rows);
    layer_matrix y = map->y;
    y.data = row_at(&y, 0, column);
    y.width = f->weight->shape[0];
    for (int64_t r = 0; r < rows; r += step) {
        const int64_t count = min_i64(step, rows - r);
        const block from = read_block(m, &map->x, !has_halves, r, count, m->x);
        const block to = block_of(&y, !has_halves, r, count, m->y);
        locus_linear_forward(f, &to.rows, &from.rows, NULL);
        store(m, &to);
    }
}

void locus_layer_map_forward(const layer_multiplier *m, const layer_map *map)
{
    const layer_matrix w = matrix_of(map->weight);
    const int64_t step = block_rows(is_half(w.type), w.rows);
    locus_linear f = linear_of(m);
    if (all_rows(&map->x) == 0) return;
    layer_matrix b = {.rows = 0};
    block bias = {.count = 0};
    if (map->bias != NULL) {
        b = matrix_of(map->bias);
        bias = read_block(m, &b, 0, 0, 1, m->b);
    }
    for (int64_t o = 0; o < w.rows; o += step) {
        const int64_t count = min_i64(step, w.rows - o);
        const block part = read_block(m, &w, 0, o, count, m->w);
        const locus_tensor weight = tensor_of(&part), some = vector_of(&bias, o, count);
        f.weight = &weight;
        f.bias = map->bias != NULL ? &some : NULL;
        forward_columns(m, map, &f, o);
    }
}

/* ---- backward ---- */

/* dx of some rows (+)= dy W. Sums over no outputs are made, too: they are 0. */
static void add_source(const layer_multiplier *m, const layer_map *map, int whole, const block *dx,
                       int add)
{
    const layer_matrix w = matrix_of(map->weight);
    const int64_t step = block_rows(is_half(w.type), w.rows);
    const block dy = read_block(m, &map->y, whole, dx->first, dx->count, m->y);
    locus_linear f = linear_of(m);
    int64_t o = 0;
    do {
        const block part = read_block(m, &w, 0, o, min_i64(step, w.rows - o), m->w);
        const locus_row_batch dz = columns_from(&dy, o);
        const locus_tensor weight = tensor_of(&part);
        f.weight = &weight;
        locus_linear_backward(&f, &dz, NULL,
                              &(const locus_linear_grad){.x = &dx->rows, .add_x = add || o > 0});
        o += step;
    } while (o < w.rows);
}

void locus_layer_source_gradient(const layer_multiplier *m, const layer_map *maps, size_t count,
                                 const layer_matrix *dx, int add)
{
    int has_halves = is_half(dx->type);
    for (size_t i = 0; i < count; i++)
        has_halves |= is_half(maps[i].weight->dtype) || is_half(maps[i].y.type);
    const int64_t rows = all_rows(dx), step = block_rows(has_halves, rows);
    for (int64_t r = 0; r < rows; r += step) {
        const block to = block_of(dx, !has_halves, r, min_i64(step, rows - r), m->x);
        if (add) load(m, &to);
        for (size_t i = 0; i < count; i++) add_source(m, &maps[i], !has_halves, &to, add || i > 0);
        store(m, &to);
    }
}

/* Sums over the rows of one map: what of W, from output `first` on, or of b. */
typedef struct row_sums {
    const locus_tensor *dw, *db; /* one of them NULL */
    int64_t first;
    int add;
} row_sums;

static void add_rows(const layer_multiplier *m, const layer_map *map, const row_sums *sums)
{
    const int has_halves = is_half(map->y.type) || (sums->dw != NULL && is_half(map->x.type));
    const int64_t rows = all_rows(&map->y), step = block_rows(has_halves, rows);
    const locus_linear f = linear_of(m);
    int64_t r = 0;
    do {
        const int64_t count = min_i64(step, rows - r);
        const block dy = read_block(m, &map->y, !has_halves, r, count, m->y);
        const locus_row_batch dz = columns_from(&dy, sums->first);
        block x = {.count = 0};
        if (sums->dw != NULL) x = read_block(m, &map->x, !has_halves, r, count, m->x);
        locus_linear_backward(&f, &dz, &x.rows,
                              &(const locus_linear_grad){.weight = sums->dw,
                                                         .bias = sums->db,
                                                         .add_parameters = sums->add || r > 0});
        r += step;
    } while (r < rows);
}

void locus_layer_weight_gradient(const layer_multiplier *m, const layer_map *maps, size_t count,
                                 const locus_tensor *dw, int add)
{
    const layer_matrix matrix = matrix_of(dw);
    const int64_t step = block_rows(is_half(matrix.type), matrix.rows);
    for (int64_t o = 0; o < matrix.rows; o += step) {
        const block to = block_of(&matrix, 0, o, min_i64(step, matrix.rows - o), m->w);
        const locus_tensor part = tensor_of(&to);
        if (add) load(m, &to);
        for (size_t i = 0; i < count; i++)
            add_rows(m, &maps[i], &(const row_sums){.dw = &part, .first = o, .add = add || i > 0});
        store(m, &to);
    }
}

void locus_layer_bias_gradient(const layer_multiplier *m, const layer_map *maps, size_t count,
                               const locus_tensor *db, int add)
{
    const layer_matrix vector = matrix_of(db);
    const block to = block_of(&vector, 0, 0, 1, m->b);
    const locus_tensor sums = vector_of(&to, 0, vector.width);
    if (add) load(m, &to);
    for (size_t i = 0; i < count; i++)
        add_rows(m, &maps[i], &(const row_sums){.db = &sums, .add = add || i > 0});
    store(m, &to);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/quantized.h"

#include <math.h>

#include "nn/product.h"

/* Rows are quantized as many at a time as fit half of the second caches, then multiplied by all
 * panels: those of LOCUS_QUANT_COLUMNS outputs stay in a cache while the rows go by. */

enum { TASKS_PER_THREAD = 4, LEAST_ROWS = 24 /* of a task */ };

typedef struct quant_job {
    const locus_linear *f;
    const locus_quantized *q;
    const locus_row_batch *y, *x;
    const locus_linear_end *end;
    const float *bias;
    /* of the rows that are quantized now */
    int64_t first, rows, most_rows, row_bytes;
    uint8_t *integers;
    float *scale;
    int32_t *start;
    int64_t row_blocks, column_blocks;
} quant_job;

/* ---- the workspace: a room for each worker, then rows, their scales and starts ---- */

static float *room_of(const quant_job *j, uint32_t worker)
{
    return line_start(j->f->workspace) + (int64_t)worker * LOCUS_RIGHT_FLOATS;
}

static void lay_out(quant_job *j)
{
    const int64_t threads = j->f->threads;
    const int64_t floats = threads * (product_scratch_floats(j->f) - LOCUS_RIGHT_FLOATS);
    j->row_bytes = locus_quant_row_bytes(j->q->padded);
    j->most_rows = floats * (int64_t)sizeof(float) /
                   (j->row_bytes + (int64_t)sizeof *j->scale + (int64_t)sizeof *j->start);
    j->integers = (uint8_t *)room_of(j, j->f->threads);
    j->scale = (float *)(void *)(j->integers + j->most_rows * j->row_bytes);
    j->start = (int32_t *)(void *)(j->scale + j->most_rows);
}

/* ---- rows ---- */

static void quantize_rows(void *context, size_t index, uint32_t worker)
{
    const quant_job *j = context;
    const int64_t some = locus_task_rows(j->q->padded), past = (int64_t)(index + 1) * some;
    for (int64_t i = (int64_t)index * some; i < past && i < j->rows; i++)
        j->scale[i] = j->q->kernels->row[j->q->kind](j->integers + i * j->row_bytes, &j->start[i],
                                                     room_of(j, worker), row_of(j->x, j->first + i),
                                                     j->q->inputs);
}

/* ---- tiles ---- */

/* Sums of a row that cannot be quantized, in float, one chain each. */
static void multiply_float(const quant_job *j, float *y, const float *x, float *w, int64_t column,
                           int64_t columns)
{
    for (int64_t c = 0; c < columns; c++) {
        float sum = 0.0f;
        locus_quantized_weights(j->q, column + c, w);
        for (int64_t k = 0; k < j->q->inputs; k++) sum += x[k] * w[k];
        y[c] = j->bias != NULL ? sum + j->bias[column + c] : sum;
    }
}

static void end_row(const quant_job *j, float *y, int64_t row, int64_t column, int64_t columns)
{
    const locus_linear_end *end = j->end;
    const locus_kernels *floats = j->f->kernels;
    if (end == NULL) return;
    const float *gate = end->gate != NULL ? row_of(end->gate, row) + column : NULL;
    if (end->activation != LOCUS_IDENTITY || gate != NULL)
        floats->activate_rows(y, y, gate, end->activation, columns);
    if (end->residual != NULL) floats->add(y, row_of(end->residual, row) + column, columns);
}

/* Rows first .. first + rows - 1 of those quantized, at most a tile, which are of one batch. */
static void multiply_rows(const quant_job *j, int64_t first, int64_t rows, int64_t column,
                          int64_t columns, uint32_t worker)
{
    const locus_quantized *q = j->q;
    const int64_t groups = locus_quant_groups(q->kind, q->padded);
    const int64_t panel = column / LOCUS_QUANT_PANEL;
    const locus_quant_tile t = {.y = row_of(j->y, j->first + first) + column,
                                .y_row = j->y->row_stride,
                                .rows = rows,
                                .columns = columns,
                                .x = j->integers + first * j->row_bytes,
                                .x_row = j->row_bytes,
                                .x_scale = j->scale + first,
                                .x_start = j->start + first,
                                .weights = q->weights +
                                           panel * locus_quant_panel_bytes(q->kind, q->padded),
                                .scales = q->scales + panel * LOCUS_QUANT_PANEL * groups,
                                .bias = j->bias != NULL ? j->bias + column : NULL,
                                .padded = q->padded};
    q->kernels->multiply[q->kind](&t);
    for (int64_t i = 0; i < rows; i++) {
        float *y = t.y + i * t.y_row;
        if (isnan(t.x_scale[i]))
            multiply_float(j, y, row_of(j->x, j->first + first + i), room_of(j, worker), column,
                           columns);
        end_row(j, y, j->first + first + i, column, columns);
    }
}

/* Rows as evenly as they go into tiles; a tile does not reach over the end of a batch. */
static void multiply_task(void *context, size_t index, uint32_t worker)
{
    const quant_job *j = context;
    const int64_t row_block = locus_blocks(j->rows, j->row_blocks);
    const int64_t groups = locus_blocks(j->q->outputs, LOCUS_QUANT_COLUMNS);
    const int64_t column_block = locus_blocks(groups, j->column_blocks) * LOCUS_QUANT_COLUMNS;
    const int64_t row = (int64_t)index / j->column_blocks * row_block;
    const int64_t column = (int64_t)index % j->column_blocks * column_block;
    const int64_t past_row = locus_least(row + row_block, j->rows);
    const int64_t past = locus_least(column + column_block, j->q->outputs);
    for (int64_t c = column; c < past; c += LOCUS_QUANT_COLUMNS)
        for (int64_t r = row, some; r < past_row; r += some) {
            const int64_t batch = j->y->rows - (j->first + r) % j->y->rows;
            const int64_t left = locus_least(past_row - r, batch);
            some = locus_blocks(left, locus_blocks(left, LOCUS_QUANT_ROWS));
            multiply_rows(j, r, some, c, locus_least(LOCUS_QUANT_COLUMNS, past - c), worker);
        }
}

static void cut(quant_job *j)
{
    const int64_t wanted = j->f->threads > 1 ? TASKS_PER_THREAD * (int64_t)j->f->threads : 1;
    const int64_t groups = locus_blocks(j->q->outputs, LOCUS_QUANT_COLUMNS);
    const int64_t most = j->rows / LEAST_ROWS > 0 ? j->rows / LEAST_ROWS : 1;
    j->column_blocks = locus_least(groups, wanted);
    j->row_blocks = locus_least(locus_blocks(wanted, j->column_blocks), most);
}

void locus_quantized_forward(const locus_linear *f, const locus_row_batch *y,
                             const locus_row_batch *x, const locus_linear_end *end)
{
    const int64_t rows = y->batches * y->rows;
    quant_job j = {.f = f, .q = f->quantized, .y = y, .x = x, .end = end};
    if (f->bias != NULL) j.bias = f->bias->data;
    if (rows == 0 || j.q->outputs == 0) return;
    lay_out(&j);
    for (; j.first < rows; j.first += j.rows) {
        j.rows = locus_least(rows - j.first, j.most_rows);
        locus_parallel_for(f->threads, (size_t)locus_blocks(j.rows, locus_task_rows(j.q->padded)),
                           quantize_rows, &j);
        cut(&j);
        locus_parallel_for(f->threads, (size_t)(j.row_blocks * j.column_blocks), multiply_task, &j);
    }
}

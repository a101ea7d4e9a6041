/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/embedding.h"

typedef struct embedding_job {
    const locus_kernels *kernels;
    const locus_rows *rows; /* y or dy */
    const locus_embedding *terms;
    float *table; /* of gradients */
    int64_t term_count, width, task_rows;
} embedding_job;

static int64_t place_of(const locus_embedding *term, int64_t i)
{
    return (term->id != NULL ? term->id[i] : term->same) * term->stride;
}

static void gather_rows(void *context, size_t index, uint32_t worker)
{
    const embedding_job *j = context;
    const int64_t first = (int64_t)index * j->task_rows;
    const int64_t past = locus_least(first + j->task_rows, j->rows->count);
    (void)worker;
    for (int64_t i = first; i < past; i++)
        for (int64_t t = 0; t < j->term_count; t++) {
            const locus_embedding *term = &j->terms[t];
            if (term->words != NULL)
                locus_quantized_row(term->words, term->id != NULL ? term->id[i] : term->same,
                                    term->factor, t > 0, locus_row(j->rows, i));
            else
                j->kernels->scale_rows(locus_row(j->rows, i), 0, term->table + place_of(term, i), 0,
                                       NULL, term->factor, 1, j->width, t > 0);
        }
}

void locus_embedding_forward(const locus_workers *workers, const locus_rows *y,
                             const locus_embedding *terms, int64_t term_count, int64_t width)
{
    embedding_job j = {.kernels = workers->kernels,
                       .rows = y,
                       .terms = terms,
                       .term_count = term_count,
                       .width = width,
                       .task_rows = locus_task_rows(width)};
    locus_parallel_for(workers->threads, (size_t)locus_blocks(y->count, j.task_rows), gather_rows,
                       &j);
}

/* One panel of columns: several rows may go to one entry, but never two tasks. */
static void scatter_panel(void *context, size_t index, uint32_t worker)
{
    const embedding_job *j = context;
    const int64_t column = (int64_t)index * LOCUS_PANEL;
    const int64_t columns = locus_least(LOCUS_PANEL, j->width - column);
    (void)worker;
    for (int64_t i = 0; i < j->rows->count; i++)
        j->kernels->scale_rows(j->table + place_of(j->terms, i) + column, 0,
                               locus_row(j->rows, i) + column, 0, NULL, j->terms->factor, 1,
                               columns, 1);
}

void locus_embedding_backward(const locus_workers *workers, float *table,
                              const locus_embedding *term, const locus_rows *dy, int64_t width)
{
    embedding_job j = {
        .kernels = workers->kernels, .rows = dy, .terms = term, .table = table, .width = width};
    locus_parallel_for(workers->threads, (size_t)locus_blocks(width, LOCUS_PANEL), scatter_panel,
                       &j);
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_TASK_H
#define LOCUS_LAB_TASK_H

/* What a model is trained on, one file of tasks/ each: how a row is drawn, which of its targets
 * count, what is measured, and what a guess would score. Rows are drawn from streams that are named
 * by (seed, task, step, row): no batch depends on another. */

#include <locus/status.h>

#include "lab/corpus.h"
#include "train/model.h"
#include "train/stream.h"

/* Ids that rows of symbols share. */
enum { LAB_PAD = 0, LAB_BOS = 1, LAB_SEP = 2, LAB_EOS = 3, LAB_SYMBOL = 4 };

/* What is measured on test rows. */
typedef enum lab_measure {
    LAB_ROWS,      /* em, token_accuracy, first_wrong                    */
    LAB_ANSWER,    /* accuracy of the first target that counts           */
    LAB_LOOK_BACK, /* accuracy_k of each offset                          */
    LAB_TEXT,      /* bits per character by context and by index         */
    LAB_MASKED,    /* loss and perplexity                                */
} lab_measure;

/* One row under construction. */
typedef struct lab_row {
    int32_t *token, *target; /* [tokens] */
    float *weight;
    int64_t tokens;
} lab_row;

/* Where rows come from. */
typedef struct lab_draw {
    const lab_corpus *corpus;
    uint64_t seed;
    const char *purpose; /* of the stream: the task's name, with ".test" for test rows */
    uint32_t step;
    int64_t row, rows;  /* which of how many */
    int64_t length;     /* n of this row */
    int64_t memory;     /* above 0: rows read on where they ended (text) */
    int test;           /* 1: from the part of the text that is kept for tests */
    int64_t stride, at; /* test windows of text: row r begins at byte r stride + at */
} lab_draw;

typedef struct lab_task {
    const char *name, *number; /* "copy", "T1" */
    const char *title;
    int encoder, reads_text, one_length; /* one_length: n is not drawn, rows have all of L */
    lab_measure measure;
    int64_t vocabulary;
    int64_t length;  /* L, or n of text, unless the caller says */
    int64_t longest; /* n at most; 0: no limit */
    double chance;   /* of one target by guessing among the symbols */
    double decay;    /* of the weights */
    int64_t (*tokens)(int64_t length);
    void (*draw)(const lab_draw *draw, train_stream *stream, const lab_row *row);
} lab_task;

/* By name or number; NULL: no such task. lab_task_at(i) is NULL beyond the end. */
const lab_task *lab_task_find(const char *name);
const lab_task *lab_task_at(size_t index);

/* n of a training step. */
int64_t lab_step_length(const lab_task *task, uint64_t seed, int64_t step, int64_t most);

/* Rows of one length into batch, whose arrays have room; batch->rows says how many. */
void lab_draw_batch(const lab_task *task, const lab_draw *draw, train_batch *batch);

/* ---- for the files of tasks/ ---- */

/* Predict every id of ids[tokens + 1] from those before it; those from `first` on count. */
void lab_row_shift(const lab_row *row, const int32_t *ids, int64_t first);

/* `count` symbols out of `symbols`, from id `base` on. */
void lab_symbols(train_stream *stream, int32_t *ids, int64_t count, uint32_t symbols, int32_t base);

/* 2 n + 2: BOS x SEP y EOS without its last id, y as long as x. */
int64_t lab_tokens_of_pairs(int64_t length);

/* BOS x SEP y EOS where y is x, or x backwards. */
void lab_copy_row(const lab_row *row, const int32_t *x, int64_t length, int backwards);

#endif

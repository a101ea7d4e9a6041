/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that come and go. A session has one row more than the writer: nothing is ever written there, so a
 * row that goes on from it is empty again. */
#include <inttypes.h>
#include <string.h>

#include "core/adopt.h"
#include "core/error.h"
#include "core/memory.h"
#include "model/generate/generate.h"

typedef struct written {
    generate_text text; /* ids NULL: the row is free */
    locus_generation how;
    int begun; /* its prompt has been read */
} written;

struct locus_writer {
    generate_job job; /* session and room; `how` is set row by row */
    int64_t rows;
    written *row;
    int64_t *from;   /* [rows + 1] for locus_session_reorder */
    int64_t id_room; /* of job.ids */
};

static locus_status no_memory(locus_error *error)
{
    return locus_fail(error, LOCUS_ERR_MEMORY, "writer: out of memory");
}

static locus_status build(locus_writer *w, const locus_model *model, locus_error *error)
{
    const locus_allocator *a = model->allocator;
    const size_t rows = (size_t)w->rows, V = (size_t)w->job.vocabulary;
    w->row = locus_allocate(a, rows, sizeof *w->row);
    w->from = locus_allocate(a, rows + 1, sizeof *w->from);
    w->job.offsets = locus_allocate(a, rows + 2, sizeof *w->job.offsets);
    w->job.logits =
        V > 0 && rows > SIZE_MAX / V ? NULL : locus_allocate(a, rows * V, sizeof(float));
    w->job.scratch = locus_allocate(a, V, sizeof *w->job.scratch);
    w->job.places = locus_allocate(a, V, sizeof *w->job.places);
    if (w->row == NULL || w->from == NULL || w->job.offsets == NULL || w->job.logits == NULL ||
        w->job.scratch == NULL || w->job.places == NULL)
        return no_memory(error);
    return locus_session_new(&w->job.session, model, w->rows + 1, error);
}

locus_status locus_writer_new(locus_writer **out, const locus_model *model, int64_t rows,
                              locus_error *error)
{
    if (out == NULL || model == NULL || rows < 1 || rows > 1 << 20)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "writer: NULL argument, or not 1 to 1048576 rows");
    *out = NULL;
    locus_model_info info = {.size = sizeof info};
    locus_model_describe(model, &info);
    if (info.head != LOCUS_MODEL_GENERATE || info.decoder_layers > 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "writer: expected a decoder without an encoder (model_type %s)",
                          info.family);
    locus_writer *w = locus_allocate(model->allocator, 1, sizeof *w);
    if (w == NULL) return no_memory(error);
    w->rows = rows;
    w->job = (generate_job){.model = model, .texts = rows, .vocabulary = info.next_tokens};
    const locus_status status = build(w, model, error);
    if (status == LOCUS_OK)
        *out = w;
    else
        locus_writer_free(w);
    return status;
}

void locus_writer_free(locus_writer *w)
{
    if (w == NULL) return;
    const locus_allocator *a = w->job.model->allocator;
    for (int64_t r = 0; w->row != NULL && r < w->rows; r++) locus_release(a, w->row[r].text.ids);
    void *const blocks[] = {w->row,         w->from,    w->job.offsets, w->job.logits,
                            w->job.scratch, w->job.ids, w->job.places};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) locus_release(a, blocks[i]);
    locus_session_free(w->job.session);
    locus_release(a, w);
}

/* ---- a text ---- */

/* Ids are checked before they are in a step with the ids of others. */
static locus_status check_prompt(const locus_writer *w, const int32_t *ids, int64_t count,
                                 locus_error *error)
{
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= w->job.vocabulary)
            return locus_fail(error, LOCUS_ERR_RANGE,
                              "writer: found id %" PRId32 ", expected 0 to %" PRId64, ids[i],
                              w->job.vocabulary - 1);
    return LOCUS_OK;
}

/* Whatever the row held before, it is empty. */
static locus_status clear_row(locus_writer *w, int64_t row, locus_error *error)
{
    for (int64_t r = 0; r <= w->rows; r++) w->from[r] = r == row ? w->rows : r;
    return locus_session_reorder(w->job.session, w->from, error);
}

locus_status locus_writer_begin(locus_writer *w, const locus_generation *how, const int32_t *ids,
                                int64_t count, int64_t *row, locus_error *error)
{
    locus_generation own = {.size = sizeof own};
    if (w == NULL || how == NULL || row == NULL || count < 0 || (ids == NULL && count > 0))
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "writer: NULL or negative argument");
    *row = -1;
    LOCUS_ADOPT(how, own, "generation", error);
    LOCUS_TRY(generate_check(w->job.model, how, error));
    if (how->beams > 1)
        return locus_fail(error, LOCUS_ERR_OPTION, "beams: found %" PRId64 ", expected 1",
                          how->beams);
    LOCUS_TRY(check_prompt(w, ids, count, error));
    int64_t r = 0;
    while (r < w->rows && w->row[r].text.ids != NULL) r++;
    if (r == w->rows) return LOCUS_OK;
    LOCUS_TRY(clear_row(w, r, error));
    written *to = &w->row[r];
    *to = (written){.how = *how};
    w->job.how = &to->how;
    w->job.error = error;
    const locus_status status = generate_begin(&w->job, &to->text, r, ids, count);
    if (status == LOCUS_OK)
        *row = r;
    else
        locus_writer_end(w, r);
    return status;
}

const int32_t *locus_writer_ids(const locus_writer *w, int64_t row, int64_t *count, int *done)
{
    const written *from = &w->row[row];
    *count = from->text.count;
    *done = from->text.done;
    return from->text.ids;
}

void locus_writer_end(locus_writer *w, int64_t row)
{
    locus_release(w->job.model->allocator, w->row[row].text.ids);
    w->row[row] = (written){.begun = 0};
}

/* ---- a step ---- */

static int writes(const written *row) { return row->text.ids != NULL && !row->text.done; }

/* The prompts of those that begin, the last token of the others. Returns their number. */
static int64_t set_offsets(locus_writer *w)
{
    int64_t count = 0;
    for (int64_t r = 0; r <= w->rows; r++) {
        w->job.offsets[r] = count;
        if (r < w->rows && writes(&w->row[r])) count += w->row[r].begun ? 1 : w->row[r].text.count;
    }
    return w->job.offsets[w->rows + 1] = count;
}

static locus_status set_ids(locus_writer *w, int64_t count, locus_error *error)
{
    const locus_allocator *a = w->job.model->allocator;
    if (count > w->id_room) {
        locus_release(a, w->job.ids);
        w->id_room = 0;
        w->job.ids = locus_allocate(a, (size_t)(2 * count), sizeof *w->job.ids);
        if (w->job.ids == NULL) return no_memory(error);
        w->id_room = 2 * count;
    }
    for (int64_t r = 0; r < w->rows; r++) {
        const int64_t own = w->job.offsets[r + 1] - w->job.offsets[r];
        if (own > 0)
            memcpy(w->job.ids + w->job.offsets[r], w->row[r].text.ids + w->row[r].text.count - own,
                   (size_t)own * sizeof *w->job.ids);
    }
    return LOCUS_OK;
}

locus_status locus_writer_step(locus_writer *w, locus_error *error)
{
    if (w == NULL) return locus_fail(error, LOCUS_ERR_ARGUMENT, "writer: NULL argument");
    const int64_t count = set_offsets(w);
    if (count == 0) return LOCUS_OK;
    LOCUS_TRY(set_ids(w, count, error));
    const locus_model_results results = {.size = sizeof results, .next = w->job.logits};
    LOCUS_TRY(locus_session_step(w->job.session, w->job.ids, w->job.offsets, &results, error));
    float *logits = w->job.logits;
    for (int64_t r = 0; r < w->rows; r++) {
        if (w->job.offsets[r + 1] == w->job.offsets[r]) continue;
        w->job.how = &w->row[r].how;
        w->row[r].begun = 1;
        generate_token(&w->job, &w->row[r].text, r, logits);
        logits += w->job.vocabulary;
    }
    return LOCUS_OK;
}

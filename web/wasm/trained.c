/* SPDX-License-Identifier: Apache-2.0 */
#include "trained.h"

#include <locus/tensorfile.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "system.h"

enum { WIDTH = 64, ROOM = 40960, NAME = 64 };
static const char SPACE[] = "\xE2\x90\xA3"; /* ␣ */

/* What a call is made of: an open file, and numbers that are used up from the front. */
typedef struct reading {
    locus_file *file;
    const char *scheme;
    float *memory;
    size_t used;
} reading;

static int find(const reading *r, const char *name, const char *suffix, size_t *index)
{
    char whole[NAME];
    snprintf(whole, sizeof whole, "%s.%s%s", r->scheme, name, suffix);
    for (*index = 0; *index < locus_file_count(r->file); (*index)++)
        if (strcmp(locus_file_tensor_at(r->file, *index)->name, whole) == 0) return 1;
    return 0;
}

static locus_status read_all(const reading *r, size_t index, void *out, locus_error *error)
{
    const locus_file_tensor *t = locus_file_tensor_at(r->file, index);
    return locus_file_read(r->file, index, 0, t->end - t->begin, out, error);
}

/* value = code * scale of the row; codes stand at the end of the room that they turn into. */
static locus_status read_codes(const reading *r, const char *name, size_t index, float *to,
                               size_t elements, size_t width, locus_error *error)
{
    float scale[512];
    size_t scales = 0;
    signed char *codes = (signed char *)to + 3 * elements;
    if (!find(r, name, ".scale", &scales) || elements / width > sizeof scale / sizeof *scale)
        return locus_fail(error, LOCUS_ERR_FORMAT, "%s.%s has no scales", r->scheme, name);
    const locus_file_tensor *t = locus_file_tensor_at(r->file, index);
    const locus_file_tensor *s = locus_file_tensor_at(r->file, scales);
    if (t->end - t->begin != elements || s->end - s->begin != elements / width * sizeof *scale)
        return locus_fail(error, LOCUS_ERR_FORMAT, "%s.%s: expected 8 bits and a scale per row",
                          r->scheme, name);
    LOCUS_TRY(read_all(r, scales, scale, error));
    LOCUS_TRY(read_all(r, index, codes, error));
    for (size_t i = 0; i < elements; i++) to[i] = (float)codes[i] * scale[i / width];
    return LOCUS_OK;
}

/* *view stays absent where the file has no such tensor. */
static locus_status read_tensor(reading *r, const char *name, locus_tensor *view,
                                locus_error *error)
{
    size_t index = 0, elements = 1;
    int64_t shape[LOCUS_MAX_RANK];
    if (!find(r, name, "", &index)) return LOCUS_OK;
    const locus_file_tensor *t = locus_file_tensor_at(r->file, index);
    for (uint32_t i = 0; i < t->rank && i < LOCUS_MAX_RANK; i++) {
        shape[i] = (int64_t)t->shape[i];
        elements *= (size_t)t->shape[i];
    }
    if (t->rank == 0 || t->rank > LOCUS_MAX_RANK || elements == 0 || elements > ROOM - r->used)
        return locus_fail(error, LOCUS_ERR_FORMAT, "%s: found a shape that is too large", t->name);
    float *to = r->memory + r->used;
    const size_t width = (size_t)t->shape[t->rank - 1];
    LOCUS_TRY(strcmp(t->dtype, "F32") == 0
                  ? read_all(r, index, to, error)
                  : read_codes(r, name, index, to, elements, width, error));
    r->used += elements;
    *view = locus_view(to, LOCUS_F32, t->rank, shape);
    return LOCUS_OK;
}

/* The row of a token, -1: the models have not seen it. Row 0 is the start of a text. */
static int64_t row_of(const reading *r, const char *token)
{
    const char *characters = locus_file_metadata(r->file, "characters");
    const char *text = strcmp(token, SPACE) == 0 ? " " : token;
    const char *at = characters != NULL && text[0] != '\0' && text[1] == '\0'
                         ? strchr(characters, text[0])
                         : NULL;
    return at != NULL ? at - characters + 1 : -1;
}

/* LayerNorm of the token's row times sqrt(width), with its position where there is one: what the
 * first block multiplies with W_q, W_k. */
static void make_row(float *to, const float *embedding, const float *position, const float *gain,
                     const float *shift)
{
    double mean = 0.0, square = 0.0, row[WIDTH];
    for (int i = 0; i < WIDTH; i++) {
        row[i] = 8.0 * (double)embedding[i] + (position != NULL ? (double)position[i] : 0.0);
        mean += row[i] / WIDTH;
    }
    for (int i = 0; i < WIDTH; i++) square += (row[i] - mean) * (row[i] - mean) / WIDTH;
    for (int i = 0; i < WIDTH; i++)
        to[i] = (float)((row[i] - mean) / sqrt(square + 1e-5) * (double)gain[i] + (double)shift[i]);
}

static locus_status make_x(reading *r, locus_tensor *x, const char *const *tokens, size_t count,
                           locus_error *error)
{
    locus_tensor embed = {.rank = 0}, gain = {.rank = 0}, shift = {.rank = 0}, input = {.rank = 0};
    float *rows = r->memory + r->used;
    r->used += count * WIDTH;
    LOCUS_TRY(read_tensor(r, "embed", &embed, error));
    LOCUS_TRY(read_tensor(r, "norm.weight", &gain, error));
    LOCUS_TRY(read_tensor(r, "norm.bias", &shift, error));
    LOCUS_TRY(read_tensor(r, "input", &input, error));
    if (embed.rank != 2 || embed.shape[1] != WIDTH || gain.rank != 1 || gain.shape[0] != WIDTH ||
        shift.rank != 1 || shift.shape[0] != WIDTH ||
        (input.rank != 0 &&
         (input.rank != 2 || input.shape[0] < (int64_t)count || input.shape[1] != WIDTH)))
        return locus_fail(error, LOCUS_ERR_SCHEME, "trained: found no model of %s", r->scheme);
    for (size_t i = 0; i < count; i++) {
        const int64_t row = i == 0 ? 0 : row_of(r, tokens[i]);
        if (row < 0 || row >= embed.shape[0])
            return locus_fail(
                error, LOCUS_ERR_RANGE,
                "token %zu: found \"%.8s\", expected a character that the models know", i,
                tokens[i]);
        const float *position =
            input.rank != 0 ? (const float *)input.data + i * WIDTH : NULL;
        make_row(rows + i * WIDTH, (const float *)embed.data + row * WIDTH, position, gain.data,
                 shift.data);
    }
    *x = locus_view(rows, LOCUS_F32, 3, (int64_t[]){1, (int64_t)count, WIDTH});
    return LOCUS_OK;
}

static locus_status read_layer(reading *r, locus_tensors *tensors, const char *const *tokens,
                               size_t count, locus_error *error)
{
    LOCUS_TRY(make_x(r, &tensors->x, tokens, count, error));
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        locus_tensor *view = locus_tensor_at(tensors, i);
        if (view->rank == 0) LOCUS_TRY(read_tensor(r, locus_tensor_name(i), view, error));
    }
    return LOCUS_OK;
}

locus_status trained_tensors(locus_tensors *tensors, float **memory, const char *scheme,
                             const char *const *tokens, size_t count, locus_error *error)
{
    reading r = {.scheme = scheme, .memory = malloc(ROOM * sizeof(float))};
    *memory = r.memory;
    memset(tensors, 0, sizeof *tensors);
    tensors->size = sizeof *tensors;
    if (r.memory == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "trained: no memory");
    LOCUS_TRY(locus_file_open(&r.file, "trained", NULL, error));
    const locus_status status = read_layer(&r, tensors, tokens, count, error);
    locus_file_close(r.file);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <locus/texts.h>

#include <inttypes.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"

enum { FIRST_ROOM = 256 }; /* elements of a list that was empty */

struct locus_texts {
    const locus_allocator *allocator;
    const locus_model *model;
    const locus_tokenizer *tokenizer; /* NULL: ids only */
    locus_model_info info;
    locus_encoding *encoding;
    int has_types;     /* model and tokenizer tell segments apart */
    int32_t *ids;      /* [token_room] */
    int32_t *types;    /* [token_room] */
    uint8_t *segments; /* [token_room] */
    int64_t *offsets;  /* [text_room], of which count + 1 are set */
    int64_t count;
    char *prompted; /* a text behind its prompt */
    size_t token_room, text_room, prompted_room;
    void *workspace;
    size_t workspace_bytes;
};

static locus_status no_memory(locus_error *error)
{
    return locus_fail(error, LOCUS_ERR_MEMORY, "texts: out of memory");
}

/* ---- the list ---- */

/* Room for `needed` elements of `bytes` each in *memory, of which `used` are kept. */
static int grow(const locus_texts *t, void **memory, size_t used, size_t room, size_t bytes)
{
    void *larger = locus_allocate(t->allocator, room, bytes);
    if (larger == NULL) return 0;
    if (used > 0) memcpy(larger, *memory, used * bytes);
    locus_release(t->allocator, *memory);
    *memory = larger;
    return 1;
}

static size_t larger_room(size_t room, size_t needed)
{
    if (room == 0) room = FIRST_ROOM;
    while (room < needed) room += room / 2;
    return room;
}

static int room_for_tokens(locus_texts *t, size_t more)
{
    const size_t used = (size_t)t->offsets[t->count],
                 room = larger_room(t->token_room, used + more);
    if (room == t->token_room) return 1;
    if (!grow(t, (void **)&t->ids, used, room, sizeof *t->ids) ||
        !grow(t, (void **)&t->types, used, room, sizeof *t->types) ||
        !grow(t, (void **)&t->segments, used, room, sizeof *t->segments))
        return 0;
    t->token_room = room;
    return 1;
}

static int room_for_text(locus_texts *t)
{
    const size_t used = (size_t)t->count + 1, room = larger_room(t->text_room, used + 1);
    if (room == t->text_room) return 1;
    if (!grow(t, (void **)&t->offsets, t->text_room > 0 ? used : 0, room, sizeof *t->offsets))
        return 0;
    t->text_room = room;
    return 1;
}

static locus_status check_tokens(const locus_texts *t, const int32_t *ids, int64_t count,
                                 locus_error *error)
{
    if (t->info.most_tokens > 0 && count > t->info.most_tokens)
        return locus_fail(error, LOCUS_ERR_RANGE,
                          "found %" PRId64 " tokens, the model takes at most %" PRId64, count,
                          t->info.most_tokens);
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= t->info.vocabulary)
            return locus_fail(error, LOCUS_ERR_RANGE,
                              "token %" PRId64 ": found id %" PRId32 ", expected 0 to %" PRId64, i,
                              ids[i], t->info.vocabulary - 1);
    return LOCUS_OK;
}

/* types, segments NULL: 0. */
static locus_status append(locus_texts *t, const int32_t *ids, const uint32_t *types,
                           const uint8_t *segments, int64_t count, locus_error *error)
{
    const size_t tokens = (size_t)count;
    LOCUS_TRY(check_tokens(t, ids, count, error));
    if (!room_for_tokens(t, tokens) || !room_for_text(t)) return no_memory(error);
    const int64_t at = t->offsets[t->count];
    if (tokens > 0) memcpy(t->ids + at, ids, tokens * sizeof *ids);
    for (size_t i = 0; i < tokens; i++) t->types[at + (int64_t)i] = types ? (int32_t)types[i] : 0;
    for (size_t i = 0; i < tokens; i++) t->segments[at + (int64_t)i] = segments ? segments[i] : 0;
    t->offsets[++t->count] = at + count;
    return LOCUS_OK;
}

locus_status locus_texts_add_ids(locus_texts *t, const int32_t *ids, int64_t count,
                                 locus_error *error)
{
    if (t == NULL || count < 0 || (ids == NULL && count > 0))
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "texts: NULL or negative argument");
    return append(t, ids, NULL, NULL, count, error);
}

/* With the prompt before it, and cut. */
static locus_status as_the_folder_says(locus_texts *t, locus_text_input *input, locus_error *error)
{
    if (input->truncate == 0 && t->info.cut_tokens > 0)
        input->truncate = (uint32_t)t->info.cut_tokens;
    if (t->info.prompt == NULL) return LOCUS_OK;
    const size_t prompt = strlen(t->info.prompt), bytes = prompt + input->bytes;
    if (bytes > t->prompted_room) {
        const size_t room = larger_room(t->prompted_room, bytes);
        if (!grow(t, (void **)&t->prompted, 0, room, 1)) return no_memory(error);
        t->prompted_room = room;
    }
    memcpy(t->prompted, t->info.prompt, prompt);
    if (input->bytes > 0) memcpy(t->prompted + prompt, input->text, input->bytes);
    input->text = t->prompted;
    input->bytes = bytes;
    return LOCUS_OK;
}

locus_status locus_texts_add(locus_texts *t, const locus_text_input *input, locus_error *error)
{
    if (t == NULL || input == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "texts: NULL argument");
    if (t->tokenizer == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "texts: there is no tokenizer");
    locus_text_input own = *input;
    LOCUS_TRY(as_the_folder_says(t, &own, error));
    LOCUS_TRY(locus_tokenizer_encode(t->tokenizer, &own, t->encoding, error));
    const uint32_t *ids = locus_encoding_ids(t->encoding);
    return append(t, (const int32_t *)ids, t->has_types ? locus_encoding_types(t->encoding) : NULL,
                  locus_encoding_segments(t->encoding), (int64_t)locus_encoding_count(t->encoding),
                  error);
}

void locus_texts_clear(locus_texts *t) { t->count = 0; }
int64_t locus_texts_count(const locus_texts *t) { return t->count; }
const int64_t *locus_texts_offsets(const locus_texts *t) { return t->offsets; }
const int32_t *locus_texts_ids(const locus_texts *t) { return t->ids; }
const int32_t *locus_texts_types(const locus_texts *t) { return t->has_types ? t->types : NULL; }

const uint8_t *locus_texts_segments(const locus_texts *t) { return t->segments; }

/* ---- new and free ---- */

static locus_status set_up(locus_texts *t, locus_error *error)
{
    locus_tokenizer_info info = {.size = sizeof info};
    locus_model_describe(t->model, &t->info);
    if (!room_for_text(t)) return no_memory(error);
    t->count = 0;
    if (t->tokenizer == NULL) return LOCUS_OK;
    LOCUS_TRY(locus_tokenizer_describe(t->tokenizer, &info, error));
    t->has_types = info.has_types && t->info.types > 1;
    return locus_encoding_new(&t->encoding, t->allocator, error);
}

locus_status locus_texts_new(locus_texts **out, const locus_model *model,
                             const locus_tokenizer *tokenizer, const locus_allocator *allocator,
                             locus_error *error)
{
    if (out == NULL || model == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "texts: NULL argument");
    *out = NULL;
    locus_texts *t = locus_allocate(allocator, 1, sizeof *t);
    if (t == NULL) return no_memory(error);
    t->allocator = allocator;
    t->model = model;
    t->tokenizer = tokenizer;
    t->info.size = sizeof t->info;
    const locus_status status = set_up(t, error);
    if (status != LOCUS_OK) {
        locus_texts_free(t);
        return status;
    }
    *out = t;
    return LOCUS_OK;
}

void locus_texts_free(locus_texts *t)
{
    if (t == NULL) return;
    locus_encoding_free(t->encoding);
    locus_release(t->allocator, t->ids);
    locus_release(t->allocator, t->types);
    locus_release(t->allocator, t->segments);
    locus_release(t->allocator, t->offsets);
    locus_release(t->allocator, t->prompted);
    locus_release(t->allocator, t->workspace);
    locus_release(t->allocator, t);
}

/* ---- forward ---- */

static locus_status run(locus_texts *t, const locus_model_pass *pass,
                        const locus_model_batch *batch, const locus_model_results *results,
                        locus_error *error)
{
    const size_t bytes = locus_model_workspace(pass);
    if (bytes > t->workspace_bytes) {
        locus_release(t->allocator, t->workspace);
        t->workspace_bytes = 0;
        t->workspace = locus_allocate(t->allocator, bytes, 1);
        if (t->workspace == NULL) return no_memory(error);
        t->workspace_bytes = bytes;
    }
    return locus_model_forward(pass, batch, results, t->workspace, t->workspace_bytes, error);
}

locus_status locus_texts_forward_rows(locus_texts *t, const int32_t *rows, int64_t count,
                                      const locus_model_results *results, locus_error *error)
{
    if (t == NULL || results == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "texts: NULL argument");
    locus_model_pass *pass = NULL;
    LOCUS_TRY(locus_model_pass_new(&pass, t->model, t->offsets, t->count, error));
    const locus_model_batch batch = {.size = sizeof batch,
                                     .ids = t->ids,
                                     .types = locus_texts_types(t),
                                     .rows = rows,
                                     .row_count = count};
    const locus_status status = run(t, pass, &batch, results, error);
    locus_model_pass_free(pass);
    return status;
}

locus_status locus_texts_forward(locus_texts *t, const locus_model_results *results,
                                 locus_error *error)
{
    return locus_texts_forward_rows(t, NULL, 0, results, error);
}

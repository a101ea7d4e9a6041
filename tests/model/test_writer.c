/* SPDX-License-Identifier: Apache-2.0 */

/* Texts that come and go (locus_writer): each has the tokens that locus_generate gives it alone, whoever
 * writes beside it. */

#include <locus/generate.h>
#include <stdlib.h>
#include <string.h>

#include "model/folder.h"
#include "support/check.h"
#include "support/problem.h"

enum { TEXTS = 9, ROWS = 3, LONGEST = 24, MOST_PROMPT = 7 };

typedef struct subject {
    int32_t ids[MOST_PROMPT];
    int64_t count;
    locus_generation how;
    int32_t want[LONGEST];
    int64_t want_count;
    int64_t row; /* -1: it has not begun, or has been taken out */
    int told;    /* tokens that the callback was told */
} subject;

static void count_token(void *context, int64_t row, int32_t id)
{
    (void)row, (void)id;
    ++*(int *)context;
}

static void set_subject(subject *s, const locus_model *model, int number)
{
    static const int32_t ends[1] = {7};
    s->count = 1 + number % MOST_PROMPT;
    for (int64_t i = 0; i < s->count; i++)
        s->ids[i] = 3 + (int32_t)(test_uniform(91, (uint64_t)(number * 16 + i)) * 40.0);
    s->how = (locus_generation){.size = sizeof s->how};
    locus_generation_init(&s->how, model);
    s->how.max_length = MOST_PROMPT + 1 + (5 * number) % (LONGEST - MOST_PROMPT - 1);
    s->how.ends = ends;
    s->how.end_count = 1;
    s->how.start = 0;
    s->how.beams = 1;
    s->how.sample = number % 2 == 1;
    s->how.top_k = 20;
    s->how.seed = (uint64_t)number;
    s->row = -1;
}

/* What locus_generate makes of it alone. */
static void set_want(subject *s, const locus_model *model)
{
    const int64_t offsets[2] = {0, s->count};
    locus_generated *alone = NULL;
    locus_error error = {""};
    CHECK(locus_generate(&alone, model, &s->how, s->ids, offsets, 1, &error) == LOCUS_OK, "%s",
          error.text);
    if (alone == NULL) return;
    const int32_t *ids = locus_generated_ids(alone, 0, &s->want_count);
    memcpy(s->want, ids, (size_t)s->want_count * sizeof *ids);
    locus_generated_free(alone);
}

static void take_out(locus_writer *w, subject *s, int number)
{
    int64_t count = 0;
    int done = 0;
    const int32_t *ids = locus_writer_ids(w, s->row, &count, &done);
    if (!done) return;
    CHECK(count == s->want_count && memcmp(ids, s->want, (size_t)count * sizeof *ids) == 0,
          "text %d depends on those that are written beside it", number);
    CHECK(s->told == (int)(count - s->count), "text %d: the callback was told %d of %d tokens",
          number, s->told, (int)(count - s->count));
    locus_writer_end(w, s->row);
    s->row = -1;
}

/* More texts than rows; one is begun wherever a row is free, one is given up in its middle. */
static void write_all(locus_writer *w, subject *s)
{
    locus_error error = {""};
    int next = 0, left = TEXTS;
    for (int step = 0; left > 0 && step < 4 * TEXTS * LONGEST; step++) {
        for (int64_t row = 0; next < TEXTS && row >= 0 && step % 2 == 0;) {
            s[next].how.token = count_token;
            s[next].how.context = &s[next].told;
            CHECK(locus_writer_begin(w, &s[next].how, s[next].ids, s[next].count, &row, &error) ==
                      LOCUS_OK,
                  "%s", error.text);
            if (row >= 0) s[next++].row = row;
        }
        CHECK(locus_writer_step(w, &error) == LOCUS_OK, "%s", error.text);
        left = TEXTS - next;
        for (int t = 0; t < next; t++) {
            if (t == 4 && s[t].row >= 0 && s[t].told == 2) {
                locus_writer_end(w, s[t].row);
                s[t].row = -1;
            }
            if (s[t].row >= 0) take_out(w, &s[t], t);
            left += s[t].row >= 0;
        }
    }
    CHECK(left == 0, "%d texts never ended", left);
}

static void test_beside(const test_model *m, const locus_model *model)
{
    subject s[TEXTS] = {{.count = 0}};
    locus_writer *w = NULL;
    locus_error error = {""};
    if (!check_begin("model/%s/writer", m->name)) return;
    for (int t = 0; t < TEXTS; t++) {
        set_subject(&s[t], model, t);
        set_want(&s[t], model);
    }
    CHECK(locus_writer_new(&w, model, ROWS, &error) == LOCUS_OK, "%s", error.text);
    if (w != NULL) write_all(w, s);
    locus_writer_free(w);
}

static void test_refusals(const test_model *m, const locus_model *model)
{
    locus_writer *w = NULL;
    locus_error error = {""};
    locus_generation how = {.size = sizeof how};
    const int32_t wild[1] = {1 << 20}, tame[1] = {3};
    int64_t row = 0;
    if (!check_begin("model/%s/writer/refusals", m->name)) return;
    CHECK(locus_writer_new(&w, model, 0, &error) == LOCUS_ERR_ARGUMENT, "no rows: %s", error.text);
    CHECK(locus_writer_new(&w, model, 1, &error) == LOCUS_OK, "%s", error.text);
    locus_generation_init(&how, model);
    how.max_length = 8;
    how.beams = 1;
    CHECK(locus_writer_begin(w, &how, wild, 1, &row, &error) == LOCUS_ERR_RANGE && row == -1,
          "an id beyond the vocabulary");
    how.beams = 2;
    CHECK(locus_writer_begin(w, &how, tame, 1, &row, &error) == LOCUS_ERR_OPTION, "beams");
    how.beams = 1;
    CHECK(locus_writer_begin(w, &how, tame, 1, &row, &error) == LOCUS_OK && row == 0, "%s",
          error.text);
    CHECK(locus_writer_begin(w, &how, tame, 1, &row, &error) == LOCUS_OK && row == -1,
          "a second text in one row");
    locus_writer_end(w, 0);
    CHECK(locus_writer_step(w, &error) == LOCUS_OK, "a step of nobody");
    locus_writer_free(w);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    const char *path = test_folder("writer");
    for (size_t i = 0; i < test_model_count; i++) {
        locus_model *model = NULL;
        locus_model_info info = {.size = sizeof info};
        locus_error error = {""};
        write_model(path, &test_models[i], &(folder_change){.scale = 0.4});
        if (locus_model_open(&model, path, NULL, &error) != LOCUS_OK) continue;
        locus_model_describe(model, &info);
        if (info.head == LOCUS_MODEL_GENERATE && info.decoder_layers == 0) {
            test_beside(&test_models[i], model);
            test_refusals(&test_models[i], model);
        }
        locus_model_free(model);
    }
    remove_model(path);
    return check_finish("model/writer");
}

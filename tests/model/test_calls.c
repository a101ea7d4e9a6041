/* SPDX-License-Identifier: Apache-2.0 */

/* Calls whose numbers cannot be meant: offsets that fall, that begin elsewhere, at the ends of their
 * type; lengths beyond MODEL_MOST_TOKENS; no tokens at all; structs of another size. Each is refused in
 * one line or does what it says, within its room. */

#include <limits.h>
#include <locus/generate.h>
#include <locus/model.h>
#include <stdlib.h>
#include <string.h>

#include "model/folder.h"
#include "support/check.h"

enum { IDS = 4 };
static const int32_t ids[IDS] = {3, 4, 9, 5};

static locus_model *open_model(const char *path, const char *name)
{
    locus_model *model = NULL;
    locus_error error = {""};
    size_t m = 0;
    while (strcmp(test_models[m].name, name) != 0) m++;
    write_model(path, &test_models[m], NULL);
    CHECK(locus_model_open(&model, path, NULL, &error) == LOCUS_OK, "%s", error.text);
    return model;
}

static int is_refused(locus_status status, const locus_error *error)
{
    return (status == LOCUS_ERR_ARGUMENT || status == LOCUS_ERR_RANGE) && error->text[0] != '\0' &&
           strchr(error->text, '\n') == NULL;
}

/* ---- offsets ---- */

static const struct {
    const char *name;
    int64_t offsets[3];
} wrong[] = {
    {"fall", {0, 4, 3}},
    {"before", {-1000, 2, 4}},
    {"behind", {1, 2, 4}},
    {"least", {INT64_MIN, 2, 4}},
    {"lowest", {0, INT64_MIN, 4}},
    {"highest", {0, INT64_MAX, 4}},
    {"both", {0, INT64_MAX, INT64_MIN}},
    {"wraps", {0, -2, INT64_MAX}},
    {"long", {0, 2, (int64_t)MODEL_MOST_TOKENS + 3}},
};

static locus_status try_pass(const locus_model *model, const int64_t *offsets, locus_error *error)
{
    locus_model_pass *pass = NULL;
    const locus_status status = locus_model_pass_new(&pass, model, offsets, 2, error);
    locus_model_pass_free(pass);
    return status;
}

static locus_status try_step(const locus_model *model, const int64_t *offsets, locus_error *error)
{
    const locus_model_results results = {.size = sizeof results};
    locus_session *session = NULL;
    CHECK(locus_session_new(&session, model, 2, error) == LOCUS_OK, "%s", error->text);
    const locus_status status = locus_session_step(session, ids, offsets, &results, error);
    locus_session_free(session);
    return status;
}

static locus_status try_generate(const locus_model *model, const int64_t *offsets,
                                 locus_error *error)
{
    locus_generated *generated = NULL;
    locus_generation how = {.size = sizeof how};
    locus_generation_init(&how, model);
    how.max_new_tokens = 4;
    const locus_status status = locus_generate(&generated, model, &how, ids, offsets, 2, error);
    locus_generated_free(generated);
    return status;
}

static void test_offsets(const char *path)
{
    static const struct {
        const char *name;
        locus_status (*call)(const locus_model *, const int64_t *, locus_error *);
    } calls[] = {{"pass", try_pass}, {"step", try_step}, {"generate", try_generate}};
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            locus_error error = {""};
            if (!check_begin("model/calls/%s/offsets/%s", calls[c].name, wrong[i].name)) continue;
            locus_model *model = open_model(path, "llama");
            const locus_status status = calls[c].call(model, wrong[i].offsets, &error);
            CHECK(is_refused(status, &error), "status %d: %s", (int)status, error.text);
            locus_model_free(model);
        }
}

/* ---- lengths of an answer ---- */

static locus_status generate_lengths(const locus_model *model, int64_t most, int64_t least,
                                     locus_error *error)
{
    static const int64_t offsets[2] = {0, 2};
    const int32_t end = 0;
    locus_generated *generated = NULL;
    locus_generation how = {.size = sizeof how};
    locus_generation_init(&how, model);
    how.max_new_tokens = most;
    how.min_new_tokens = least;
    how.ends = &end;
    how.end_count = 1;
    how.forced_begin = -1;
    const locus_status status = locus_generate(&generated, model, &how, ids, offsets, 1, error);
    locus_generated_free(generated);
    return status;
}

static void test_lengths(const char *path)
{
    if (!check_begin("model/calls/lengths")) return;
    locus_model *model = open_model(path, "llama");
    const int64_t lengths[] = {(int64_t)MODEL_MOST_TOKENS + 1, INT64_MAX - 1, INT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        locus_error error = {""};
        CHECK(generate_lengths(model, lengths[i], 0, &error) == LOCUS_ERR_OPTION &&
                  strstr(error.text, "max_new_tokens: found"),
              "%s", error.text);
        CHECK(generate_lengths(model, 2, lengths[i], &error) == LOCUS_ERR_OPTION &&
                  strstr(error.text, "min_new_tokens: found"),
              "%s", error.text);
    }
    CHECK(generate_lengths(model, 2, MODEL_MOST_TOKENS, NULL) == LOCUS_OK, "at the limit");
    locus_model_free(model);
}

/* Rows change places before there is a cache. */
static void test_reorder(const char *path)
{
    static const int64_t from[2] = {1, 1};
    locus_session *session = NULL;
    locus_error error = {""};
    if (!check_begin("model/calls/reorder")) return;
    locus_model *model = open_model(path, "llama");
    CHECK(locus_session_new(&session, model, 2, &error) == LOCUS_OK, "%s", error.text);
    CHECK(locus_session_reorder(session, from, &error) == LOCUS_OK, "%s", error.text);
    locus_session_free(session);
    locus_model_free(model);
}

/* ---- one attention handed out ---- */

/* What is written stays within the room: blocks of exactly that size, which the sanitizers and
 * valgrind watch, and a float behind it that nobody may touch. */
static void attend(const locus_model *model, int64_t queries)
{
    static float q[1024];
    locus_config config;
    locus_tensors in;
    locus_error error = {""};
    const locus_model_attended attended = {.size = sizeof attended, .queries = queries, .q = q};
    const int64_t floats = locus_model_attended_room(model, &attended);
    float *room = malloc((size_t)(floats + 1) * sizeof *room);
    room[floats] = 77.0f;
    CHECK(floats > 0, "%d floats for %d queries", (int)floats, (int)queries);
    CHECK(locus_model_attended_call(model, &attended, room, &config, &in, &error) == LOCUS_OK, "%s",
          error.text);
    CHECK(room[floats] == 77.0f, "%d queries write beyond their room", (int)queries);
    CHECK(in.q.shape[2] == queries && in.rel_k.data == room, "its tensors");
    free(room);
}

static void test_attended(const char *path)
{
    if (!check_begin("model/calls/attended/room")) return;
    locus_model *model = open_model(path, "xlnet-fill");
    for (int64_t queries = 0; queries < 3; queries++) attend(model, queries);
    locus_model_free(model);
}

static void test_attended_numbers(const char *path)
{
    static const int64_t queries[] = {-1, INT64_MIN, (int64_t)MODEL_MOST_TOKENS + 1, INT64_MAX,
                                      (int64_t)1 << 62};
    locus_config config;
    locus_tensors in;
    float q[1] = {0};
    if (!check_begin("model/calls/attended/numbers")) return;
    locus_model *model = open_model(path, "xlnet-fill");
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        locus_error error = {""};
        const locus_model_attended attended = {.size = sizeof attended,
                                               .queries = queries[i],
                                               .q = q};
        CHECK(locus_model_attended_room(model, &attended) == 0, "room of nothing");
        const locus_status status =
            locus_model_attended_call(model, &attended, q, &config, &in, &error);
        CHECK(is_refused(status, &error) && strstr(error.text, "queries: found"), "%s", error.text);
    }
    const locus_model_attended some = {.size = sizeof some, .queries = 1};
    CHECK(locus_model_attended_call(model, &some, q, &config, &in, NULL) == LOCUS_ERR_ARGUMENT,
          "no rows");
    locus_model_free(model);
}

/* Of another version: what it does not have counts as 0, and nothing beyond it is read. */
static void test_attended_size(const char *path)
{
    if (!check_begin("model/calls/attended/size")) return;
    locus_model *model = open_model(path, "xlnet-fill");
    const uint32_t bytes = (uint32_t)offsetof(locus_model_attended, types);
    const locus_model_attended whole = {.size = sizeof whole, .queries = 2},
                               shorter = {.size = bytes, .queries = 2};
    void *part = malloc(bytes);
    memcpy(part, &shorter, bytes);
    CHECK(locus_model_attended_room(model, part) == locus_model_attended_room(model, &whole),
          "room of a shorter struct");
    free(part);
    CHECK(locus_model_attended_room(NULL, &whole) == 0, "no model");
    CHECK(locus_model_attended_room(model, NULL) == 0, "no struct");
    CHECK(locus_model_attention_room(NULL, 2) == 0, "no model");
    locus_model_free(model);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    const char *path = test_folder("calls");
    test_offsets(path);
    test_lengths(path);
    test_reorder(path);
    test_attended(path);
    test_attended_numbers(path);
    test_attended_size(path);
    remove_model(path);
    return check_finish("model/calls");
}

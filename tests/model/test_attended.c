/* SPDX-License-Identifier: Apache-2.0 */

/* What a layer attends by, handed out as a call: of the decoder behind an encoder, of that decoder to
 * the encoder, of XLNet with its pairs of types. The terms of its scores add up, its attention in
 * double is what the kernels computed, and asking for it changes no bit. That the weights are those of
 * transformers is what explain.py looks at. */

#include <locus/explain.h>
#include <locus/model.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/folder.h"
#include "support/check.h"

enum { TOKENS = 9, ANSWER = 6, MOST = 4096, TERMS = 16 };
static const int32_t text[TOKENS] = {3, 41, 7, 12, 5, 5, 30, 2, 9},
                     answer[ANSWER] = {0, 8, 19, 4, 4, 23};
static const int32_t types[TOKENS] = {0, 0, 0, 1, 1, 1, 1, 0, 2};

static const test_model *find(const char *name)
{
    for (size_t i = 0; i < test_model_count; i++)
        if (strcmp(test_models[i].name, name) == 0) return &test_models[i];
    exit(2);
}

/* What a run gives, and what it was asked for. */
typedef struct shown {
    float q[2][MOST], kv[2][MOST], logits[MOST];
    float *rows[2], *sources[2];
} shown;

/* XLNet knows types without a table of them. */
static const int32_t *types_of(const locus_model *model)
{
    locus_model_info info = {.size = sizeof info};
    locus_model_describe(model, &info);
    return strcmp(info.family, "xlnet") == 0 ? types : NULL;
}

static int run(const locus_model *model, uint32_t stack, int look, shown *s)
{
    const int64_t offsets[2] = {0, TOKENS}, decoder_offsets[2] = {0, ANSWER};
    const locus_model_batch batch = {
        .size = sizeof batch, .ids = text, .types = types_of(model), .decoder_ids = answer};
    locus_model_results results = {.size = sizeof results};
    locus_model_pass *pass = NULL;
    const int both = stack != LOCUS_MODEL_FIRST;
    for (int l = 0; l < 2; l++) s->rows[l] = s->q[l], s->sources[l] = s->kv[l];
    if (both) results.logits = s->logits;
    if (look && stack == LOCUS_MODEL_FIRST) results.qkv = s->rows;
    if (look && stack == LOCUS_MODEL_DECODER) results.decoder_qkv = s->rows;
    if (look && stack == LOCUS_MODEL_CROSS)
        results.cross_q = s->rows, results.cross_kv = s->sources;
    locus_status status =
        both ? locus_model_pass_both(&pass, model, offsets, decoder_offsets, 1, NULL)
             : locus_model_pass_new(&pass, model, offsets, 1, NULL);
    if (status != LOCUS_OK) return 0;
    const size_t bytes = locus_model_workspace(pass);
    void *workspace = malloc(bytes);
    status = locus_model_forward(pass, &batch, &results, workspace, bytes, NULL);
    free(workspace);
    locus_model_pass_free(pass);
    return status == LOCUS_OK;
}

/* Terms of every pair of one head against their score, and its content against q . k in double. */
static void check_head(locus_explainer *e, const locus_explainer_info *info,
                       const locus_tensors *in, int64_t head)
{
    static double terms[TERMS * MOST], score[MOST], weight[MOST];
    static uint8_t visible[MOST];
    const locus_explain_block block = {
        .size = sizeof block, .head = head, .queries = info->queries, .keys = info->keys};
    const locus_explained into = {
        .size = sizeof into, .terms = terms, .score = score, .weight = weight, .visible = visible};
    locus_error error = {""};
    const int64_t pairs = info->queries * info->keys, D = in->q.shape[3];
    CHECK(locus_explain(e, &block, &into, &error) == LOCUS_OK, "%s", error.text);
    for (int64_t i = 0; i < pairs; i++) {
        const int64_t m = i / info->keys, n = i % info->keys;
        const float *q = (const float *)in->q.data + head * in->q.stride[1] + m * in->q.stride[2];
        const float *k = (const float *)in->k.data + head * in->k.stride[1] + n * in->k.stride[2];
        double sum = 0.0, content = 0.0;
        if (!visible[i]) continue;
        for (size_t t = 0; t < info->terms; t++) sum += terms[(int64_t)t * pairs + i];
        for (int64_t d = 0; d < D; d++) content += (double)q[d] * (double)k[d];
        CHECK(fabs(sum - score[i]) <= 1e-12 * (1.0 + fabs(score[i])), "terms of pair %d: %g, %g",
              (int)i, sum, score[i]);
        CHECK(fabs(terms[i] - info->scale * content) <= 1e-12 * (1.0 + fabs(terms[i])),
              "content of pair %d", (int)i);
    }
}

static void check_layer(const locus_model *model, uint32_t stack, int64_t layer, const shown *s,
                        size_t want_terms)
{
    const int first = stack == LOCUS_MODEL_FIRST;
    const locus_model_attended attended = {.size = sizeof attended,
                                           .stack = stack,
                                           .layer = layer,
                                           .queries = first ? TOKENS : ANSWER,
                                           .keys = TOKENS,
                                           .q = s->q[layer],
                                           .kv = s->kv[layer],
                                           .types = first ? types_of(model) : NULL};
    locus_config config;
    locus_tensors in;
    locus_error error = {""};
    locus_explainer *e = NULL;
    locus_explainer_info info = {.size = sizeof info};
    const int64_t floats = locus_model_attended_room(model, &attended);
    float *room = malloc((size_t)(floats + 1) * sizeof *room);
    CHECK(locus_model_attended_call(model, &attended, room, &config, &in, &error) == LOCUS_OK, "%s",
          error.text);
    CHECK(locus_explainer_new(&e, LOCUS_ATTEND, &config, &in, &error) == LOCUS_OK, "%s",
          error.text);
    if (e != NULL) {
        locus_explainer_describe(e, &info);
        CHECK(info.terms == want_terms, "%d terms", (int)info.terms);
        for (int64_t h = 0; h < info.heads; h++) check_head(e, &info, &in, h);
    }
    locus_explainer_free(e);
    if (floats > 0)
        CHECK(locus_model_attended_call(model, &attended, NULL, &config, &in, &error) ==
                  LOCUS_ERR_ARGUMENT,
              "without room");
    free(room);
}

static void test_stack(const char *name, uint32_t stack, size_t terms)
{
    static shown plain, looked;
    locus_model *model = NULL;
    locus_error error = {""};
    if (!check_begin("model/%s/attended-%u", name, (unsigned)stack)) return;
    const char *path = test_folder("attended");
    write_model(path, find(name), NULL);
    CHECK(locus_model_open(&model, path, NULL, &error) == LOCUS_OK, "%s", error.text);
    CHECK(model != NULL && run(model, stack, 0, &plain) && run(model, stack, 1, &looked), "runs");
    CHECK(memcmp(plain.logits, looked.logits, sizeof plain.logits) == 0,
          "other bits when looked at");
    locus_model_info info = {.size = sizeof info};
    CHECK(locus_model_describe_stack(model, stack, &info, &error) == LOCUS_OK, "%s", error.text);
    for (int64_t l = 0; l < info.layers; l++) check_layer(model, stack, l, &looked, terms);
    locus_model_free(model);
    remove_model(path);
}

static void test_refusals(void)
{
    locus_model *model = NULL;
    locus_config config;
    locus_tensors in;
    locus_error error = {""};
    locus_model_info info = {.size = sizeof info};
    float q[MOST] = {0.0f};
    if (!check_begin("model/attended/refusals")) return;
    const char *path = test_folder("attended");
    locus_model_attended attended = {.size = sizeof attended, .queries = 2, .q = q};
    write_model(path, find("bert"), NULL);
    CHECK(locus_model_open(&model, path, NULL, &error) == LOCUS_OK, "%s", error.text);
    for (uint32_t stack = LOCUS_MODEL_DECODER; stack <= LOCUS_MODEL_CROSS + 1; stack++) {
        attended.stack = stack;
        CHECK(locus_model_attended_call(model, &attended, NULL, &config, &in, &error) ==
                      LOCUS_ERR_ARGUMENT &&
                  strstr(error.text, stack <= LOCUS_MODEL_CROSS ? "no decoder" : "stack: found 3"),
              "%s", error.text);
        CHECK(locus_model_describe_stack(model, stack, &info, &error) == LOCUS_ERR_ARGUMENT,
              "stack %u", (unsigned)stack);
    }
    attended.stack = LOCUS_MODEL_FIRST;
    attended.layer = 2;
    CHECK(locus_model_attended_call(model, &attended, NULL, &config, &in, &error) ==
                  LOCUS_ERR_ARGUMENT &&
              strstr(error.text, "layer: found 2, expected 0 to 1"),
          "%s", error.text);
    attended.layer = 0;
    attended.q = NULL;
    CHECK(locus_model_attended_call(model, &attended, NULL, &config, &in, &error) ==
              LOCUS_ERR_ARGUMENT,
          "without rows");
    locus_model_free(model);
    write_model(path, find("transfo-xl"), NULL);
    CHECK(locus_model_open(&model, path, NULL, &error) == LOCUS_OK, "%s", error.text);
    attended.q = q;
    CHECK(locus_model_attended_call(model, &attended, q, &config, &in, &error) ==
                  LOCUS_ERR_ARGUMENT &&
              strstr(error.text, "in a memory that is not handed out"),
          "%s", error.text);
    locus_model_free(model);
    remove_model(path);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    test_stack("t5-decoder", LOCUS_MODEL_FIRST, 2);
    test_stack("t5-decoder", LOCUS_MODEL_DECODER, 2);
    test_stack("t5-decoder", LOCUS_MODEL_CROSS, 1);
    test_stack("umt5-decoder", LOCUS_MODEL_DECODER, 2);
    test_stack("umt5-decoder", LOCUS_MODEL_CROSS, 1);
    test_stack("marian", LOCUS_MODEL_DECODER, 1);
    test_stack("marian", LOCUS_MODEL_CROSS, 1);
    test_stack("xlnet-fill", LOCUS_MODEL_FIRST, 5);
    test_refusals();
    return check_finish("model/attended");
}

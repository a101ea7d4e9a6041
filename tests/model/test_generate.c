/* SPDX-License-Identifier: Apache-2.0 */

/* Generation by small decoders of every family: bits, caches, settings, refusals, memory. That the
 * tokens are those of transformers is what run.sh looks at. */

#define _POSIX_C_SOURCE 200809L
#include <locus/generate.h>
#include <locus/runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/folder.h"
#include "support/allocator.h"
#include "support/check.h"
#include "support/problem.h"

enum { TEXTS = 3, TOKENS = 12, LONGEST = 30, VOCABULARY = 50 };
static const int64_t offsets[TEXTS + 1] = {0, 5, 6, 12};

static void set_ids(int32_t ids[TOKENS])
{
    for (int i = 0; i < TOKENS; i++) ids[i] = 3 + (int32_t)(test_uniform(78, (uint64_t)i) * 40.0);
}

static locus_model *open_model(const char *path, const char *isa, uint32_t threads)
{
    locus_model *model = NULL;
    locus_error error = {""};
    const locus_model_config config = {.size = sizeof config, .threads = threads, .isa = isa};
    CHECK(locus_model_open(&model, path, &config, &error) == LOCUS_OK, "%s", error.text);
    return model;
}

static int generates(const char *path)
{
    locus_model *model = NULL;
    locus_model_info info = {.size = sizeof info};
    locus_error error = {""};
    if (locus_model_open(&model, path, NULL, &error) != LOCUS_OK) return 0;
    locus_model_describe(model, &info);
    locus_model_free(model);
    return info.head == LOCUS_MODEL_GENERATE;
}

/* ---- one run ---- */

typedef struct answer {
    int64_t count[TEXTS];
    int32_t ids[TEXTS][LONGEST];
    double score[TEXTS];
} answer;

static const int32_t ends[2] = {7, 11};

/* 0: greedy, 1: beams, 2: sampling */
static locus_generation settings_of(const locus_model *model, int strategy)
{
    locus_generation how = {.size = sizeof how};
    locus_generation_init(&how, model);
    how.max_length = LONGEST;
    how.ends = ends;
    how.end_count = 2;
    how.start = 0;
    how.beams = strategy == 1 ? 3 : 1;
    how.sample = strategy == 2;
    how.top_k = 20;
    how.top_p = 0.9;
    how.seed = 5;
    return how;
}

static locus_status generate(const locus_model *model, const locus_generation *how,
                             const int32_t *ids, const int64_t *texts, int64_t count, answer *a,
                             locus_error *error)
{
    locus_generated *generated = NULL;
    const locus_status status = locus_generate(&generated, model, how, ids, texts, count, error);
    memset(a, 0, sizeof *a);
    for (int64_t t = 0; status == LOCUS_OK && t < count; t++) {
        const int32_t *found = locus_generated_ids(generated, t, &a->count[t]);
        CHECK(a->count[t] <= LONGEST, "longer than max_length");
        if (a->count[t] > LONGEST) continue;
        memcpy(a->ids[t], found, (size_t)a->count[t] * sizeof *found);
        a->score[t] = locus_generated_score(generated, t);
    }
    locus_generated_free(generated);
    return status;
}

/* ---- bits ---- */

static void check_alone(const locus_model *model, const locus_generation *how, const int32_t *ids,
                        const answer *batch)
{
    answer alone;
    locus_error error = {""};
    for (int t = 0; t < TEXTS; t++) {
        const int64_t one[2] = {0, offsets[t + 1] - offsets[t]};
        CHECK(generate(model, how, ids + offsets[t], one, 1, &alone, &error) == LOCUS_OK, "%s",
              error.text);
        CHECK(alone.count[0] == batch->count[t] && alone.score[0] == batch->score[t] &&
                  memcmp(alone.ids[0], batch->ids[t], sizeof alone.ids[0]) == 0,
              "text %d depends on the batch", t);
    }
}

static void test_bits(const test_model *m, const char *path)
{
    static const uint32_t threads[] = {1, 2, 3, 7};
    static const char *const strategies[] = {"greedy", "beams", "sampling"};
    int32_t ids[TOKENS];
    answer one, other;
    locus_error error = {""};
    set_ids(ids);
    for (int strategy = 0; strategy < 3; strategy++) {
        if (!check_begin("model/%s/%s/bits", m->name, strategies[strategy])) continue;
        for (int i = 0; i < 4; i += check_sample() ? 2 : 1) {
            locus_model *model = open_model(path, NULL, threads[i]);
            if (model == NULL) break;
            const locus_generation how = settings_of(model, strategy);
            answer *a = i == 0 ? &one : &other;
            CHECK(generate(model, &how, ids, offsets, TEXTS, a, &error) == LOCUS_OK, "%s",
                  error.text);
            CHECK(i == 0 || memcmp(&one, &other, sizeof one) == 0, "%u threads give other bits",
                  (unsigned)threads[i]);
            if (i == 0) check_alone(model, &how, ids, &one);
            locus_model_free(model);
        }
        for (size_t k = 0; locus_isa_name(k) != NULL; k++) {
            const char *isa = locus_isa_name(k), *best = locus_isa_pick(NULL);
            if (strcmp(isa, "generic") == 0 || strcmp(isa, best) == 0 || !locus_isa_available(isa))
                continue;
            locus_model *model = open_model(path, isa, 1);
            if (model == NULL) break;
            const locus_generation how = settings_of(model, strategy);
            CHECK(generate(model, &how, ids, offsets, TEXTS, &other, &error) == LOCUS_OK, "%s",
                  error.text);
            CHECK(memcmp(&one, &other, sizeof one) == 0, "%s gives other bits", isa);
            locus_model_free(model);
        }
    }
}

/* ---- caches ---- */

/* Logits behind the last of `count` tokens, fed in pieces of `piece`. */
static void feed(const locus_model *model, const int32_t *ids, int64_t count, int64_t piece,
                 float logits[VOCABULARY])
{
    locus_session *session = NULL;
    locus_error error = {""};
    const locus_model_results results = {.size = sizeof results, .next = logits};
    CHECK(locus_session_new(&session, model, 1, &error) == LOCUS_OK, "%s", error.text);
    if (session != NULL && has_decoder(model))
        CHECK(locus_session_read(session, ids, (const int64_t[]){0, 5}, 1, NULL, &error) ==
                  LOCUS_OK,
              "%s", error.text);
    for (int64_t at = 0; session != NULL && at < count; at += piece) {
        const int64_t step[2] = {0, at + piece < count ? piece : count - at};
        CHECK(locus_session_step(session, ids + at, step, &results, &error) == LOCUS_OK, "%s",
              error.text);
    }
    locus_session_free(session);
}

/* Tokens give the same logits at once and one after the other, up to the order of sums. Without padding
 * (1), which M2M100 counts among the tokens before a step and not inside of one, as transformers does. */
static void test_caches(const test_model *m, const char *path)
{
    enum { MANY = 140, FEW = 37 }; /* more than the cache has at first; than SPARE_PLANS, twice */
    float whole[VOCABULARY], pieces[VOCABULARY];
    int32_t ids[MANY];
    if (!check_begin("model/%s/caches", m->name)) return;
    for (int i = 0; i < MANY; i++) ids[i] = 2 + (int32_t)(test_uniform(79, (uint64_t)i) * 48.0);
    locus_model *model = open_model(path, NULL, 2);
    if (model == NULL) return;
    locus_model_info info = {.size = sizeof info};
    CHECK(locus_model_describe_stack(model,
                                     has_decoder(model) ? LOCUS_MODEL_DECODER : LOCUS_MODEL_FIRST,
                                     &info, NULL) == LOCUS_OK,
          "no layers");
    const int64_t count = info.most_tokens > 0 ? FEW : MANY;
    feed(model, ids, count, count, whole);
    for (int64_t piece = 1; piece < FEW; piece += check_sample() ? 16 : 5) {
        double worst = 0.0;
        feed(model, ids, count, piece, pieces);
        for (int v = 0; v < VOCABULARY; v++)
            worst = fmax(worst, fabs((double)whole[v] - (double)pieces[v]));
        CHECK(worst < 2e-5, "pieces of %d: logits %g away", (int)piece, worst);
    }
    locus_model_free(model);
}

/* A row that goes on from another gives what that one would have given. */
static void test_reorder(const test_model *m, const char *path)
{
    enum { ROWS = 3 };
    static const int64_t from[ROWS] = {2, 2, 0};
    static const int32_t first[ROWS * 2] = {4, 5, 6, 7, 8, 9}, next[ROWS] = {10, 10, 10};
    static const int64_t two[ROWS + 1] = {0, 2, 4, 6}, one[ROWS + 1] = {0, 1, 2, 3};
    float kept[ROWS][VOCABULARY], moved[ROWS][VOCABULARY];
    locus_error error = {""};
    if (!check_begin("model/%s/reorder", m->name)) return;
    locus_model *model = open_model(path, NULL, 1);
    for (int move = 0; model != NULL && move < 2; move++) {
        locus_session *session = NULL;
        const locus_model_results results = {.size = sizeof results,
                                             .next = move ? moved[0] : kept[0]};
        locus_status status = locus_session_new(&session, model, ROWS, &error);
        if (status == LOCUS_OK && has_decoder(model))
            status = locus_session_read(session, first, (const int64_t[]){0, 4}, 1, NULL, &error);
        if (status == LOCUS_OK) status = locus_session_step(session, first, two, &results, &error);
        if (status == LOCUS_OK && move) status = locus_session_reorder(session, from, &error);
        if (status == LOCUS_OK) status = locus_session_step(session, next, one, &results, &error);
        CHECK(status == LOCUS_OK, "%s", error.text);
        CHECK(locus_session_reorder(session, (const int64_t[]){0, 3, 1}, &error) ==
                  LOCUS_ERR_ARGUMENT,
              "row 3 of 3");
        locus_session_free(session);
    }
    for (int r = 0; model != NULL && r < ROWS; r++)
        CHECK(memcmp(moved[r], kept[from[r]], sizeof moved[r]) == 0, "row %d", r);
    locus_model_free(model);
}

/* ---- settings ---- */

static void test_settings(const test_model *m, const char *path)
{
    int32_t ids[TOKENS];
    answer a, b;
    locus_error error = {""};
    if (!check_begin("model/%s/settings", m->name)) return;
    set_ids(ids);
    locus_model *model = open_model(path, NULL, 1);
    if (model == NULL) return;
    locus_generation how = settings_of(model, 2);
    CHECK(generate(model, &how, ids, offsets, TEXTS, &a, &error) == LOCUS_OK, "%s", error.text);
    how.seed = 6;
    CHECK(generate(model, &how, ids, offsets, TEXTS, &b, &error) == LOCUS_OK, "%s", error.text);
    CHECK(memcmp(&a, &b, sizeof a) != 0, "another seed draws the same");
    how.top_k = 1; /* nothing is left to draw */
    CHECK(generate(model, &how, ids, offsets, TEXTS, &a, &error) == LOCUS_OK, "%s", error.text);
    how = settings_of(model, 0);
    CHECK(generate(model, &how, ids, offsets, TEXTS, &b, &error) == LOCUS_OK, "%s", error.text);
    CHECK(memcmp(a.ids, b.ids, sizeof a.ids) == 0, "the best of one is not the greedy one");
    how.min_length = how.max_length = LONGEST;
    CHECK(generate(model, &how, ids, offsets, TEXTS, &a, &error) == LOCUS_OK, "%s", error.text);
    for (int t = 0; t < TEXTS; t++) CHECK(a.count[t] == LONGEST, "ended at %d", (int)a.count[t]);
    how.max_length = 1;
    CHECK(generate(model, &how, ids, offsets, TEXTS, &a, &error) == LOCUS_ERR_RANGE, "%s",
          error.text);
    how = settings_of(model, 0);
    how.beams = 65; /* beyond MOST_BEAMS */
    CHECK(generate(model, &how, ids, offsets, TEXTS, &a, &error) == LOCUS_ERR_OPTION, "%s",
          error.text);
    how.beams = 64;
    how.max_length = 8;
    CHECK(generate(model, &how, ids, offsets, 1, &a, &error) == LOCUS_OK, "%s", error.text);
    how = settings_of(model, 2);
    how.temperature = 0.0;
    CHECK(generate(model, &how, ids, offsets, TEXTS, &a, &error) == LOCUS_ERR_OPTION, "%s",
          error.text);
    how = settings_of(model, 0);
    ids[3] = VOCABULARY;
    CHECK(generate(model, &how, ids, offsets, TEXTS, &a, &error) == LOCUS_ERR_RANGE, "%s",
          error.text);
    locus_model_free(model);
}

/* ---- memory ---- */

static void test_allocations(const test_model *m, const char *path)
{
    int32_t ids[TOKENS];
    test_allocator memory;
    set_ids(ids);
    if (!check_begin("model/%s/generate-allocations", m->name)) return;
    for (size_t k = 1;; k += check_sample() ? 31 : 3) {
        locus_model *model = NULL;
        locus_generated *generated = NULL;
        locus_error error = {""};
        test_allocator_init(&memory);
        const locus_model_config config = {.size = sizeof config,
                                           .threads = 1,
                                           .allocator = &memory.interface};
        locus_status status = locus_model_open(&model, path, &config, &error);
        if (status != LOCUS_OK) break;
        locus_generation how = settings_of(model, 1);
        how.max_length = 9;
        memory.fail_at = memory.calls + k;
        status = locus_generate(&generated, model, &how, ids, offsets, TEXTS, &error);
        CHECK(status == (memory.failures > 0 ? LOCUS_ERR_MEMORY : LOCUS_OK),
              "call %d: status %d: %s", (int)k, (int)status, error.text);
        locus_generated_free(generated);
        locus_model_free(model);
        CHECK(memory.live_blocks == 0 && memory.misuse == 0, "call %d: a leak", (int)k);
        if (memory.failures == 0) break;
    }
}

/* ---- refusals ---- */

static void expect_refusal(const char *path, const char *part)
{
    locus_model *model = NULL;
    locus_error error = {""};
    const locus_status status = locus_model_open(&model, path, NULL, &error);
    CHECK(status == LOCUS_ERR_FORMAT && model == NULL, "status %d: %s", (int)status, error.text);
    CHECK(strstr(error.text, part) != NULL, "\"%s\" does not name \"%s\"", error.text, part);
    CHECK(strchr(error.text, '\n') == NULL, "more than one line");
    locus_model_free(model);
}

/* A text without tokens begins as transformers begins one, with `start`, and is empty without it;
 * the texts beside it do not notice. */
static void test_empty(void)
{
    static const int32_t ids[] = {3, 4, 9, 5};
    static const int64_t three[] = {0, 0, 3, 3}, alone[] = {0, 3}, started[] = {0, 1};
    size_t m = 0;
    while (strcmp(test_models[m].name, "gpt2") != 0) m++;
    const char *path = test_folder("empty");
    write_model(path, &test_models[m], &(folder_change){.scale = 0.4});
    for (int beams = 1; beams <= 3; beams += 2)
        for (int32_t start = -1; start <= 5; start += 6) {
            if (!check_begin("model/gpt2/empty/%d beams/start %d", beams, (int)start)) continue;
            locus_model *model = NULL;
            locus_generated *all = NULL, *one = NULL, *first = NULL;
            locus_error error = {""};
            int64_t count, wanted;
            CHECK(locus_model_open(&model, path, NULL, &error) == LOCUS_OK, "%s", error.text);
            locus_generation how = {.size = sizeof how};
            locus_generation_init(&how, model);
            how.start = start;
            how.beams = beams;
            how.max_length = 9;
            CHECK(locus_generate(&all, model, &how, ids, three, 3, &error) == LOCUS_OK &&
                      locus_generate(&one, model, &how, ids, alone, 1, &error) == LOCUS_OK &&
                      locus_generate(&first, model, &how, ids + 3, started, 1, &error) == LOCUS_OK,
                  "%s", error.text);
            const int32_t *own = locus_generated_ids(all, 1, &count);
            const int32_t *want = locus_generated_ids(one, 0, &wanted);
            CHECK(count == wanted && memcmp(own, want, (size_t)count * sizeof *own) == 0,
                  "the text between depends on the others");
            want = locus_generated_ids(first, 0, &wanted);
            for (int64_t t = 0; t < 3; t += 2) {
                own = locus_generated_ids(all, t, &count);
                CHECK(start < 0
                          ? count == 0 && locus_generated_score(all, t) == 0.0
                          : count == wanted && memcmp(own, want, (size_t)count * sizeof *own) == 0,
                      "text %d: %d tokens", (int)t, (int)count);
            }
            locus_generated_free(all);
            locus_generated_free(one);
            locus_generated_free(first);
            locus_model_free(model);
        }
    remove_model(path);
}

/* A decoder tensor that is missing or has another shape is named. */
static void test_decoder_tensors(void)
{
    static const struct {
        const char *model, *tensor;
    } cases[] = {{"t5-decoder", "decoder.block.1.layer.1.EncDecAttention.k.weight"},
                 {"t5-decoder", "decoder.final_layer_norm.weight"},
                 {"umt5-decoder", "lm_head.weight"},
                 {"marian", "decoder.layers.0.encoder_attn.out_proj.bias"},
                 {"marian", "decoder.layers.1.fc2.weight"}};
    const char *path = test_folder("decoder-tensors");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!check_begin("model/decoder-tensors/%s", cases[i].tensor)) continue;
        size_t m = 0;
        while (strcmp(test_models[m].name, cases[i].model) != 0) m++;
        write_model(path, &test_models[m], &(folder_change){.without = cases[i].tensor});
        expect_refusal(path, cases[i].tensor);
        write_model(path, &test_models[m], &(folder_change){.wrong = cases[i].tensor});
        expect_refusal(path, "expected [");
    }
    remove_model(path);
}

static void test_refusals(void)
{
    static const struct {
        const char *name, *config, *part;
    } configs[] = {
        {"kv-heads", "{\"model_type\": \"llama\", \"num_key_value_heads\": 5}",
         "num_key_value_heads: found 5"},
        {"odd", "{\"model_type\": \"llama\", \"head_dim\": 7}", "an even number"},
        /* beyond 2 MODEL_MOST_PAIRS */
        {"wide", "{\"model_type\": \"llama\", \"head_dim\": 1026}", "head_dim: found 1026"},
        {"rope-type", "{\"model_type\": \"llama\", \"rope_scaling\": {\"rope_type\": \"mrope\"}}",
         "rope_scaling.rope_type: found mrope"},
        {"yarn-ends",
         "{\"model_type\": \"llama\", \"rope_scaling\": {\"type\": \"yarn\", \"beta_fast\": 1, "
         "\"beta_slow\": 2}}",
         "rope_scaling.beta_fast: found 1"},
        {"yarn-gain",
         "{\"model_type\": \"qwen2\", \"rope_scaling\": {\"type\": \"yarn\", \"attention_factor\": -1}}",
         "rope_scaling.attention_factor: found -1"},
        {"long-lists",
         "{\"model_type\": \"phi3\", \"rope_scaling\": {\"type\": \"longrope\", \"short_factor\": [1, 2]}}",
         "rope_scaling.short_factor: found 2 numbers, expected 48"},
        {"long-zero",
         "{\"model_type\": \"phi3\", \"hidden_size\": 4, \"num_attention_heads\": 2, \"rope_scaling\": "
         "{\"type\": \"longrope\", \"short_factor\": [0]}}",
         "rope_scaling.short_factor.0: found 0"},
        {"phi3-yarn", "{\"model_type\": \"phi3\", \"rope_scaling\": {\"type\": \"yarn\"}}",
         "rope_scaling.type: found yarn, expected longrope"},
        {"phi3-part", "{\"model_type\": \"phi3\", \"partial_rotary_factor\": 0.01}",
         "partial_rotary_factor: found 0.01"},
        {"part", "{\"model_type\": \"mistral\", \"partial_rotary_factor\": 0.5}",
         "partial_rotary_factor: found 0.5, expected 1"},
        {"window-zero", "{\"model_type\": \"mistral\", \"sliding_window\": 0}",
         "sliding_window: found 0"},
        {"layer-types", "{\"model_type\": \"qwen2\", \"layer_types\": [\"full_attention\"]}",
         "layer_types: found 1 of them, expected 32"},
        {"layer-type",
         "{\"model_type\": \"qwen3\", \"num_hidden_layers\": 1, \"layer_types\": [\"linear_attention\"]}",
         "layer_types.0: found linear_attention"},
        {"no-window",
         "{\"model_type\": \"qwen3\", \"num_hidden_layers\": 1, \"layer_types\": [\"sliding_attention\"]}",
         "where no sliding window is used"},
        {"cap", "{\"model_type\": \"gemma2\", \"final_logit_softcapping\": 0}",
         "final_logit_softcapping: found 0"},
        {"scalar", "{\"model_type\": \"gemma2\", \"query_pre_attn_scalar\": 0}",
         "query_pre_attn_scalar: found 0"},
        {"local-base", "{\"model_type\": \"gemma3_text\", \"rope_local_base_freq\": 0}",
         "rope_local_base_freq: found 0"},
        {"rope-kinds",
         "{\"model_type\": \"mistral\", \"rope_parameters\": {\"full_attention\": {\"rope_theta\": 500}}}",
         "rope_parameters: found those of kinds of layers"},
        {"gemma-kinds",
         "{\"model_type\": \"gemma3_text\", \"rope_parameters\": {\"full_attention\": {\"rope_theta\": 500}, "
         "\"sliding_attention\": {\"rope_theta\": -1}}}",
         "rope_parameters.sliding_attention.rope_theta: found -1"},
        {"neox-parameters",
         "{\"model_type\": \"gpt_neox\", \"rope_parameters\": {\"partial_rotary_factor\": 1.5}}",
         "rope_parameters.partial_rotary_factor: found 1.5"},
        {"rotary-pct", "{\"model_type\": \"gpt_neox\", \"rotary_pct\": 2}", "rotary_pct: found 2"},
        {"rotary-dim", "{\"model_type\": \"gptj\", \"rotary_dim\": null}", "rotary_dim is missing"},
        {"falcon-alibi", "{\"model_type\": \"falcon\", \"alibi\": true}", "alibi: found true"},
        {"falcon-norms", "{\"model_type\": \"falcon\", \"num_ln_in_parallel_attn\": 2}",
         "num_ln_in_parallel_attn: found 2"},
        {"falcon-groups",
         "{\"model_type\": \"falcon\", \"new_decoder_architecture\": true, \"num_kv_heads\": 3}",
         "num_kv_heads: found 3"},
        {"factor",
         "{\"model_type\": \"llama\", \"rope_scaling\": {\"type\": \"linear\", \"factor\": 0}}",
         "rope_scaling.factor: found 0"},
        {"theta", "{\"model_type\": \"llama\", \"rope_theta\": -1}", "rope_theta: found -1"},
        {"inner", "{\"model_type\": \"gpt2\", \"n_inner\": 0}", "n_inner: found 0"},
        {"by-layer", "{\"model_type\": \"gpt2\", \"scale_attn_by_inverse_layer_idx\": true}",
         "scale_attn_by_inverse_layer_idx: found true"},
        {"gpt2-heads", "{\"model_type\": \"gpt2\", \"n_head\": 7}", "n_head: found 7"},
        {"opt-norms", "{\"model_type\": \"opt\", \"layer_norm_elementwise_affine\": false}",
         "layer_norm_elementwise_affine: found false"},
        {"opt-act", "{\"model_type\": \"opt\", \"activation_function\": \"mish\"}",
         "activation_function: found mish"},
        {"bloom-residual",
         "{\"model_type\": \"bloom\", \"apply_residual_connection_post_layernorm\": true}",
         "apply_residual_connection_post_layernorm: found true"},
        {"mpt-clip", "{\"model_type\": \"mpt\", \"attn_config\": {\"clip_qkv\": 6}}",
         "attn_config.clip_qkv: found 6"},
        {"mpt-plain", "{\"model_type\": \"mpt\", \"attn_config\": {\"alibi\": false}}",
         "attn_config.alibi: found false"},
        {"mpt-slopes", "{\"model_type\": \"mpt\", \"attn_config\": {\"alibi_bias_max\": 16}}",
         "attn_config.alibi_bias_max: found 16"},
        {"marian-norm", "{\"model_type\": \"marian\", \"normalize_embedding\": true}",
         "normalize_embedding: found true"},
        {"marian-heads", "{\"model_type\": \"marian\", \"decoder_attention_heads\": 5}",
         "decoder_attention_heads: found 5"},
        {"t5-layers", "{\"model_type\": \"t5\", \"num_decoder_layers\": -1}",
         "num_decoder_layers: found -1"},
        {"ramp",
         "{\"model_type\": \"llama\", \"rope_scaling\": {\"rope_type\": \"llama3\", "
         "\"low_freq_factor\": 4.0}}",
         "more than low_freq_factor"},
    };
    static const struct {
        const char *name, *config, *part;
    } generations[] = {
        {"beams", "{\"num_beams\": 65}", "num_beams: found 65"},
        /* beyond MODEL_MOST_TOKENS */
        {"length", "{\"max_length\": 1048577}", "max_length: found 1048577"},
        {"groups", "{\"num_beam_groups\": 2}", "num_beam_groups: found 2"},
        {"stopping", "{\"early_stopping\": \"soon\"}", "early_stopping: found soon"},
        {"end", "{\"eos_token_id\": -1}", "eos_token_id: found -1"},
        {"ends", "{\"eos_token_id\": [1, \"two\"]}", "eos_token_id.1: found two"},
        {"bad", "{\"bad_words_ids\": [[1, 2.5]]}", "bad_words_ids.0.1: found 2.5"},
        {"penalty", "{\"repetition_penalty\": 0}", "repetition_penalty: found 0"},
        {"broken", "{\"num_beams\": ", "generation_config.json: byte"},
    };
    const test_model *llama = NULL;
    for (size_t i = 0; i < test_model_count; i++)
        if (strcmp(test_models[i].name, "llama") == 0) llama = &test_models[i];
    const char *path = test_folder("refusals");
    write_model(path, llama, NULL);
    for (size_t i = 0; i < sizeof generations / sizeof *generations; i++) {
        if (!check_begin("model/generation_config/%s", generations[i].name)) continue;
        write_text(path, "generation_config.json", generations[i].config);
        expect_refusal(path, generations[i].part);
    }
    write_text(path, "generation_config.json", "{}");
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        if (!check_begin("model/decoder-config/%s", configs[i].name)) continue;
        write_text(path, "config.json", configs[i].config);
        expect_refusal(path, configs[i].part);
    }
    remove_model(path);
}

/* As many values as a configuration may have, in lists that are asked for one by one: minutes where
 * each question walks them all. The last of two values of one key counts. */
static void test_long_lists(void)
{
    enum { WORDS = 150000, ROOM = WORDS * 8 + 100 };
    locus_model *model = NULL;
    locus_error error = {""};
    locus_generation how = {.size = sizeof how};
    if (!check_begin("model/generation_config/long")) return;
    const char *path = test_folder("long");
    char *text = malloc(ROOM);
    if (text == NULL) exit(2);
    int used = snprintf(text, ROOM, "{\"bad_words_ids\": [");
    for (int i = 0; i < WORDS; i++)
        used += snprintf(text + used, (size_t)(ROOM - used), "%s[%d]", i > 0 ? "," : "", i % 50);
    snprintf(text + used, (size_t)(ROOM - used), "], \"num_beams\": 5}");
    for (size_t i = 0; i < test_model_count; i++)
        if (strcmp(test_models[i].name, "llama") == 0) write_model(path, &test_models[i], NULL);
    write_text(path, "generation_config.json", text);
    CHECK(locus_model_open(&model, path, NULL, &error) == LOCUS_OK, "%s", error.text);
    if (model != NULL) locus_generation_init(&how, model);
    CHECK(how.bad_word_count > WORDS - WORDS / 10 && how.bad_word_count <= WORDS &&
              how.bad_words[how.bad_word_offsets[how.bad_word_count] - 1] == (WORDS - 1) % 50,
          "%d words", (int)how.bad_word_count);
    CHECK(how.beams == 5, "beams %d", (int)how.beams);
    locus_model_free(model);
    free(text);
    remove_model(path);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    const char *path = test_folder("generate");
    for (size_t i = 0; i < test_model_count; i++) {
        write_model(path, &test_models[i], &(folder_change){.scale = 0.4});
        if (!generates(path)) continue;
        test_bits(&test_models[i], path);
        test_caches(&test_models[i], path);
        test_reorder(&test_models[i], path);
        test_settings(&test_models[i], path);
        test_allocations(&test_models[i], path);
    }
    remove_model(path);
    test_empty();
    test_decoder_tensors();
    test_refusals();
    test_long_lists();
    return check_finish("model/generate");
}

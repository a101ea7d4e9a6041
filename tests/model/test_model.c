/* SPDX-License-Identifier: Apache-2.0 */

/* Small models of every family: bits, special values, refusals, memory. That they compute what
 * transformers does is what run.sh looks at. */

#define _POSIX_C_SOURCE 200809L
#include <locus/model.h>
#include <locus/runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/checkpoint.h"
#include "model/folder.h"
#include "support/allocator.h"
#include "support/check.h"
#include "support/problem.h"

enum { WIDTH = 24, LAYERS = 2, VOCABULARY = 50, FEATURES = 10, TOKENS = 60, SEQUENCES = 6 };
static const int64_t mixed[SEQUENCES + 1] = {0, 1, 1, 18, 30, 35, 60};

/* ---- one run ---- */

typedef struct answer {
    float hidden[LAYERS + 1][TOKENS * WIDTH];
    float embedding[SEQUENCES * WIDTH];
    float logits[TOKENS * VOCABULARY]; /* of a head, at most so many */
} answer;

static void set_ids(int32_t ids[TOKENS])
{
    for (int i = 0; i < TOKENS; i++) ids[i] = (int32_t)(test_uniform(77, (uint64_t)i) * 50.0);
}

/* Numbers in place of ids, for models that take them. */
static void set_features(float *features, const int32_t *ids, int64_t tokens)
{
    for (int64_t i = 0; i < tokens * FEATURES && i < TOKENS * FEATURES; i++)
        features[i] =
            (float)test_uniform(78 + (uint64_t)ids[i / FEATURES], (uint64_t)(i % FEATURES));
}

static int has_head(const locus_model *model)
{
    return described(model)->head != LOCUS_MODEL_NO_HEAD;
}

/* Logits of a row, and whether every token has one. */
static int64_t logit_width(const locus_model *model, int *each)
{
    const model_description *d = described(model);
    *each = d->head != LOCUS_MODEL_CLASSIFY;
    return !has_head(model) ? 0 : d->head == LOCUS_MODEL_FILL ? d->vocabulary : d->labels;
}

static locus_status compute(const locus_model *model, const int64_t *offsets, int64_t sequences,
                            const int32_t *ids, answer *a, locus_error *error)
{
    locus_model_pass *pass = NULL;
    locus_status status = locus_model_pass_new(&pass, model, offsets, sequences, error);
    if (status != LOCUS_OK) return status;
    const size_t bytes = locus_model_workspace(pass);
    unsigned char *workspace = malloc(bytes + 72);
    if (workspace == NULL) exit(2);
    memset(workspace, 0x7F, bytes + 72);
    float *hidden[LAYERS + 1];
    for (int l = 0; l <= LAYERS; l++) hidden[l] = a->hidden[l];
    memset(a, 0xFF, sizeof *a); /* NaN */
    static float features[TOKENS * FEATURES];
    set_features(features, ids, offsets[sequences]);
    const locus_model_batch batch = {.size = sizeof batch, .ids = ids, .features = features};
    const locus_model_results results = {.size = sizeof results,
                                         .hidden = hidden,
                                         .logits = has_head(model) ? a->logits : NULL,
                                         .embedding = a->embedding};
    status = locus_model_forward(pass, &batch, &results, workspace + 8, bytes, error);
    int intact = 1;
    for (int i = 0; i < 64; i++) intact &= workspace[8 + bytes + (size_t)i] == 0x7F;
    CHECK(intact, "written beyond the workspace");
    free(workspace);
    locus_model_pass_free(pass);
    return status;
}

static locus_model *open_model(const char *path, const char *isa, uint32_t threads)
{
    locus_model *model = NULL;
    locus_error error = {""};
    const locus_model_config config = {.size = sizeof config, .threads = threads, .isa = isa};
    CHECK(locus_model_open(&model, path, &config, &error) == LOCUS_OK, "%s", error.text);
    CHECK(model == NULL || error.text[0] == '\0', "a message of success: %s", error.text);
    return model;
}

static int all_finite(const float *x, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(x[i])) return 0;
    return 1;
}

/* ---- bits ---- */

/* Floats of a token's state behind `layer` layers. */
static int64_t state_width(const locus_model *model, int layer)
{
    locus_model_info info = {.size = sizeof info};
    locus_model_describe(model, &info);
    return layer < LAYERS ? info.width : info.last_width;
}

static int complete(const locus_model *model, const answer *a)
{
    int found = all_finite(a->embedding, (size_t)(SEQUENCES * state_width(model, LAYERS)));
    for (int l = 0; l <= LAYERS; l++)
        found &= all_finite(a->hidden[l], (size_t)(TOKENS * state_width(model, l)));
    return found;
}

/* A sequence alone gives what it gives in the batch. */
static void check_alone(const locus_model *model, const int32_t *ids, const answer *batch)
{
    static answer alone;
    locus_error error = {""};
    for (int s = 0; s < SEQUENCES; s++) {
        const int64_t first = mixed[s], count = mixed[s + 1] - first;
        const int64_t offsets[2] = {0, count};
        CHECK(compute(model, offsets, 1, ids + first, &alone, &error) == LOCUS_OK, "%s",
              error.text);
        const int64_t last = state_width(model, LAYERS);
        int same =
            memcmp(alone.embedding, batch->embedding + s * last, (size_t)last * sizeof(float)) == 0;
        for (int l = 0; l <= LAYERS; l++)
            same &= memcmp(alone.hidden[l], batch->hidden[l] + first * state_width(model, l),
                           (size_t)(count * state_width(model, l)) * sizeof(float)) == 0;
        int each;
        const int64_t width = logit_width(model, &each);
        same &= memcmp(alone.logits, batch->logits + (each ? first : s) * width,
                       (size_t)(each ? count * width : width) * sizeof(float)) == 0;
        CHECK(same, "sequence %d depends on the batch", s);
    }
}

static void test_bits(const test_model *m)
{
    static const uint32_t threads[] = {1, 2, 3, 7};
    static answer one, other, fused;
    const char *first = NULL; /* instruction set with fused multiply-add, which gave `fused` */
    int32_t ids[TOKENS];
    locus_error error = {""};
    set_ids(ids);
    const char *path = test_folder("bits");
    write_model(path, m, NULL);
    for (size_t k = 0; locus_isa_name(k) != NULL; k++) {
        const char *isa = locus_isa_name(k);
        if (!check_begin("model/%s/%s/bits", m->name, isa)) continue;
        if (!locus_isa_available(isa)) {
            check_skip("%s is not on this CPU", isa);
            continue;
        }
        for (int t = 0; t < 4; t++) {
            locus_model *model = open_model(path, isa, threads[t]);
            if (model == NULL) break;
            answer *a = t == 0 ? &one : &other;
            CHECK(compute(model, mixed, SEQUENCES, ids, a, &error) == LOCUS_OK, "%s", error.text);
            CHECK(complete(model, a), "a number is missing or not finite");
            CHECK(t == 0 || memcmp(&one, &other, sizeof one) == 0, "%u threads give other bits",
                  (unsigned)threads[t]);
            if (t == 0) check_alone(model, ids, &one);
            locus_model_free(model);
        }
        if (strcmp(isa, "generic") == 0) continue;
        CHECK(first == NULL || memcmp(&fused, &one, sizeof one) == 0, "%s gives other bits", first);
        fused = one;
        first = isa;
    }
    remove_model(path);
}

/* Rotary frequencies that depend on the length: of the sequences in `mixed` two are beyond 16. */
static const test_model stretched = {
    "llama-dynamic", "llama",
    "{\"model_type\": \"llama\", \"hidden_size\": 24, \"num_hidden_layers\": 2, "
    "\"num_attention_heads\": 3, \"intermediate_size\": 40, \"vocab_size\": 50, "
    "\"max_position_embeddings\": 16, "
    "\"rope_scaling\": {\"rope_type\": \"dynamic\", \"factor\": 2.0}}"};

/* One ragged call attends in all sequences, except where something of each of its own is in it. */
static void test_together(const test_model *m, const int64_t *offsets, int64_t sequences, int want)
{
    locus_model_pass *pass = NULL;
    locus_error error = {""};
    const char *path = test_folder("together");
    write_model(path, m, NULL);
    locus_model *model = open_model(path, NULL, 1);
    remove_model(path);
    if (model == NULL) return;
    const model_description *d = described(model);
    const int own = d->memory > 0 || d->segments || d->rope.kind == MODEL_ROPE_LONG;
    CHECK(locus_model_pass_new(&pass, model, offsets, sequences, &error) == LOCUS_OK, "%s",
          error.text);
    int plans = -1;
    const int together = pass != NULL && attends_together(pass, &plans);
    CHECK(pass != NULL && together == (want && !own) && (!together || plans == 1), "%d plans, %d",
          plans, want);
    locus_model_pass_free(pass);
    locus_model_free(model);
}

static void test_calls_of_a_layer(const test_model *m)
{
    static const int64_t one[] = {0, 17}, and_nothing[] = {0, 0, 17, 17}, two[] = {0, 16, 19};
    if (!check_begin("model/%s/together", m->name)) return;
    test_together(m, mixed, SEQUENCES, m != &stretched);
    test_together(m, two, 2, 1);
    test_together(m, one, 1, 0);
    test_together(m, and_nothing, 3, 0);
}

/* ---- files ---- */

static double distance(const answer *a, const answer *b)
{
    double worst = 0.0;
    const float *x = a->hidden[0], *y = b->hidden[0];
    for (size_t i = 0; i < (LAYERS + 1) * TOKENS * WIDTH; i++)
        worst = fmax(worst, fabs((double)x[i] - (double)y[i]));
    return worst;
}

/* Other types of numbers, shards. */
static void test_files(const test_model *m)
{
    static const struct {
        const char *dtype;
        int shards;
        double least, most;
    } kinds[] = {{"F32", 1, 0.0, 0.0},
                 {"F64", 0, 0.0, 0.0},
                 {"F16", 0, 1e-5, 2e-2},
                 {"BF16", 1, 1e-4, 2e-1}};
    static answer want, got;
    int32_t ids[TOKENS];
    locus_error error = {""};
    if (!check_begin("model/%s/files", m->name)) return;
    set_ids(ids);
    const char *path = test_folder("files");
    write_model(path, m, NULL);
    locus_model *model = open_model(path, NULL, 2);
    if (model != NULL && compute(model, mixed, SEQUENCES, ids, &want, &error) != LOCUS_OK)
        CHECK(0, "%s", error.text);
    locus_model_free(model);
    remove_model(path);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        write_model(path, m, &(folder_change){.dtype = kinds[k].dtype, .shards = kinds[k].shards});
        model = open_model(path, NULL, 2);
        if (model != NULL) {
            CHECK(compute(model, mixed, SEQUENCES, ids, &got, &error) == LOCUS_OK, "%s",
                  error.text);
            const double d = distance(&want, &got);
            CHECK(d >= kinds[k].least && d <= kinds[k].most, "%s: %g away, expected %g to %g",
                  kinds[k].dtype, d, kinds[k].least, kinds[k].most);
        }
        locus_model_free(model);
        remove_model(path);
    }
}

/* ---- refusals ---- */

static void expect_refusal(const char *path, locus_status wanted, const char *part)
{
    locus_model *model = NULL;
    locus_error error = {""};
    const locus_status status = locus_model_open(&model, path, NULL, &error);
    CHECK(status == wanted && model == NULL, "status %d: %s", (int)status, error.text);
    CHECK(strstr(error.text, part) != NULL, "\"%s\" does not name \"%s\"", error.text, part);
    CHECK(strchr(error.text, '\n') == NULL, "more than one line");
    locus_model_free(model);
}

/* A tensor whose name contains `part` is not there, or has another shape. */
static void refuse_tensor(const char *path, const test_model *m, const char *part)
{
    write_model(path, m, &(folder_change){.without = part});
    expect_refusal(path, LOCUS_ERR_FORMAT, "is missing");
    write_model(path, m, &(folder_change){.wrong = part});
    expect_refusal(path, LOCUS_ERR_FORMAT, "expected [");
}

/* Every tensor of a family that names them where they are used; of the layers, the first. */
static void refuse_written(const char *path, const test_model *m)
{
    char file[1024], name[96];
    locus_file *tensors = NULL;
    locus_error error = {""};
    write_model(path, m, NULL);
    snprintf(file, sizeof file, "%s/model.safetensors", path);
    CHECK(locus_file_open(&tensors, file, NULL, &error) == LOCUS_OK, "%s", error.text);
    for (size_t i = 0; i < locus_file_count(tensors); i++) {
        snprintf(name, sizeof name, "%s", locus_file_tensor_at(tensors, i)->name);
        if (strstr(name, ".1.") == NULL) refuse_tensor(path, m, name);
    }
    locus_file_close(tensors);
}

/* Every slot of a family that fills them. */
static void refuse_slots(const char *path, const test_model *m, const model_family *family)
{
    model_settings s;
    model_description d = {.width = 0};
    const char *unread;
    locus_error error = {""};
    write_model(path, m, NULL);
    if (model_settings_read(&s, path, "config.json", NULL, &error) != LOCUS_OK ||
        family->describe(&s, &d, &error) != LOCUS_OK ||
        model_read_head(&s, family, &d, &unread, &error) != LOCUS_OK)
        exit(2);
    model_settings_free(&s);
    for (const model_name *n = family->names; n->name != NULL; n++) {
        const model_name *before = family->names;
        while (before->slot != n->slot) before++; /* another name of the same */
        if (before != n || !model_slot_wanted(&d, n->slot)) continue;
        const char *mark = strrchr(n->name, '#');
        refuse_tensor(path, m, mark != NULL ? mark + 1 : n->name);
    }
}

static void test_tensors(const test_model *m)
{
    if (!check_begin("model/%s/tensors", m->name)) return;
    const char *path = test_folder("tensors");
    const model_family *family = model_family_find(m->type);
    if (names_its_own(family))
        refuse_written(path, m);
    else
        refuse_slots(path, m, family);
    remove_model(path);
}
static void test_configs(void)
{
    static const struct {
        const char *name, *config, *part;
    } cases[] = {
        {"empty", "", "config.json"},
        {"list", "[1, 2]", "model_type is missing"},
        {"broken", "{\"model_type\": \"bert\"", "config.json: byte"},
        {"no-type", "{}", "model_type is missing"},
        {"scalar", "3", "expected an object or a list"},
        {"nul", "{\"model_type\": \"be\\u0000rt\"}", "model_type: found a string with a NUL"},
        {"key-nul", "{\"model\\u0000\": 1}", "found a key with a NUL"},
        {"other-type", "{\"model_type\": \"mamba\"}", "found mamba"},
        {"type-number", "{\"model_type\": 3}", "expected a string"},
        {"width-zero", "{\"model_type\": \"bert\", \"hidden_size\": 0}", "hidden_size: found 0"},
        {"width-huge", "{\"model_type\": \"bert\", \"hidden_size\": 1000000000000}", "hidden_size"},
        {"width-real", "{\"model_type\": \"bert\", \"hidden_size\": 1.5}",
         "hidden_size: found 1.5"},
        {"width-text", "{\"model_type\": \"bert\", \"hidden_size\": \"768\"}", "hidden_size"},
        {"heads", "{\"model_type\": \"bert\", \"hidden_size\": 24, \"num_attention_heads\": 5}",
         "a divisor of hidden_size"},
        {"act", "{\"model_type\": \"bert\", \"hidden_act\": \"mish\"}", "hidden_act: found mish"},
        {"positions", "{\"model_type\": \"bert\", \"position_embedding_type\": \"rotary\"}",
         "position_embedding_type: found rotary"},
        {"cross", "{\"model_type\": \"bert\", \"add_cross_attention\": true}",
         "add_cross_attention: found true"},
        {"groups", "{\"model_type\": \"albert\", \"num_hidden_groups\": 2}", "num_hidden_groups"},
        {"absolute", "{\"model_type\": \"deberta-v2\"}", "relative_attention is missing"},
        {"terms", "{\"model_type\": \"deberta-v2\", \"relative_attention\": true}", "pos_att_type"},
        {"positions-only",
         "{\"model_type\": \"deberta-v2\", \"relative_attention\": true, "
         "\"pos_att_type\": [\"c2p\", \"p2p\"]}",
         "pos_att_type.1: found p2p"},
        {"summary", "{\"model_type\": \"xlnet\", \"summary_type\": \"mean\"}",
         "summary_type: found mean"},
        {"rope-both",
         "{\"model_type\": \"llama\", \"rope_scaling\": {\"type\": \"linear\"}, "
         "\"rope_parameters\": {\"rope_theta\": 1.0}}",
         "found rope_scaling and rope_parameters"},
        {"rope-part",
         "{\"model_type\": \"llama\", \"rope_parameters\": {\"partial_rotary_factor\": 0.5}}",
         "rope_parameters.partial_rotary_factor: found 0.5"},
        {"twice", "{\"model_type\": \"mamba\", \"model_type\": \"rwkv\"}", "twice in an object"},
    };
    const char *path = test_folder("configs");
    write_model(path, &test_models[0], NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!check_begin("model/config/%s", cases[i].name)) continue;
        write_text(path, "config.json", cases[i].config);
        expect_refusal(path, LOCUS_ERR_FORMAT, cases[i].part);
    }
    if (check_begin("model/config/missing")) {
        remove_model(path);
        expect_refusal(path, LOCUS_ERR_IO, "config.json");
    }
    remove_model(path);
}

static void test_indexes(void)
{
    static const struct {
        const char *name, *index, *part;
        locus_status status;
    } cases[] = {
        {"outside", "{\"weight_map\": {\"a\": \"../model.safetensors\"}}", "weight_map.a",
         LOCUS_ERR_FORMAT},
        {"absolute", "{\"weight_map\": {\"a\": \"/etc/passwd\"}}", "weight_map.a",
         LOCUS_ERR_FORMAT},
        {"number", "{\"weight_map\": {\"a\": 3}}", "weight_map.a", LOCUS_ERR_FORMAT},
        {"nothing", "{\"weight_map\": {}}", "names no file", LOCUS_ERR_FORMAT},
        {"absent", "{\"weight_map\": {\"a\": \"three.safetensors\"}}", "three.safetensors",
         LOCUS_ERR_IO},
    };
    const char *path = test_folder("indexes");
    write_model(path, &test_models[0], NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!check_begin("model/index/%s", cases[i].name)) continue;
        write_text(path, "model.safetensors.index.json", cases[i].index);
        expect_refusal(path, cases[i].status, cases[i].part);
    }
    remove_model(path);
}

/* Rows alone give the bits that they have among all. */
static void test_rows(void)
{
    static answer all;
    static float some[3 * VOCABULARY];
    static const int32_t rows[3] = {59, 0, 17};
    int32_t ids[TOKENS], bad = TOKENS;
    locus_error error = {""};
    if (!check_begin("model/rows")) return;
    const char *path = test_folder("rows");
    size_t which = 0;
    while (strcmp(test_models[which].name, "bert-fill") != 0) which++;
    write_model(path, &test_models[which], NULL);
    locus_model *model = open_model(path, NULL, 2);
    remove_model(path);
    if (model == NULL) return;
    set_ids(ids);
    CHECK(compute(model, mixed, SEQUENCES, ids, &all, &error) == LOCUS_OK, "%s", error.text);
    locus_model_pass *pass = NULL;
    CHECK(locus_model_pass_new(&pass, model, mixed, SEQUENCES, &error) == LOCUS_OK, "%s",
          error.text);
    const size_t bytes = locus_model_workspace(pass);
    void *workspace = malloc(bytes);
    if (workspace == NULL) exit(2);
    locus_model_batch batch = {.size = sizeof batch, .ids = ids, .rows = rows, .row_count = 3};
    const locus_model_results results = {.size = sizeof results, .logits = some};
    CHECK(locus_model_forward(pass, &batch, &results, workspace, bytes, &error) == LOCUS_OK, "%s",
          error.text);
    for (int i = 0; i < 3; i++)
        CHECK(memcmp(some + i * VOCABULARY, all.logits + rows[i] * VOCABULARY,
                     VOCABULARY * sizeof(float)) == 0,
              "row %d depends on the others", rows[i]);
    batch.rows = &bad, batch.row_count = 1;
    CHECK(locus_model_forward(pass, &batch, &results, workspace, bytes, &error) ==
                  LOCUS_ERR_RANGE &&
              strstr(error.text, "rows[0]: found 60") != NULL,
          "%s", error.text);
    batch.rows = rows, batch.row_count = TOKENS + 1;
    CHECK(locus_model_forward(pass, &batch, &results, workspace, bytes, &error) ==
              LOCUS_ERR_ARGUMENT,
          "%s", error.text);
    int64_t best[3];
    double share[3];
    const float logits[4] = {1.0f, 3.0f, 2.0f, 3.0f};
    CHECK(locus_model_top(logits, 4, 3, best, share) == 3 && best[0] == 1 && best[1] == 3 &&
              best[2] == 2 && fabs(share[0] - 0.39948630465) < 1e-9,
          "%d %.11f", (int)best[0], share[0]);
    CHECK(locus_model_top(logits, 2, 3, best, share) == 2 &&
              locus_model_top(NULL, 2, 3, best, share) == 0,
          "counts");
    free(workspace);
    locus_model_pass_free(pass);
    locus_model_free(model);
}

/* A shard that ends before its numbers do, and one that ends in its header. */
static void test_truncated(void)
{
    static const long lengths[] = {0, 7, 200, 5000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        if (!check_begin("model/truncated/%ld", lengths[i])) continue;
        const char *path = test_folder("truncated");
        char file[1024];
        write_model(path, &test_models[0], &(folder_change){.shards = 1});
        snprintf(file, sizeof file, "%s/two.safetensors", path);
        FILE *shard = fopen(file, "r+b");
        if (shard == NULL || ftruncate(fileno(shard), lengths[i]) != 0) exit(2);
        fclose(shard);
        expect_refusal(path, LOCUS_ERR_FORMAT, "two.safetensors");
        remove_model(path);
    }
}

static void test_calls(void)
{
    static answer a;
    int32_t ids[TOKENS];
    locus_error error = {""};
    if (!check_begin("model/calls")) return;
    const char *path = test_folder("calls");
    write_model(path, &test_models[0], NULL);
    locus_model *model = open_model(path, NULL, 1);
    remove_model(path);
    if (model == NULL) return;
    set_ids(ids);
    ids[7] = 50;
    CHECK(compute(model, mixed, SEQUENCES, ids, &a, &error) == LOCUS_ERR_RANGE &&
              strstr(error.text, "token 7: found id 50") != NULL,
          "%s", error.text);
    ids[7] = -1;
    CHECK(compute(model, mixed, SEQUENCES, ids, &a, &error) == LOCUS_ERR_RANGE, "id -1");
    const int64_t longer[2] = {0, 41}, backwards[3] = {0, 5, 3}, late[2] = {1, 3}, none[1] = {0};
    CHECK(compute(model, longer, 1, ids, &a, &error) == LOCUS_ERR_RANGE &&
              strstr(error.text, "at most 40") != NULL,
          "%s", error.text);
    CHECK(compute(model, backwards, 2, ids, &a, &error) == LOCUS_ERR_ARGUMENT, "offsets descend");
    CHECK(compute(model, late, 1, ids, &a, &error) == LOCUS_ERR_ARGUMENT, "offsets begin at 1");
    CHECK(compute(model, none, 0, ids, &a, &error) == LOCUS_OK, "no sequences: %s", error.text);
    locus_model_info info = {.size = sizeof info};
    locus_model_describe(model, &info);
    CHECK(info.width == WIDTH && info.layers == LAYERS && strcmp(info.family, "bert") == 0 &&
              info.most_tokens == 40 && info.pooling == LOCUS_MODEL_POOL_MEAN,
          "wrong description");
    CHECK(info.head == LOCUS_MODEL_NO_HEAD && locus_model_label(model, 0) == NULL, "a head");
    locus_model_free(model);
    locus_model_free(NULL);
    locus_model_pass_free(NULL);
    CHECK(locus_model_open(NULL, "x", NULL, &error) == LOCUS_ERR_ARGUMENT, "NULL");
    const locus_model_config strange = {.size = 3};
    CHECK(locus_model_open(&model, "x", &strange, &error) == LOCUS_ERR_ARGUMENT, "%s", error.text);
}

/* ---- memory ---- */

static void test_allocations(const test_model *m)
{
    if (!check_begin("model/%s/allocations", m->name)) return;
    const char *path = test_folder("allocations");
    write_model(path, m, NULL);
    test_allocator memory;
    for (size_t k = 1;; k += check_sample() ? 7 : 1) {
        locus_model *model = NULL;
        locus_model_pass *pass = NULL;
        locus_error error = {""};
        test_allocator_init(&memory);
        memory.fail_at = k;
        const locus_model_config config = {.size = sizeof config,
                                           .threads = 1,
                                           .allocator = &memory.interface};
        locus_status status = locus_model_open(&model, path, &config, &error);
        if (status == LOCUS_OK)
            status = locus_model_pass_new(&pass, model, mixed, SEQUENCES, &error);
        CHECK(status == (memory.failures > 0 ? LOCUS_ERR_MEMORY : LOCUS_OK),
              "call %d: status %d: %s", (int)k, (int)status, error.text);
        locus_model_pass_free(pass);
        locus_model_free(model);
        CHECK(memory.live_blocks == 0 && memory.misuse == 0, "call %d: a leak", (int)k);
        if (memory.failures == 0) break;
    }
    remove_model(path);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for (size_t i = 0; i < test_model_count; i++) {
        test_bits(&test_models[i]);
        test_calls_of_a_layer(&test_models[i]);
        test_files(&test_models[i]);
        test_tensors(&test_models[i]);
        test_allocations(&test_models[i]);
    }
    test_bits(&stretched);
    test_calls_of_a_layer(&stretched);
    test_configs();
    test_indexes();
    test_truncated();
    test_rows();
    test_calls();
    return check_finish("model/model");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Small models of every family in integers: a text alone and in a batch, threads, tables of integers,
 * how far they are from float32, what stays in float, what is refused. */

#include <locus/model.h>
#include <locus/runtime.h>
#include <locus/tensorfile.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cpu.h"
#include "kernels/quant.h"
#include "model/folder.h"
#include "support/check.h"
#include "support/problem.h"

enum { WIDTH = 24, TOKENS = 40, FEATURES = 10, SEQUENCES = 4 };
static const int64_t mixed[SEQUENCES + 1] = {0, 1, 1, 18, TOKENS};

typedef struct answer {
    float states[TOKENS * WIDTH], embedding[SEQUENCES * WIDTH];
} answer;

static locus_model *open_model(const char *path, uint32_t precision, const char *isa,
                               uint32_t threads)
{
    locus_model *model = NULL;
    locus_error error = {""};
    const locus_model_config config = {
        .size = sizeof config, .threads = threads, .isa = isa, .precision = precision};
    CHECK(locus_model_open(&model, path, &config, &error) == LOCUS_OK, "%s", error.text);
    if (model == NULL) exit(2);
    return model;
}

static locus_model_info info_of(const locus_model *model)
{
    locus_model_info info = {.size = sizeof info};
    locus_model_describe(model, &info);
    return info;
}

/* The last states and the embedding of texts first .. first + sequences - 1 of `mixed`. */
static void compute(const locus_model *model, int first, int sequences, answer *a)
{
    int64_t offsets[SEQUENCES + 1];
    int32_t ids[TOKENS];
    float features[TOKENS * FEATURES];
    float *hidden[8] = {NULL};
    locus_error error = {""};
    locus_model_pass *pass = NULL;
    const int64_t start = mixed[first];
    for (int s = 0; s <= sequences; s++) offsets[s] = mixed[first + s] - start;
    for (int i = 0; i < TOKENS; i++)
        ids[i] = (int32_t)(test_uniform(5, (uint64_t)(i + start)) * 50.0);
    for (int i = 0; i < TOKENS * FEATURES; i++)
        features[i] = (float)test_uniform(6, (uint64_t)(i + start * FEATURES));
    memset(a, 0xFF, sizeof *a); /* NaN */
    hidden[info_of(model).layers] = a->states;
    CHECK(locus_model_pass_new(&pass, model, offsets, sequences, &error) == LOCUS_OK, "%s",
          error.text);
    const size_t bytes = locus_model_workspace(pass);
    void *workspace = malloc(bytes + 8);
    if (workspace == NULL) exit(2);
    const locus_model_batch batch = {.size = sizeof batch, .ids = ids, .features = features};
    const locus_model_results results = {.size = sizeof results,
                                         .hidden = hidden,
                                         .embedding = a->embedding};
    CHECK(locus_model_forward(pass, &batch, &results, workspace, bytes, &error) == LOCUS_OK, "%s",
          error.text);
    free(workspace);
    locus_model_pass_free(pass);
}

/* Root mean square of the difference of states over that of the states. */
static double error_of(const answer *a, const answer *b, int64_t width)
{
    double error = 0.0, size = 0.0;
    for (int64_t i = 0; i < TOKENS * width; i++) {
        const double off = (double)a->states[i] - (double)b->states[i];
        error += off * off, size += (double)b->states[i] * (double)b->states[i];
    }
    return sqrt(error / size);
}

static void check_alone(const locus_model *model, const answer *together, int64_t width)
{
    for (int s = 0; s < SEQUENCES; s++) {
        answer alone;
        const size_t count = (size_t)((mixed[s + 1] - mixed[s]) * width);
        compute(model, s, 1, &alone);
        CHECK(!memcmp(alone.states, together->states + mixed[s] * width, count * sizeof(float)) &&
                  !memcmp(alone.embedding, together->embedding + s * width,
                          (size_t)width * sizeof(float)),
              "text %d has other bits alone", s);
    }
}

static void test_family(const test_model *m, uint32_t precision)
{
    static const double most[] = {0.0, 3e-3, 8e-2};
    if (!check_begin("model/precision/%s/%s", m->name, locus_precision_name(precision))) return;
    const char *path = test_folder("precision");
    answer exact, rounded, other;
    write_model(path, m, NULL);
    locus_model *model = open_model(path, LOCUS_EXACT, NULL, 1);
    compute(model, 0, SEQUENCES, &exact);
    const uint64_t bytes = info_of(model).bytes;
    locus_model_free(model);
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        model = open_model(path, precision, NULL, threads);
        const int64_t width = info_of(model).last_width;
        compute(model, 0, SEQUENCES, threads == 1 ? &rounded : &other);
        if (threads == 1) check_alone(model, &rounded, width);
        const double error = error_of(&rounded, &exact, width);
        CHECK(error > 1e-6 && error < most[precision], "an error of %g, at most %g expected", error,
              most[precision]);
        CHECK(info_of(model).precision == precision && info_of(model).bytes != bytes,
              "not described as it is");
        locus_model_free(model);
    }
    CHECK(!memcmp(&rounded, &other, sizeof other), "3 threads give other bits");
    remove_model(path);
}

/* A folder of integers: the bits of the folder in float that is opened in them. */
static void test_converted(const test_model *m, uint32_t precision)
{
    if (!check_begin("model/precision/converted/%s/%s", m->name, locus_precision_name(precision)))
        return;
    const char *path = test_folder("precision-converted");
    char file[1024];
    answer a[2];
    uint64_t bytes[2];
    locus_error error = {""};
    write_model(path, m, NULL);
    snprintf(file, sizeof file, "%s/model.safetensors", path);
    for (int k = 0; k < 2; k++) {
        locus_model *model = open_model(path, k == 0 ? precision : LOCUS_EXACT, NULL, 1);
        compute(model, 0, SEQUENCES, &a[k]);
        bytes[k] = info_of(model).bytes;
        CHECK(info_of(model).precision == precision, "opened in another precision");
        locus_model_free(model);
        if (k == 0)
            CHECK(locus_model_convert(path, file, precision, &error) == LOCUS_OK, "%s", error.text);
    }
    CHECK(!memcmp(&a[0], &a[1], sizeof a[0]), "other bits than the folder in float");
    CHECK(bytes[0] == bytes[1], "other memory");
    remove_model(path);
}

/* A converted file with one thing changed. */
typedef struct hostile {
    const char *tensor;         /* the first whose name ends so; NULL: the metadata are changed */
    const char *dtype;          /* another one; NULL: as it is */
    int left_out, longer, full; /* full: every byte is 0x7F */
    double number;              /* its first one instead; with dtype or the like: not used */
    const char *said;
    const char *part; /* of the message, beside the name of the tensor */
} hostile;

static int ends_so(const char *name, const char *end)
{
    const size_t bytes = strlen(name), last = strlen(end);
    return bytes >= last && strcmp(name + bytes - last, end) == 0;
}

static void change_number(void *data, const char *dtype, double number)
{
    const float real = (float)number;
    const int16_t pair = (int16_t)number;
    const int8_t byte = (int8_t)number;
    if (strcmp(dtype, "F32") == 0)
        memcpy(data, &real, sizeof real);
    else if (strcmp(dtype, "I16") == 0)
        memcpy(data, &pair, sizeof pair);
    else
        memcpy(data, &byte, sizeof byte);
}

/* name: of the tensor that was changed. */
static void rewrite(const char *file, const hostile *h, char name[512])
{
    enum { MOST = 256 };
    locus_file *from = NULL;
    locus_file_writer *to = NULL;
    locus_error error = {""};
    void *blocks[MOST] = {NULL};
    int done = 0;
    name[0] = 0;
    if (locus_file_open(&from, file, NULL, &error) != LOCUS_OK ||
        locus_file_create(&to, file, NULL, &error) != LOCUS_OK ||
        locus_file_put_metadata(to, "locus.integers",
                                h->said != NULL ? h->said
                                                : locus_file_metadata(from, "locus.integers"),
                                &error) != LOCUS_OK)
        exit(2);
    for (size_t i = 0; i < locus_file_count(from) && i < MOST; i++) {
        const locus_file_tensor *t = locus_file_tensor_at(from, i);
        const int it = !done && h->tensor != NULL && ends_so(t->name, h->tensor);
        const uint64_t bytes = t->end - t->begin;
        uint64_t shape[LOCUS_FILE_MAX_RANK];
        memcpy(shape, t->shape, t->rank * sizeof *shape);
        blocks[i] = calloc((size_t)bytes * 2 + 8, 1);
        if (blocks[i] == NULL || locus_file_read(from, i, 0, bytes, blocks[i], &error) != LOCUS_OK)
            exit(2);
        if (it) {
            done = 1;
            snprintf(name, 512, "%s", t->name);
            if (h->left_out) continue;
            if (h->longer)
                shape[0]++;
            else if (h->full)
                memset(blocks[i], 0x7F, (size_t)bytes);
            else if (h->dtype == NULL)
                change_number(blocks[i], t->dtype, h->number);
        }
        if (locus_file_put(to, t->name, it && h->dtype != NULL ? h->dtype : t->dtype, t->rank,
                           shape, blocks[i], &error) != LOCUS_OK)
            exit(2);
    }
    CHECK(done == (h->tensor != NULL), "no tensor ends with %s", h->tensor);
    if (locus_file_commit(to, &error) != LOCUS_OK) exit(2);
    locus_file_close(from);
    for (size_t i = 0; i < MOST; i++) free(blocks[i]);
}

static void test_hostile(uint32_t precision)
{
    const char *integers = precision == LOCUS_I16 ? "I16" : "I8";
    const double beyond = precision == LOCUS_I16 ? -32768.0 : -128.0;
    const hostile cases[] = {
        {.tensor = ".scales", .number = NAN, .part = "found nan"},
        {.tensor = ".scales", .number = INFINITY, .part = "found inf"},
        {.tensor = ".scales", .number = -1.0, .part = "found -1"},
        {.tensor = ".scales", .number = 0.0, .part = "found 0"},
        {.tensor = ".scales", .number = 2e30, .part = "at most 1e30"},
        {.tensor = ".word_scales", .number = NAN, .part = "found nan"},
        {.tensor = ".word_scales", .number = 0.0, .part = "found 0"},
        {.tensor = ".scales", .left_out = 1, .part = "is missing"},
        {.tensor = ".word_scales", .left_out = 1, .part = "is missing"},
        {.tensor = ".scales", .longer = 1, .part = "another shape"},
        {.tensor = ".integers", .longer = 1, .part = "another shape"},
        {.tensor = ".words", .longer = 1, .part = "another shape"},
        {.tensor = ".scales", .dtype = "I32", .part = "found I32, expected F32"},
        {.tensor = ".integers", .dtype = precision == LOCUS_I16 ? "F16" : "U8", .part = integers},
        {.tensor = ".words", .dtype = precision == LOCUS_I16 ? "F16" : "U8", .part = integers},
        {.tensor = ".integers", .number = beyond, .part = "expected at least"},
        {.tensor = ".words", .number = beyond, .part = "expected at least"},
        {.tensor = precision == LOCUS_I16 ? ".integers" : ".scales",
         .full = 1,
         .part = precision == LOCUS_I16 ? "that sum to" : "at most 1e30"},
        {.said = "2 i16", .part = "found 2 i16, expected 1 i16 or 1 int8"},
        {.said = "1 exact", .part = "found 1 exact"},
        {.said = precision == LOCUS_I16 ? "1 int8" : "1 i16", .part = "expected I"},
    };
    const char *path = test_folder("precision-hostile");
    char file[1024], name[512];
    snprintf(file, sizeof file, "%s/model.safetensors", path);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const hostile *h = &cases[i];
        if (!check_begin("model/precision/hostile/%s/%zu", locus_precision_name(precision), i))
            continue;
        locus_model *model = NULL;
        locus_error error = {""};
        write_model(path, &test_models[0], NULL);
        CHECK(locus_model_convert(path, file, precision, &error) == LOCUS_OK, "%s", error.text);
        rewrite(file, h, name);
        CHECK(locus_model_open(&model, path, NULL, &error) == LOCUS_ERR_FORMAT, "opened");
        CHECK(strstr(error.text, h->part) != NULL && strstr(error.text, name) != NULL, "%s: %s",
              name, error.text);
        locus_model_free(model);
        remove_model(path);
    }
}

/* Integers that are left out leave a tensor without numbers. */
static void test_lacking(void)
{
    static const hostile without = {.tensor = ".integers", .left_out = 1};
    const char *path = test_folder("precision-lacking");
    char file[1024], name[512];
    locus_model *model = NULL;
    locus_error error = {""};
    if (!check_begin("model/precision/lacking")) return;
    snprintf(file, sizeof file, "%s/model.safetensors", path);
    write_model(path, &test_models[0], NULL);
    CHECK(locus_model_convert(path, file, LOCUS_INT8, &error) == LOCUS_OK, "%s", error.text);
    rewrite(file, &without, name);
    CHECK(locus_model_open(&model, path, NULL, &error) == LOCUS_ERR_FORMAT, "opened");
    CHECK(strstr(error.text, "found no numbers") != NULL, "%s", error.text);
    locus_model_free(model);
    remove_model(path);
}

/* What a converted folder is not: another precision, one to train, one to convert again. */
static void test_asked(void)
{
    const char *path = test_folder("precision-asked");
    char file[1024];
    locus_model *model = NULL;
    locus_error error = {""};
    const locus_model_config other = {.size = sizeof other, .precision = LOCUS_INT8};
    const locus_model_config trained = {.size = sizeof trained, .trainable = 1};
    if (!check_begin("model/precision/asked")) return;
    snprintf(file, sizeof file, "%s/model.safetensors", path);
    write_model(path, &test_models[0], NULL);
    CHECK(locus_model_convert(path, file, LOCUS_EXACT, &error) == LOCUS_ERR_ARGUMENT, "converted");
    CHECK(locus_model_convert(path, file, LOCUS_I16, &error) == LOCUS_OK, "%s", error.text);
    CHECK(locus_model_convert(path, file, LOCUS_I16, &error) == LOCUS_ERR_FORMAT &&
              strstr(error.text, "converted already") != NULL,
          "%s", error.text);
    CHECK(locus_model_open(&model, path, &other, &error) == LOCUS_ERR_FORMAT &&
              strstr(error.text, "holds i16") != NULL,
          "%s", error.text);
    CHECK(locus_model_open(&model, path, &trained, &error) == LOCUS_ERR_FORMAT &&
              strstr(error.text, "is exact") != NULL,
          "%s", error.text);
    locus_model_free(open_model(path, LOCUS_I16, NULL, 1));
    remove_model(path);
}

/* Tables of integers beside the same table of floats: the same bits of a whole model. */
static void test_tables(uint32_t precision)
{
    static const char *const pairs[][2] = {{"avx2", "avxvnni"}, {"avx512", "avx512vnni"}};
    const char *path = test_folder("precision-tables");
    write_model(path, &test_models[0], NULL);
    for (int i = 0; i < 2; i++) {
        answer a[2];
        if (!check_begin("model/precision/%s/%s", pairs[i][1], locus_precision_name(precision)))
            continue;
        if (strcmp(locus_quant_kernels_pick(pairs[i][1])->isa, pairs[i][1]) != 0) {
            check_skip("%s is not on this CPU", pairs[i][1]);
            continue;
        }
        for (int k = 0; k < 2; k++) {
            locus_model *model = open_model(path, precision, pairs[i][k], 1);
            CHECK(strcmp(info_of(model).isa, pairs[i][k]) == 0, "%s instead of %s",
                  info_of(model).isa, pairs[i][k]);
            compute(model, 0, SEQUENCES, &a[k]);
            locus_model_free(model);
        }
        CHECK(!memcmp(&a[0], &a[1], sizeof a[0]), "other bits than %s", pairs[i][0]);
    }
    remove_model(path);
}

/* Weights beyond what can be quantized stay in float: the bits of float32. */
static void test_kept(void)
{
    const char *path = test_folder("precision-kept");
    if (!check_begin("model/precision/kept")) return;
    answer exact, kept;
    write_model(path, &test_models[0], &(folder_change){.scale = 1e33});
    for (int k = 0; k < 2; k++) {
        locus_model *model = open_model(path, k == 0 ? LOCUS_EXACT : LOCUS_INT8, NULL, 1);
        compute(model, 0, SEQUENCES, k == 0 ? &exact : &kept);
        locus_model_free(model);
    }
    CHECK(!memcmp(&exact, &kept, sizeof exact), "other bits than float32");
    remove_model(path);
}

static void test_refused(void)
{
    static const struct {
        uint32_t precision, trainable;
        const char *part;
    } cases[] = {{3, 0, "expected exact, i16 or int8"},
                 {UINT32_MAX, 0, "expected exact, i16 or int8"},
                 {LOCUS_I16, 1, "a model that is trained is exact"}};
    const char *path = test_folder("precision-refused");
    if (!check_begin("model/precision/refused")) return;
    write_model(path, &test_models[0], NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        locus_model *model = NULL;
        locus_error error = {""};
        const locus_model_config config = {.size = sizeof config,
                                           .precision = cases[i].precision,
                                           .trainable = cases[i].trainable};
        CHECK(locus_model_open(&model, path, &config, &error) == LOCUS_ERR_ARGUMENT, "opened");
        CHECK(strstr(error.text, cases[i].part) != NULL, "%s", error.text);
        locus_model_free(model);
    }
    remove_model(path);
    CHECK(locus_precision_name(3) == NULL && locus_precision_keeps(3) == NULL, "a fourth one");
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for (uint32_t precision = LOCUS_I16; precision <= LOCUS_INT8; precision++) {
        for (size_t i = 0; i < test_model_count; i++) {
            test_family(&test_models[i], precision);
            test_converted(&test_models[i], precision);
        }
        test_tables(precision);
        test_hostile(precision);
    }
    test_lacking();
    test_asked();
    test_kept();
    test_refused();
    return check_finish("model/precision");
}

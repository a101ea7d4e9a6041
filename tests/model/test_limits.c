/* SPDX-License-Identifier: Apache-2.0 */

/* Both sides of every limit of configuration files and checkpoints: MOST_BYTES, MOST_VALUES,
 * MOST_STRING of src/model/settings.c, MODEL_SHARDS of checkpoint.h, and numbers that are
 * converted in pieces of PIECE. */

#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/description.h"
#include "model/folder.h"
#include "support/check.h"

typedef struct text {
    char *data;
    size_t bytes, room;
} text;

static void add(text *t, const char *part, size_t times)
{
    const size_t bytes = strlen(part);
    while (t->bytes + bytes * times + 1 > t->room) {
        t->room = 2 * t->room + 4096;
        t->data = realloc(t->data, t->room);
        if (t->data == NULL) exit(2);
    }
    for (size_t i = 0; i < times; i++, t->bytes += bytes) memcpy(t->data + t->bytes, part, bytes);
    t->data[t->bytes] = '\0';
}

/* Reads the text as a configuration: 1 when it is accepted, `part` in the message when not. */
static int is_read(const text *t, const char *part)
{
    const char *folder = test_folder("limits");
    char path[1024];
    model_settings s;
    locus_error error = {""};
    (void)mkdir(folder, 0700);
    write_text(folder, "config.json", t->data);
    const locus_status status = model_settings_read(&s, folder, "config.json", NULL, &error);
    if (status == LOCUS_OK) model_settings_free(&s);
    CHECK(status == LOCUS_OK || strstr(error.text, part) != NULL, "%s", error.text);
    snprintf(path, sizeof path, "%s/config.json", folder);
    (void)unlink(path);
    (void)rmdir(folder);
    return status == LOCUS_OK;
}

static int string_is_read(size_t bytes)
{
    text t = {NULL, 0, 0};
    add(&t, "{\"a\": \"", 1);
    add(&t, "x", bytes);
    add(&t, "\"}", 1);
    const int read = is_read(&t, "more than 65536 bytes");
    free(t.data);
    return read;
}

/* The list is a value, too. */
static int values_are_read(size_t count)
{
    text t = {NULL, 0, 0};
    add(&t, "[1", 1);
    add(&t, ",1", count - 2);
    add(&t, "]", 1);
    const int read = is_read(&t, "more than 400000 values");
    free(t.data);
    return read;
}

static int bytes_are_read(size_t bytes)
{
    text t = {NULL, 0, 0};
    add(&t, "{\"a\": 1}", 1);
    add(&t, " ", bytes - t.bytes);
    const int read = is_read(&t, "expected at most 16777216");
    free(t.data);
    return read;
}

static int depth_is_read(size_t depth)
{
    text t = {NULL, 0, 0};
    add(&t, "[", depth);
    add(&t, "]", depth);
    const int read = is_read(&t, "byte");
    free(t.data);
    return read;
}

static void test_settings(void)
{
    if (check_begin("limits/MOST_STRING"))
        CHECK(string_is_read(1 << 16) && !string_is_read((1 << 16) + 1), "strings");
    if (check_begin("limits/MOST_VALUES"))
        CHECK(values_are_read(400000) && !values_are_read(400001), "values");
    if (check_begin("limits/MOST_BYTES"))
        CHECK(bytes_are_read(16 << 20) && !bytes_are_read((16 << 20) + 1), "bytes");
    if (check_begin("limits/depth")) CHECK(depth_is_read(32) && !depth_is_read(33), "depth");
}

/* A key that occurs twice is refused wherever it stands; one with a dot is no path. */
static void test_keys(void)
{
    static const char *const twice[] = {"{\"a\": 1, \"a\": 2}",
                                        "{\"a\": {\"b\": 1, \"c\": 2, \"b\": null}}",
                                        "[{}, {\"a\": 1, \"\\u0061\": 1}]"};
    if (check_begin("settings/twice"))
        for (size_t i = 0; i < sizeof twice / sizeof *twice; i++) {
            text t = {NULL, 0, 0};
            add(&t, twice[i], 1);
            CHECK(!is_read(&t, "twice in an object"), "%s", t.data);
            free(t.data);
        }
    if (!check_begin("settings/dots")) return;
    const char *folder = test_folder("keys");
    char path[1024];
    model_settings s;
    (void)mkdir(folder, 0700);
    write_text(folder, "config.json",
               "{\"a.0\": 1, \"b\": {\"c\": [4, 5]}, \"b.c.2\": 6, \"a\": [], \"d\": {}}");
    CHECK(model_settings_read(&s, folder, "config.json", NULL, NULL) == LOCUS_OK, "not read");
    CHECK(model_setting_find(&s, "a.0") == NULL, "a key with a dot passed for a path");
    CHECK(model_setting_find(&s, "b.c.2") == NULL, "a key with dots passed for a path");
    const json_value *five = model_setting_find(&s, "b.c.1");
    CHECK(five != NULL && strcmp(five->text, "5") == 0, "b.c.1");
    CHECK(model_setting_count(&s, "b.c") == 2 && model_setting_count(&s, "b.c.1") == 0, "counts");
    CHECK(model_setting_find(&s, "b.c") == NULL && model_setting_members(&s, "d") != NULL, "kinds");
    model_settings_free(&s);
    snprintf(path, sizeof path, "%s/config.json", folder);
    (void)unlink(path);
    (void)rmdir(folder);
}

/* An index of `count` files, which are the same one by links. */
static int shards_are_read(const char *path, int count)
{
    text t = {NULL, 0, 0};
    char name[64], link_path[1024];
    locus_model *model = NULL;
    locus_error error = {""};
    add(&t, "{\"weight_map\": {", 1);
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s\"t%d\": \"s%d.safetensors\"", i > 0 ? ", " : "", i, i);
        add(&t, name, 1);
        snprintf(link_path, sizeof link_path, "%s/s%d.safetensors", path, i);
        if (symlink("model.safetensors", link_path) != 0) exit(2);
    }
    add(&t, "}}", 1);
    write_text(path, "model.safetensors.index.json", t.data);
    const locus_status status = locus_model_open(&model, path, NULL, &error);
    CHECK(status == LOCUS_OK || strstr(error.text, "more than 256 files") != NULL, "%s",
          error.text);
    locus_model_free(model);
    for (int i = 0; i < count; i++) {
        snprintf(link_path, sizeof link_path, "%s/s%d.safetensors", path, i);
        (void)unlink(link_path);
    }
    free(t.data);
    return status == LOCUS_OK;
}

static void clear(const char *path)
{
    static const char *const names[] = {"config.json", "model.safetensors",
                                        "model.safetensors.index.json"};
    char file[1024];
    for (size_t i = 0; i < 3; i++) {
        snprintf(file, sizeof file, "%s/%s", path, names[i]);
        (void)unlink(file);
    }
    (void)rmdir(path);
}

static void test_shards(void)
{
    if (!check_begin("limits/MODEL_SHARDS")) return;
    const char *path = test_folder("shards");
    write_model(path, &test_models[0], NULL);
    CHECK(shards_are_read(path, 256) && !shards_are_read(path, 257), "shards");
    clear(path);
}

/* A pooling, and `count` modules behind it. */
static int modules_are_read(const char *path, int count)
{
    text t = {NULL, 0, 0};
    locus_model *model = NULL;
    locus_error error = {""};
    add(&t,
        "[{\"type\": \"Transformer\", \"path\": \"\"}, {\"type\": \"Pooling\", \"path\": \"1_Pooling\"}",
        1);
    add(&t, ", {\"type\": \"Normalize\", \"path\": \"2_Normalize\"}", (size_t)count);
    add(&t, "]", 1);
    write_text(path, "modules.json", t.data);
    free(t.data);
    const locus_status status = locus_model_open(&model, path, NULL, &error);
    CHECK(status == LOCUS_OK || strstr(error.text, "more than 8 modules") != NULL, "%s",
          error.text);
    locus_model_free(model);
    return status == LOCUS_OK;
}

static void test_modules(void)
{
    if (!check_begin("limits/MODULE_STEPS")) return;
    const char *path = test_folder("modules");
    char file[1024];
    write_model(path, &test_models[0], NULL);
    snprintf(file, sizeof file, "%s/1_Pooling", path);
    (void)mkdir(file, 0700);
    write_text(file, "config.json", "{\"pooling_mode_mean_tokens\": true}");
    CHECK(modules_are_read(path, 8) && !modules_are_read(path, 9), "modules");
    snprintf(file, sizeof file, "%s/1_Pooling/config.json", path);
    (void)unlink(file);
    snprintf(file, sizeof file, "%s/1_Pooling", path);
    (void)rmdir(file);
    snprintf(file, sizeof file, "%s/modules.json", path);
    (void)unlink(file);
    clear(path);
}

/* An encoder and its decoder of width 64, whose positions are computed. */
static int sinusoids_are_read(const char *path, int positions)
{
    char config[400];
    locus_model *model = NULL;
    locus_error error = {""};
    snprintf(config, sizeof config,
             "{\"model_type\": \"marian\", \"d_model\": 64, \"encoder_layers\": 1, "
             "\"decoder_layers\": 1, \"encoder_attention_heads\": 2, "
             "\"decoder_attention_heads\": 2, \"encoder_ffn_dim\": 8, \"decoder_ffn_dim\": 8, "
             "\"vocab_size\": 9, \"max_position_embeddings\": %d}",
             positions);
    const test_model m = {"sinusoids", "marian", config};
    write_model(path, &m, NULL);
    const locus_status status = locus_model_open(&model, path, NULL, &error);
    CHECK(status == LOCUS_OK || strstr(error.text, "expected at most 262144 of width 64") != NULL,
          "%s", error.text);
    locus_model_free(model);
    return status == LOCUS_OK;
}

static void test_sinusoids(void)
{
    if (!check_begin("limits/MOST_SINUSOIDS")) return;
    const char *path = test_folder("sinusoids");
    CHECK(sinusoids_are_read(path, 262144) && !sinusoids_are_read(path, 262145), "sinusoids");
    clear(path);
}

/* The word table of a model that can be trained. */
static const void *words_of(const locus_model *model)
{
    locus_model_parameter p = {.size = sizeof p};
    for (int64_t i = 0; locus_model_parameter_at(model, i, &p, NULL) == LOCUS_OK; i++)
        if (strstr(p.name, "word_embeddings") != NULL) return p.value.data;
    exit(2);
}

/* A table of rows * 8 numbers around one and two PIECEs of 65536. */
static void test_pieces(void)
{
    if (!check_begin("limits/PIECE")) return;
    const locus_model_config trained = {.size = sizeof trained, .trainable = 1};
    static const int64_t rows[] = {8191, 8192, 8193, 16383, 16384, 16385};
    const char *path = test_folder("pieces");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char config[256];
        snprintf(config, sizeof config,
                 "{\"model_type\": \"distilbert\", \"dim\": 8, \"n_layers\": 1, \"n_heads\": 1, "
                 "\"hidden_dim\": 8, \"vocab_size\": %d, \"max_position_embeddings\": 4}",
                 (int)rows[i]);
        const test_model m = {"pieces", "distilbert", config};
        locus_model *model[2] = {NULL, NULL};
        locus_error error = {""};
        write_model(path, &m, NULL);
        CHECK(locus_model_open(&model[0], path, &trained, &error) == LOCUS_OK, "%s", error.text);
        write_model(path, &m, &(folder_change){.dtype = "F64"});
        CHECK(locus_model_open(&model[1], path, &trained, &error) == LOCUS_OK, "%s", error.text);
        if (model[0] != NULL && model[1] != NULL)
            CHECK(memcmp(words_of(model[0]), words_of(model[1]),
                         (size_t)rows[i] * 8 * sizeof(float)) == 0,
                  "%d rows are converted wrongly", (int)rows[i]);
        locus_model_free(model[0]), locus_model_free(model[1]);
    }
    clear(path);
}

/* Parts of a word table: 7 cutoffs make MODEL_CLUSTERS of them. */
static int cutoffs_are_read(int count)
{
    text t = {NULL, 0, 0};
    char number[32];
    const char *folder = test_folder("cutoffs");
    char path[1024];
    model_settings s;
    model_description d = {.width = 0};
    locus_error error = {""};
    add(&t, "{\"model_type\": \"transfo-xl\", \"d_embed\": 256, \"div_val\": 2, \"cutoffs\": [1",
        1);
    for (int i = 1; i < count; i++) {
        snprintf(number, sizeof number, ", %d", i + 1);
        add(&t, number, 1);
    }
    add(&t, "]}", 1);
    (void)mkdir(folder, 0700);
    write_text(folder, "config.json", t.data);
    if (model_settings_read(&s, folder, "config.json", NULL, &error) != LOCUS_OK) exit(2);
    const locus_status status = model_family_find("transfo-xl")->describe(&s, &d, &error);
    CHECK(status == LOCUS_OK ? d.clusters == count + 1
                             : strstr(error.text, "at most 7 cutoffs") != NULL,
          "%s", error.text);
    model_settings_free(&s);
    snprintf(path, sizeof path, "%s/config.json", folder);
    (void)unlink(path);
    (void)rmdir(folder);
    free(t.data);
    return status == LOCUS_OK;
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    test_settings();
    test_keys();
    test_shards();
    test_modules();
    test_sinusoids();
    test_pieces();
    if (check_begin("limits/MODEL_CLUSTERS"))
        CHECK(cutoffs_are_read(7) && !cutoffs_are_read(8), "cutoffs");
    return check_finish("model/limits");
}

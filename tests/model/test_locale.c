/* SPDX-License-Identifier: Apache-2.0 */

/* What a process that runs under a decimal comma reads and writes is the same bytes: case files and
 * their settings, pictures, tokens, hidden states of models whose configurations have fractions, and
 * messages. The locale is made here; nothing of it is installed. */

#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <locale.h>
#include <locus/locus.h>
#include <locus/model.h>
#include <locus/picture.h>
#include <locus/text.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/folder.h"
#include "support/check.h"

/* ---- a ledger: named sums of bytes ---- */

enum { MOST_ENTRIES = 512 };
typedef struct ledger {
    struct {
        char name[1024];
        uint64_t sum;
    } entry[MOST_ENTRIES];
    size_t count;
} ledger;

static ledger *open_ledger;

/* FNV-1a */
static void note(const char *name, const void *data, size_t bytes)
{
    const unsigned char *from = data;
    uint64_t sum = 0xCBF29CE484222325u;
    for (size_t i = 0; i < bytes; i++) sum = (sum ^ from[i]) * 0x100000001B3u;
    if (open_ledger->count == MOST_ENTRIES) exit(2);
    snprintf(open_ledger->entry[open_ledger->count].name, 1024, "%s", name);
    open_ledger->entry[open_ledger->count++].sum = sum;
}

static void note_file(const char *name, const char *path)
{
    static char data[1 << 22];
    FILE *file = fopen(path, "rb");
    const size_t bytes = file != NULL ? fread(data, 1, sizeof data, file) : 0;
    if (file != NULL) fclose(file);
    CHECK(bytes > 0, "%s: nothing was written", name);
    note(name, data, bytes);
}

/* ---- what is tried ---- */

static void note_case(const char *path)
{
    locus_case *loaded = NULL;
    locus_error error = {""};
    char copy[1024];
    if (locus_case_load(&loaded, path, NULL, &error) != LOCUS_OK) {
        note(path, error.text, strlen(error.text));
        return;
    }
    const locus_config *config = locus_case_config(loaded);
    note(path, &config->scale, sizeof config->scale);
    note(path, &config->softcap, sizeof config->softcap);
    note(path, &config->options, sizeof config->options);
    snprintf(copy, sizeof copy, "%s.safetensors", test_folder("locale"));
    CHECK(locus_case_write(copy, locus_case_level(loaded), config, locus_case_inputs(loaded), NULL,
                           &error) == LOCUS_OK,
          "%s", error.text);
    note_file(path, copy);
    (void)unlink(copy);
    locus_case_free(loaded);
}

static void note_cases(void)
{
    static const char *const folders[] = {"alibi",  "rope", "t5",  "softcap",
                                          "kerple", "xpos", "fire"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char folder[512], path[1024];
        snprintf(folder, sizeof folder, LOCUS_TEST_SOURCE_DIR "/tests/golden/%s", folders[i]);
        DIR *list = opendir(folder);
        CHECK(list != NULL, "%s", folder);
        for (struct dirent *d; list != NULL && (d = readdir(list)) != NULL;) {
            if (strstr(d->d_name, ".safetensors") == NULL) continue;
            snprintf(path, sizeof path, "%s/%s", folder, d->d_name);
            note_case(path);
        }
        if (list != NULL) closedir(list);
    }
}

static void note_pictures(void)
{
    for (size_t i = 0; i < locus_scheme_count(); i++) {
        const char *scheme = locus_scheme_at(i)->name;
        locus_picture_request request;
        locus_picture *picture = NULL;
        locus_error error = {""};
        locus_picture_request_init(&request, scheme);
        if (locus_picture_new(&picture, &request, &error) != LOCUS_OK) {
            note(scheme, error.text, strlen(error.text));
            continue;
        }
        for (int format = 0; format <= LOCUS_FORMAT_JSON; format++) {
            locus_text text = {.data = NULL};
            const locus_status status =
                locus_figure_render(locus_picture_figure(picture), (locus_format)format, NULL,
                                    &text, &error);
            CHECK(status == LOCUS_OK, "%s: %s", scheme, error.text);
            note(scheme, text.data, text.length);
            locus_text_free(&text);
        }
        locus_picture_free(picture);
    }
}

static void note_tokens(void)
{
    static const char *const folders[] = {"t5", "albert", "unigram.model", "deberta-v3", "marian"};
    static const char text[] = "The first 1,234.5 readers were internationally misunderstood, "
                               "unquestionably \xC3\xA9t\xC3\xA9.";
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[512];
        locus_tokenizer *tokenizer = NULL;
        locus_encoding *encoding = NULL;
        locus_error error = {""};
        const locus_text_input input = {.size = sizeof input, .text = text, .bytes = strlen(text)};
        snprintf(path, sizeof path, LOCUS_TEST_SOURCE_DIR "/tests/data/tokenizers/%s", folders[i]);
        if (locus_tokenizer_open(&tokenizer, path, NULL, &error) != LOCUS_OK) {
            note(folders[i], error.text, strlen(error.text));
            continue;
        }
        CHECK(locus_encoding_new(&encoding, NULL, &error) == LOCUS_OK &&
                  locus_tokenizer_encode(tokenizer, &input, encoding, &error) == LOCUS_OK,
              "%s", error.text);
        note(folders[i], locus_encoding_ids(encoding),
             locus_encoding_count(encoding) * sizeof(uint32_t));
        locus_encoding_free(encoding);
        locus_tokenizer_close(tokenizer);
    }
}

enum { TOKENS = 6, ROOM = 1024 };

static void note_model(const char *name, const char *from, const char *to)
{
    static const int32_t ids[TOKENS] = {3, 41, 7, 12, 5, 30};
    static const int64_t offsets[2] = {0, TOKENS};
    static char config[4096];
    static float states[ROOM];
    const char *path = test_folder("locale");
    locus_model *model = NULL;
    locus_model_pass *pass = NULL;
    locus_error error = {""};
    size_t m = 0;
    while (strcmp(test_models[m].name, name) != 0) m++;
    write_model(path, &test_models[m], NULL);
    const char *at = strstr(test_models[m].config, from);
    CHECK(at != NULL, "%s has no %s", name, from);
    snprintf(config, sizeof config, "%.*s%s%s", (int)(at - test_models[m].config),
             test_models[m].config, to, at);
    write_text(path, "config.json", config);
    if (locus_model_open(&model, path, NULL, &error) != LOCUS_OK) {
        note(name, error.text, strlen(error.text));
        CHECK(strstr(to, "-0.5") != NULL, "%s: %s", name, error.text);
        return;
    }
    float *rows[2] = {NULL, states};
    locus_model_info info = {.size = sizeof info};
    locus_model_describe(model, &info);
    float **hidden = calloc((size_t)info.layers + 1, sizeof *hidden);
    hidden[info.layers] = rows[1];
    const locus_model_batch batch = {.size = sizeof batch, .ids = ids};
    const locus_model_results results = {.size = sizeof results, .hidden = hidden};
    CHECK(locus_model_pass_new(&pass, model, offsets, 1, &error) == LOCUS_OK, "%s", error.text);
    const size_t bytes = locus_model_workspace(pass);
    void *workspace = malloc(bytes);
    CHECK(locus_model_forward(pass, &batch, &results, workspace, bytes, &error) == LOCUS_OK, "%s",
          error.text);
    note(name, states, (size_t)(TOKENS * info.width) * sizeof(float));
    free(workspace);
    free(hidden);
    locus_model_pass_free(pass);
    locus_model_free(model);
}

static void note_models(void)
{
    note_model("bert", "\"hidden_size\"", "\"layer_norm_eps\": 0.5, ");
    note_model("llama", "\"hidden_size\"", "\"rope_theta\": 1234.5, ");
    note_model("llama", "\"hidden_size\"", "\"rope_theta\": -0.5, ");
    remove_model(test_folder("locale"));
}

static void note_everything(ledger *book)
{
    open_ledger = book;
    book->count = 0;
    note_cases();
    note_pictures();
    note_tokens();
    note_models();
}

/* ---- the locale ---- */

/* 1: the process has a decimal comma from now on. */
static int take_comma(const char *folder)
{
    char command[1024];
    snprintf(command, sizeof command,
             "mkdir -p '%s' && localedef -i de_DE -f UTF-8 '%s/de_DE.UTF-8' >/dev/null 2>&1",
             folder, folder);
    if (system(command) != 0 || setenv("LOCPATH", folder, 1) != 0) return 0;
    return setlocale(LC_ALL, "de_DE.UTF-8") != NULL &&
           strcmp(localeconv()->decimal_point, ",") == 0;
}

int main(int argc, char **argv)
{
    static ledger point, comma;
    if (!check_args(argc, argv)) return 2;
    if (check_begin("model/locale/comma")) {
        const char *folder = test_folder("locale-data");
        char command[1024], text[32];
        note_everything(&point);
        CHECK(point.count > 60, "%d entries", (int)point.count);
        if (take_comma(folder)) {
            snprintf(text, sizeof text, "%g", 0.5);
            CHECK(strcmp(text, "0,5") == 0, "the locale does nothing: %s", text);
            note_everything(&comma);
            CHECK(comma.count == point.count, "%d entries", (int)comma.count);
            for (size_t i = 0; i < point.count && i < comma.count; i++)
                CHECK(point.entry[i].sum == comma.entry[i].sum, "%s: other bytes under a comma",
                      point.entry[i].name);
        } else {
            check_skip("localedef cannot make de_DE.UTF-8 here");
        }
        snprintf(command, sizeof command, "rm -rf '%s'", folder);
        CHECK(system(command) == 0, "%s stays", folder);
    }
    return check_finish("model/locale");
}

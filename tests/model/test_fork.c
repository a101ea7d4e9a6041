/* SPDX-License-Identifier: Apache-2.0 */

/* The child of a fork computes: calls of attention and of layers, models that its parent opened and
 * its own, sessions, generation, with the bits of its parent. The workers of the OpenMP runtime are not
 * there any more; one that waits for them is ended by an alarm. */

#define _DEFAULT_SOURCE
#include <locus/generate.h>
#include <locus/locus.h>
#include <locus/model.h>
#include <locus/runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/folder.h"
#include "support/check.h"

enum { THREADS = 4, TEXTS = 3, TOKENS = 12, MOST = 1 << 22, SECONDS = 60 };
static const int64_t offsets[TEXTS + 1] = {0, 5, 6, 12};
static const int32_t ids[TOKENS] = {3, 41, 7, 12, 5, 30, 2, 9, 9, 17, 22, 4};

/* What a computation gives. */
typedef struct bytes {
    unsigned char data[MOST];
    size_t count;
} bytes;

static void keep(bytes *out, const void *data, size_t count)
{
    if (out->count + count > MOST) exit(2);
    memcpy(out->data + out->count, data, count);
    out->count += count;
}

/* 1: the child gives what the parent gave. */
static int child_agrees(int (*compute)(void *, bytes *), void *what, const bytes *want)
{
    static bytes got;
    int status = 0;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        alarm(SECONDS);
        got.count = 0;
        const int right = compute(what, &got) && got.count == want->count &&
                          memcmp(got.data, want->data, got.count) == 0;
        _exit(right ? 0 : 1);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) return 0;
    CHECK(!WIFSIGNALED(status), "the child was ended by signal %d", WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void try(int (*compute)(void *, bytes *), void *what)
{
    static bytes want;
    want.count = 0;
    CHECK(compute(what, &want) && want.count > 0, "the parent fails");
    CHECK(child_agrees(compute, what, &want), "the child fails or has other bits");
    CHECK(child_agrees(compute, what, &want), "a second child does");
}

/* ---- a call ---- */

static int run_case(void *what, bytes *out)
{
    locus_case *loaded = NULL;
    locus_error error = {""};
    char path[512];
    const locus_case_run_options options = {.size = sizeof options, .threads = THREADS};
    snprintf(path, sizeof path, LOCUS_TEST_SOURCE_DIR "/tests/golden/%s.safetensors",
             (const char *)what);
    int done = locus_case_load(&loaded, path, NULL, &error) == LOCUS_OK &&
               locus_case_run(loaded, &options, &error) == LOCUS_OK;
    for (size_t i = 0; done && i < locus_case_result_count(loaded); i++) {
        const locus_tensor *t = locus_case_result(loaded, i);
        keep(out, t->data, (size_t)locus_tensor_elements(t) * locus_dtype_bytes(t->dtype));
    }
    locus_case_free(loaded);
    return done;
}

/* ---- a model ---- */

static locus_model *open_model(const char *path)
{
    locus_model *model = NULL;
    const locus_model_config config = {.size = sizeof config, .threads = THREADS};
    return locus_model_open(&model, path, &config, NULL) == LOCUS_OK ? model : NULL;
}

static int run_pass(void *what, bytes *out)
{
    const locus_model *model = what;
    static float states[TOKENS * 256];
    locus_model_info info = {.size = sizeof info};
    locus_model_pass *pass = NULL;
    locus_model_describe(model, &info);
    float *hidden[16] = {NULL};
    hidden[info.layers] = states;
    const locus_model_batch batch = {.size = sizeof batch, .ids = ids};
    const locus_model_results results = {.size = sizeof results, .hidden = hidden};
    if (locus_model_pass_new(&pass, model, offsets, TEXTS, NULL) != LOCUS_OK) return 0;
    const size_t room = locus_model_workspace(pass);
    void *workspace = malloc(room);
    const locus_status status = locus_model_forward(pass, &batch, &results, workspace, room, NULL);
    keep(out, states, (size_t)(TOKENS * info.width) * sizeof(float));
    free(workspace);
    locus_model_pass_free(pass);
    return status == LOCUS_OK;
}

static int run_generation(void *what, bytes *out)
{
    const locus_model *model = what;
    locus_generated *generated = NULL;
    locus_generation how = {.size = sizeof how};
    locus_generation_init(&how, model);
    how.max_new_tokens = 5;
    how.start = 0;
    how.beams = 2;
    if (locus_generate(&generated, model, &how, ids, offsets, TEXTS, NULL) != LOCUS_OK) return 0;
    for (int64_t t = 0; t < TEXTS; t++) {
        int64_t count;
        const int32_t *own = locus_generated_ids(generated, t, &count);
        keep(out, own, (size_t)count * sizeof *own);
    }
    locus_generated_free(generated);
    return 1;
}

/* A model of its own, which packs its weights in tasks. */
static int run_opened(void *what, bytes *out)
{
    locus_model *model = open_model(what);
    const int done = model != NULL && run_pass(model, out);
    locus_model_free(model);
    return done;
}

static void write_named(const char *path, const char *name)
{
    size_t m = 0;
    while (strcmp(test_models[m].name, name) != 0) m++;
    write_model(path, &test_models[m], NULL);
}

static void test_models_of(const char *name, int generates)
{
    const char *path = test_folder("fork");
    if (!check_begin("model/fork/%s", name)) return;
    write_named(path, name);
    locus_model *model = open_model(path);
    CHECK(model != NULL, "cannot be opened");
    if (generates)
        try(run_generation, model);
    else
        try(run_pass, model);
    try(run_opened, (void *)(uintptr_t)path);
    locus_model_free(model);
    remove_model(path);
}

static int count_threads(void *what, bytes *out)
{
    (void)what;
    keep(out, "1", 1);
    return locus_default_threads() == 1;
}

int main(int argc, char **argv)
{
    static const char *const cases[] = {"none/long-257", "t5/long-257", "none/layer-full",
                                        "rope/yarn"};
    static bytes one = {.data = "1", .count = 1};
    if (!check_args(argc, argv)) return 2;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (check_begin("model/fork/%s", cases[i])) try(run_case, (void *)(uintptr_t)cases[i]);
    test_models_of("bert", 0);
    test_models_of("xlnet-fill", 0);
    test_models_of("llama", 1);
    test_models_of("t5-decoder", 1);
    if (check_begin("model/fork/threads")) {
        CHECK(locus_default_threads() >= 1, "no thread");
        CHECK(child_agrees(count_threads, NULL, &one), "a child has more than one thread");
    }
    return check_finish("model/fork");
}

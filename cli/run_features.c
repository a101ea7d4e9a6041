/* SPDX-License-Identifier: Apache-2.0 */
/* locus run --features: rows of numbers from a file, for models that take them in place of tokens. */
#include <inttypes.h>
#include <locus/tensorfile.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

/* [tokens, width] */
typedef struct features {
    float *rows;
    int64_t tokens;
} features;

static int refuse(const run_session *s, const char *found)
{
    return cli_complain("run", CLI_REFUSED, "%s: found %s, expected F32 [T,%" PRId64 "]",
                        s->values->features, found, s->info.features);
}

/* Room for shape [T, width] or [1, T, width]; another one is refused. */
static int make_room(const run_session *s, const uint64_t *shape, size_t rank, features *f)
{
    if (rank == 3 && shape[0] == 1) shape++, rank--;
    if (rank != 2 || shape[1] != (uint64_t)s->info.features || shape[0] > 1 << 20)
        return refuse(s, "another shape");
    f->tokens = (int64_t)shape[0];
    f->rows = calloc((size_t)(shape[0] * shape[1]) + 1, sizeof *f->rows);
    return f->rows != NULL ? CLI_DONE : run_no_memory();
}

/* ---- safetensors: the tensor "features", or the only one ---- */

static int read_tensor(const run_session *s, features *f)
{
    locus_file *file = NULL;
    locus_error error = {""};
    locus_status status = locus_file_open(&file, s->values->features, NULL, &error);
    if (status != LOCUS_OK) return cli_report("run", status, s->values->features, &error);
    size_t index = 0;
    while (index < locus_file_count(file) &&
           strcmp(locus_file_tensor_at(file, index)->name, "features") != 0)
        index++;
    if (index == locus_file_count(file)) index = 0;
    const int there = locus_file_count(file) == 1 || locus_file_find(file, "features") != NULL;
    const locus_file_tensor *t = there ? locus_file_tensor_at(file, index) : NULL;
    int exit_code = t == NULL                      ? refuse(s, "no tensor named features")
                    : strcmp(t->dtype, "F32") != 0 ? refuse(s, t->dtype)
                                                   : make_room(s, t->shape, t->rank, f);
    if (exit_code == CLI_DONE) {
        const uint64_t bytes = (uint64_t)(f->tokens * s->info.features) * sizeof(float);
        status = locus_file_read(file, index, 0, bytes, f->rows, &error);
        if (status != LOCUS_OK) exit_code = cli_report("run", status, s->values->features, &error);
    }
    locus_file_close(file);
    return exit_code;
}

/* ---- .npy: a line of Python behind ten bytes, then the numbers ---- */

enum { NPY_HEAD = 10, NPY_LINE = 4096 };

static size_t read_shape(const char *line, uint64_t shape[3])
{
    const char *at = strstr(line, "'shape': (");
    size_t rank = 0;
    for (at = at != NULL ? at + 10 : ""; rank < 3 && *at >= '0' && *at <= '9'; rank++) {
        char *end;
        shape[rank] = strtoull(at, &end, 10);
        for (at = end; *at == ',' || *at == ' ';) at++;
    }
    return *at == ')' ? rank : 0;
}

static int read_npy(const run_session *s, FILE *file, features *f)
{
    unsigned char head[NPY_HEAD];
    char line[NPY_LINE + 1] = "";
    uint64_t shape[3] = {0, 0, 0};
    if (fread(head, 1, sizeof head, file) != sizeof head || head[6] != 1)
        return refuse(s, "no .npy file of version 1");
    const size_t bytes = (size_t)head[8] | (size_t)head[9] << 8;
    if (bytes > NPY_LINE || fread(line, 1, bytes, file) != bytes)
        return refuse(s, "a .npy file that ends in its first line");
    if (strstr(line, "'<f4'") == NULL || strstr(line, "'fortran_order': False") == NULL)
        return refuse(s, "other numbers, or another order of them");
    const size_t rank = read_shape(line, shape);
    const int exit_code = make_room(s, shape, rank, f);
    if (exit_code != CLI_DONE) return exit_code;
    const size_t count = (size_t)(f->tokens * s->info.features);
    return fread(f->rows, sizeof *f->rows, count, file) == count
               ? CLI_DONE
               : refuse(s, "a .npy file that ends too early");
}

static int read_features(const run_session *s, features *f)
{
    char magic[6] = "";
    FILE *file = fopen(s->values->features, "rb");
    const int npy = file != NULL && fread(magic, 1, 6, file) == 6 &&
                    memcmp(magic, "\x93NUMPY", sizeof magic) == 0;
    if (npy) rewind(file);
    const int exit_code = npy ? read_npy(s, file, f) : read_tensor(s, f);
    if (file != NULL) fclose(file);
    return exit_code;
}

/* ---- the model ---- */

static int forward(const run_session *s, const features *f, float *const *hidden)
{
    const int64_t offsets[2] = {0, f->tokens};
    const locus_model_batch batch = {.size = sizeof batch, .features = f->rows};
    const locus_model_results results = {.size = sizeof results, .hidden = hidden};
    locus_model_pass *pass = NULL;
    locus_error error = {""};
    locus_status status = locus_model_pass_new(&pass, s->model, offsets, 1, &error);
    const size_t bytes = status == LOCUS_OK ? locus_model_workspace(pass) : 0;
    void *workspace = malloc(bytes + 1);
    if (status == LOCUS_OK && workspace != NULL)
        status = locus_model_forward(pass, &batch, &results, workspace, bytes, &error);
    free(workspace);
    locus_model_pass_free(pass);
    if (workspace == NULL) return run_no_memory();
    return status == LOCUS_OK ? CLI_DONE : cli_report("run", status, NULL, &error);
}

int run_features(const run_session *s)
{
    features f = {.rows = NULL};
    if (s->info.features == 0)
        return cli_complain("run", CLI_USAGE, "--features: %s takes tokens", s->values->model);
    int exit_code = read_features(s, &f);
    float **hidden = NULL;
    if (exit_code == CLI_DONE) {
        hidden = run_arrays_new(s->info.layers + 1, f.tokens * s->info.width);
        exit_code = hidden != NULL ? forward(s, &f, hidden) : run_no_memory();
    }
    if (exit_code == CLI_DONE) exit_code = run_hidden_write(s, hidden, f.tokens);
    run_arrays_free(hidden);
    free(f.rows);
    return exit_code;
}

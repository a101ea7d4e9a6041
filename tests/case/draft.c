/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE 1
#include "case/draft.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <locus/tensorfile.h>

static void stop(const char *what)
{
    fprintf(stderr, "case draft: %s\n", what);
    exit(2);
}

/* ---- changing ---- */

void draft_set(draft *d, const char *key, const char *value)
{
    size_t i = 0;
    while (i < d->entry_count && strcmp(d->entries[i].key, key) != 0) i++;
    if (value == NULL) {
        if (i < d->entry_count) d->entries[i] = d->entries[--d->entry_count];
        return;
    }
    if (i == sizeof d->entries / sizeof *d->entries) stop("too many keys");
    if (i == d->entry_count) d->entry_count++;
    snprintf(d->entries[i].key, sizeof d->entries[i].key, "%s", key);
    snprintf(d->entries[i].value, sizeof d->entries[i].value, "%s", value);
}

draft_tensor *draft_at(draft *d, const char *name)
{
    for (size_t i = 0; i < d->tensor_count; i++)
        if (strcmp(d->tensors[i].name, name) == 0) return &d->tensors[i];
    return NULL;
}

void draft_add(draft *d, const char *name, const char *dtype, uint32_t rank, const uint64_t *shape,
               const void *data)
{
    if (d->tensor_count == sizeof d->tensors / sizeof *d->tensors) stop("too many tensors");
    draft_tensor *t = &d->tensors[d->tensor_count++];
    snprintf(t->name, sizeof t->name, "%s", name);
    t->dtype = dtype;
    t->rank = rank;
    if (rank > 0) memcpy(t->shape, shape, rank * sizeof *shape);
    t->data = data;
}

void draft_drop(draft *d, const char *name)
{
    draft_tensor *t = draft_at(d, name);
    if (t == NULL) stop(name);
    *t = d->tensors[--d->tensor_count];
}

/* ---- making ---- */

static void add_view(draft *d, const char *prefix, const char *name, const locus_tensor *t)
{
    static const char *const dtypes[] = {
        [LOCUS_F32] = "F32", [LOCUS_F64] = "F64", [LOCUS_U8] = "U8"};
    uint64_t shape[LOCUS_MAX_RANK];
    char full[64];
    if (t->rank == 0) return;
    for (uint32_t i = 0; i < t->rank; i++) shape[i] = (uint64_t)t->shape[i];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    draft_add(d, full, dtypes[t->dtype], t->rank, shape, t->data);
}

static void add_settings(draft *d, const char *text)
{
    while (text != NULL && *text != '\0') {
        char key[32], value[32];
        int used = 0;
        if (sscanf(text, " %31[a-z_0-9]=%31[^ ] %n", key, value, &used) != 2) stop(text);
        draft_set(d, key, value);
        text += used;
    }
}

static void add_wanted(draft *d)
{
    test_problem *p = d->problem;
    locus_error error = {""};
    if (test_problem_run(p, TEST_ORACLE, 1, &error) != LOCUS_OK) stop(error.text);
    add_view(d, "want.", "out", &p->results[0].out);
    add_view(d, "want.", "lse", &p->results[0].lse);
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++)
        add_view(d, "want.grad.", locus_tensor_name(i), locus_tensor_at_const(&p->grad[0], i));
}

draft *draft_new(const test_spec *spec, int grad, int want)
{
    draft *d = calloc(1, sizeof *d);
    if (d == NULL) stop("no memory");
    d->problem = test_problem_new(spec);
    draft_set(d, "format", "locus.case/1");
    draft_set(d, "kind", spec->level == LOCUS_LAYER ? "layer" : "attend");
    draft_set(d, "scheme", spec->scheme);
    if (spec->level == LOCUS_LAYER) {
        char heads[32];
        snprintf(heads, sizeof heads, "%d", (int)spec->H);
        draft_set(d, "heads", heads);
    }
    add_settings(d, spec->settings);
    if (strcmp(spec->scheme, "transformer_xl") == 0 && spec->level == LOCUS_ATTEND) {
        char least[32];
        snprintf(least, sizeof least, "%lld", (long long)d->problem->config.options.delta_min);
        draft_set(d, "delta_min", least);
    }
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++)
        add_view(d, "", locus_tensor_name(i), locus_tensor_at_const(&d->problem->in[1], i));
    if (grad) {
        draft_set(d, "grad", "1");
        add_view(d, "", "dout", &d->problem->dout[1]);
    }
    if (want) add_wanted(d);
    return d;
}

void draft_free(draft *d)
{
    test_problem_free(d->problem);
    free(d);
}

const char *draft_write(const draft *d, const char *name)
{
    const char *path = folder_path(name);
    locus_error error = {""};
    locus_file_writer *writer = NULL;
    locus_status status = locus_file_create(&writer, path, NULL, &error);
    for (size_t i = 0; status == LOCUS_OK && i < d->entry_count; i++)
        status = locus_file_put_metadata(writer, d->entries[i].key, d->entries[i].value, &error);
    for (size_t i = 0; status == LOCUS_OK && i < d->tensor_count; i++) {
        const draft_tensor *t = &d->tensors[i];
        status = locus_file_put(writer, t->name, t->dtype, t->rank, t->shape, t->data, &error);
    }
    if (status == LOCUS_OK) status = locus_file_commit(writer, &error);
    if (status != LOCUS_OK) stop(error.text);
    return path;
}

/* ---- the folder ---- */

static char folder[512];

void folder_make(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/locus-XXXXXX",
             base != NULL && base[0] != '\0' ? base : "/tmp");
    if (mkdtemp(folder) == NULL) stop(folder);
}

const char *folder_path(const char *name)
{
    static char paths[2][1024];
    static unsigned turn;
    char *path = paths[turn++ % 2];
    snprintf(path, sizeof *paths, "%s/%s", folder, name);
    return path;
}

static size_t walk(int remove_them)
{
    size_t count = 0;
    DIR *directory = opendir(folder);
    if (directory == NULL) stop(folder);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        count++;
        if (remove_them && remove(folder_path(entry->d_name)) != 0) stop(entry->d_name);
    }
    closedir(directory);
    return count;
}

size_t folder_count(void) { return walk(0); }

void folder_remove(void)
{
    walk(1);
    if (rmdir(folder) != 0) stop(folder);
}

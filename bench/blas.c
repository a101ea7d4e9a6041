/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "bench/blas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const names[] = {"libopenblas.so.0", "libopenblas.so"};

static void *load(void)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (library != NULL) return library;
    }
    return NULL;
}

static const char *ask(void *library, const char *function)
{
    char *(*answer)(void) = NULL;
    *(void **)&answer = dlsym(library, function);
    return answer != NULL ? answer() : "";
}

/* In a process of its own, since OpenBLAS reads OPENBLAS_CORETYPE while it is loaded and
 * does not let itself be loaded twice. */
static void probe(char *core, size_t capacity)
{
    int ends[2];
    core[0] = '\0';
    if (pipe(ends) != 0) return;
    const pid_t child = fork();
    if (child == 0) {
        void *library = load();
        const char *text = library != NULL ? ask(library, "openblas_get_corename") : "";
        _exit(write(ends[1], text, strlen(text)) < 0);
    }
    close(ends[1]);
    if (child > 0) {
        const ssize_t got = read(ends[0], core, capacity - 1);
        core[got > 0 ? got : 0] = '\0';
        waitpid(child, NULL, 0);
    }
    close(ends[0]);
}

/* Kernels that make use of an instruction set, and the name to ask for where it got none
 * of them. */
static const struct {
    const char *isa, *fit[6], *better;
} cores[] = {
    {"avx512", {"SkylakeX", "Cooperlake", "SapphireRapids"}, "SkylakeX"},
    {"avx2", {"Haswell", "Zen", "SkylakeX", "Cooperlake", "SapphireRapids"}, "Haswell"},
};

static const char *better_core(const char *isa, const char *core)
{
    for (size_t i = 0; i < sizeof cores / sizeof *cores; i++) {
        if (strcmp(cores[i].isa, isa) != 0) continue;
        for (size_t k = 0; k < 6 && cores[i].fit[k] != NULL; k++)
            if (strcasecmp(cores[i].fit[k], core) == 0) return NULL;
        return cores[i].better;
    }
    return NULL;
}

/* "OpenBLAS 0.3.21 NO_LAPACKE ...": the first two words. */
static void read_version(blas *b)
{
    const char *text = ask(b->library, "openblas_get_config");
    const size_t name = strcspn(text, " "), space = strspn(text + name, " ");
    const size_t length = name + space + strcspn(text + name + space, " ");
    snprintf(b->version, sizeof b->version, "%.*s", (int)length, text);
}

int blas_open(blas *b, const char *isa)
{
    memset(b, 0, sizeof *b);
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    probe(b->chosen, sizeof b->chosen);
    const char *better = better_core(isa, b->chosen);
    if (better != NULL) setenv("OPENBLAS_CORETYPE", better, 0); /* the user's word stands */
    b->library = load();
    if (b->library == NULL) return 0;
    /* With 64-bit integers the call below would be another one. */
    if (strstr(ask(b->library, "openblas_get_config"), "USE64BITINT") == NULL)
        *(void **)&b->gemm = dlsym(b->library, "cblas_sgemm");
    if (b->gemm == NULL) {
        blas_close(b);
        return 0;
    }
    read_version(b);
    snprintf(b->core, sizeof b->core, "%s", ask(b->library, "openblas_get_corename"));
    return 1;
}

void blas_close(blas *b)
{
    if (b->library != NULL) dlclose(b->library);
    memset(b, 0, sizeof *b);
}

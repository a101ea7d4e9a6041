/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_GOLDEN_FOLDER_H
#define LOCUS_TESTS_GOLDEN_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GOLDEN_PATH = 4096 };

#ifndef LOCUS_TEST_SOURCE_DIR
#define LOCUS_TEST_SOURCE_DIR "."
#endif

/* Where the golden vectors are: the environment variable LOCUS_GOLDEN, else this folder. */
static inline const char *golden_folder(void)
{
    const char *folder = getenv("LOCUS_GOLDEN");
    return folder != NULL && folder[0] != '\0' ? folder : LOCUS_TEST_SOURCE_DIR "/tests/golden";
}

/* ---- manifest.json: the few cases whose logits are too large for the usual tolerance ---- */

enum { GOLDEN_MANIFEST = 1 << 16 };
static inline char *golden_manifest(void)
{
    static char text[GOLDEN_MANIFEST];
    return text;
}

/* 0: there is none that makes sense. */
static inline int golden_read_manifest(void)
{
    char path[GOLDEN_PATH];
    snprintf(path, sizeof path, "%s/manifest.json", golden_folder());
    FILE *file = fopen(path, "rb");
    if (file == NULL) return 0;
    const size_t bytes = fread(golden_manifest(), 1, GOLDEN_MANIFEST - 1, file);
    fclose(file);
    return bytes > 0 && bytes < GOLDEN_MANIFEST - 1 &&
           strstr(golden_manifest(), "tolerance") != NULL;
}

/* The number after "out", "lse" or "grad" of case `name`, else `usual`. */
static inline double golden_tolerance(const char *name, const char *result, double usual)
{
    char key[GOLDEN_PATH];
    snprintf(key, sizeof key, "\"%s\"", name);
    const char *at = strstr(golden_manifest(), key);
    if (at == NULL) return usual;
    const char *end = strchr(at, '}');
    const char *kind = strncmp(result, "grad.", 5) == 0 ? "\"grad\""
                       : result[0] == 'o'               ? "\"out\""
                                                        : "\"lse\"";
    at = strstr(at, kind);
    if (at == NULL || end == NULL || at > end) return usual;
    return strtod(at + strlen(kind) + strspn(at + strlen(kind), " :"), NULL);
}

/* ---- the files ---- */

static inline int golden_by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

enum { GOLDEN_FILES = 1024 };

/* Names of the safetensors files in one folder, sorted; the caller frees each. */
static inline size_t golden_list(const char *scheme, char **names)
{
    char path[GOLDEN_PATH];
    size_t count = 0;
    snprintf(path, sizeof path, "%s/%s", golden_folder(), scheme);
    DIR *folder = opendir(path);
    for (const struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        const size_t length = strlen(entry->d_name), tail = strlen(".safetensors");
        if (length <= tail || strcmp(entry->d_name + length - tail, ".safetensors") != 0) continue;
        if (count < GOLDEN_FILES && (names[count] = malloc(length + 1)) != NULL)
            memcpy(names[count++], entry->d_name, length + 1);
    }
    if (folder != NULL) closedir(folder);
    qsort(names, count, sizeof *names, golden_by_name);
    return count;
}

#endif

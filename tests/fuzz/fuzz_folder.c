/* SPDX-License-Identifier: Apache-2.0 */
/* Folders without tokenizer.json: the first byte says which files, a NUL line ends the first. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz/fuzz.h"

static void put(const char *folder, const char *name, const uint8_t *data, size_t size)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (file == NULL) return;
    if (size > 0) (void)fwrite(data, 1, size, file);
    fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const pairs[][2] = {{"vocab.txt", "tokenizer_config.json"},
                                           {"vocab.json", "merges.txt"},
                                           {"vocab.txt", "special_tokens_map.json"},
                                           {"vocab.txt", "added_tokens.json"},
                                           {"vocab.txt", "config.json"}};
    char folder[128], path[256];
    locus_tokenizer *t = NULL;
    locus_error error = {{0}};
    if (size == 0) return 0;
    const char *const *names = pairs[data[0] % 5];
    const uint8_t *cut = memchr(data, 0, size);
    const size_t first = cut == NULL ? size : (size_t)(cut - data);
    snprintf(folder, sizeof folder, "/dev/shm/locus-fuzz-%ld", (long)getpid());
    mkdir(folder, 0700);
    put(folder, names[0], data + 1, first - 1);
    if (cut != NULL) put(folder, names[1], cut + 1, size - first - 1);
    if (locus_tokenizer_open(&t, folder, NULL, &error) == LOCUS_OK) fuzz_use(t);
    locus_tokenizer_close(t);
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
    return 0;
}

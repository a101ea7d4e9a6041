/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a text, for every tokenizer of tests/data: the first byte says which. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz/fuzz.h"

static locus_tokenizer *tokenizers[64];
static size_t tokenizer_count;

static void open_all(void)
{
    const char *data = getenv("LOCUS_FUZZ_DATA");
    char path[1024];
    locus_error error = {{0}};
    DIR *folder = opendir(data == NULL ? "tests/data/tokenizers" : data);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", data == NULL ? "tests/data/tokenizers" : data,
                 entry->d_name);
        if (entry->d_name[0] == '.' || tokenizer_count == 64) continue;
        if (locus_tokenizer_open(&tokenizers[tokenizer_count], path, NULL, &error) == LOCUS_OK)
            tokenizer_count++;
    }
    if (folder != NULL) closedir(folder);
    if (tokenizer_count == 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (tokenizer_count == 0) open_all();
    if (size == 0) return 0;
    fuzz_encode(tokenizers[data[0] % tokenizer_count], (const char *)data + 1, size - 1);
    return 0;
}

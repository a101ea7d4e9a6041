/* SPDX-License-Identifier: Apache-2.0 */
/* Folders without tokenizer.json: the first byte says which files, a NUL line ends the first. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const pairs[][2] = {{"vocab.txt", "tokenizer_config.json"},
                                           {"vocab.json", "merges.txt"},
                                           {"vocab.txt", "special_tokens_map.json"},
                                           {"vocab.txt", "added_tokens.json"},
                                           {"vocab.txt", "config.json"},
                                           {"tokenizer_config.json", "spiece.model"}};
    locus_error error = {{0}};
    if (size == 0) return 0;
    const char *const *names = pairs[data[0] % (sizeof pairs / sizeof *pairs)];
    const uint8_t *cut = memchr(data, 0, size);
    const size_t first = cut == NULL ? size : (size_t)(cut - data);
    locus_tokenizer *t = fuzz_tokenizer();
    fuzz_put(names[0], data + 1, first - (first > 0));
    if (cut != NULL) fuzz_put(names[1], cut + 1, size - first - 1);
    if (locus_text_read(t, fuzz_folder(), &error) == LOCUS_OK) fuzz_use(t);
    fuzz_close(t);
    fuzz_remove(names[0]);
    fuzz_remove(names[1]);
    return 0;
}

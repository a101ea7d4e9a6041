/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.json from memory; what is accepted must encode and decode. */
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_tree tree;
    locus_error error = {{0}};
    if (locus_json_tree_parse(&tree, (const char *)data, size, &read_limits, NULL, &error) !=
        LOCUS_OK)
        return 0;
    locus_tokenizer *t = fuzz_tokenizer();
    if (locus_read_tokenizer_tree(t, tree.root, &error) == LOCUS_OK &&
        locus_read_settle_letters(t, &error) == LOCUS_OK &&
        locus_read_finish(t, &error) == LOCUS_OK)
        fuzz_use(t);
    locus_json_tree_free(&tree);
    fuzz_close(t);
    return 0;
}

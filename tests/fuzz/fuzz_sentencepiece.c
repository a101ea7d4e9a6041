/* SPDX-License-Identifier: Apache-2.0 */
/* SentencePiece models from memory; what is accepted must encode and decode. */
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    locus_error error = {{0}};
    locus_tokenizer *t = fuzz_tokenizer();
    normalizer step;
    const locus_status status =
        locus_read_sentencepiece_text(t, (const char *)data, size, &t->model, &t->map, &t->symbols,
                                      &step, &error);
    if (status == LOCUS_OK) {
        t->normalizers[t->normalizer_count++] = step;
        t->decoders[t->decoder_count++] = (decoder){.kind = DECODE_SENTENCEPIECE};
        t->rules = "SentencePiece";
        t->single = (text_template){.items = {{.kind = ITEM_FIRST}}, .count = 1};
        if (locus_read_finish(t, &error) == LOCUS_OK) fuzz_use(t);
    }
    fuzz_close(t);
    return 0;
}

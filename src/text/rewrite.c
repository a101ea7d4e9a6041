/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of a text as `tokenizers` tells them. */
#include "text/tokenizer.h"

void locus_rewrite_add(rewrite *r, uint32_t code, int64_t change)
{
    const text_buffer *in = r->in;
    if (change > 0) {
        locus_text_buffer_add(r->out, code, r->at == 0 ? in->shift : text_origin(in, r->at - 1));
        return;
    }
    /* Nothing left to replace: the origin of the end. */
    const size_t at = r->at < in->bytes ? r->at : in->bytes - 1;
    locus_text_buffer_add(r->out, code, text_origin(in, at));
    for (; change <= 0 && r->at < in->bytes; change++)
        r->at += utf8_length((unsigned char)in->data[r->at]);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* SentencePiece's own normalizer: the longest key of the character map again and again, spaces
 * collapsed and shown as U+2581, one of them in front. Origins are those of the first character
 * of what was matched. */
#include <string.h>

#include "text/tokenizer.h"

typedef struct chunk {
    const char *text; /* the replacement, or the input itself */
    size_t bytes;
    size_t used; /* bytes of the input */
} chunk;

/* What the next characters of the input become. */
static chunk next_chunk(const normalizer *step, const text_buffer *in, size_t at)
{
    const char *text = in->data + at;
    const size_t left = in->bytes - at;
    size_t matched = 0, bytes = 0;
    if (step->symbols != NULL) {
        locus_trie_longest(step->symbols, text, left, &matched);
        if (matched > 0) return (chunk){text, matched, matched};
    }
    if (step->map != NULL) {
        const char *found = locus_charsmap_find(step->map, text, left, 1, &matched, &bytes);
        if (found != NULL) return (chunk){found, bytes, matched};
    }
    const size_t length = utf8_length((unsigned char)text[0]);
    return (chunk){text, length, length};
}

static int is_space(const chunk *c) { return c->bytes == 1 && c->text[0] == ' '; }

static void add_space(const normalizer *step, text_buffer *out, size_t origin)
{
    locus_text_buffer_add(out, step->escape ? TEXT_META_CODE : ' ', origin);
}

static int ends_with_space(const normalizer *step, const text_buffer *out)
{
    if (!step->escape) return out->bytes > 0 && out->data[out->bytes - 1] == ' ';
    return out->bytes >= 3 && memcmp(out->data + out->bytes - 3, TEXT_META, 3) == 0;
}

/* One chunk without the spaces that `after_space` makes superfluous. Returns whether it ends in a
 * space, as the next one must know. */
static int add_chunk(const normalizer *step, chunk c, size_t origin, int after_space,
                     text_buffer *out)
{
    while (after_space && c.bytes > 0 && c.text[0] == ' ') c.text++, c.bytes--;
    if (c.bytes == 0) return after_space;
    for (size_t at = 0, length = 0; at < c.bytes; at += length) {
        const uint32_t code = utf8_read(c.text + at, &length);
        if (code == ' ')
            add_space(step, out, origin);
        else
            locus_text_buffer_add(out, code, origin);
    }
    return c.text[c.bytes - 1] == ' ' && !step->extra_spaces;
}

void locus_normalize_sentencepiece(const normalizer *step, const text_buffer *in, text_buffer *out)
{
    size_t at = 0;
    if (!step->extra_spaces) { /* leading spaces go */
        while (at < in->bytes) {
            const chunk c = next_chunk(step, in, at);
            if (!is_space(&c)) break;
            at += c.used;
        }
    }
    if (at >= in->bytes) return;
    if (step->dummy_prefix && !step->suffix) add_space(step, out, text_origin(in, at));
    int after_space = !step->extra_spaces;
    while (at < in->bytes) {
        const chunk c = next_chunk(step, in, at);
        after_space = add_chunk(step, c, text_origin(in, at), after_space, out);
        at += c.used;
    }
    while (!step->extra_spaces && ends_with_space(step, out)) out->bytes -= step->escape ? 3 : 1;
    if (step->dummy_prefix && step->suffix) add_space(step, out, text_origin(in, in->bytes - 1));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The character map as `tokenizers` applies it: to each grapheme of less than 6 bytes as a whole
 * (the shortest key that begins it decides, the rest of the grapheme is lost), else to each of
 * its characters. This is not what SentencePiece does, and models were trained with either. */
#include "text/tokenizer.h"

enum { SHORT_GRAPHEME = 6 };

/* What earlier characters of a grapheme say about the next one. */
typedef struct cluster {
    int prepended;    /* the last character begins a grapheme with what follows (GB9b)         */
    int conjunct;     /* 1: a consonant and what may follow it, 2: with a linker in it (GB9c)  */
    int pictographic; /* 1: a pictograph and extensions, 2: and then a joiner (GB11)          */
} cluster;

static void cluster_add(cluster *c, uint32_t code, uint32_t class)
{
    const int extends = (class & UNICODE_EXTEND) != 0;
    c->prepended = !extends && (class & UNICODE_PREPEND) != 0;
    if ((class & UNICODE_CONSONANT) != 0)
        c->conjunct = 1;
    else if (c->conjunct > 0 && (class & UNICODE_LINKER) != 0)
        c->conjunct = 2;
    else if ((class & UNICODE_CONJUNCT_EXTEND) == 0)
        c->conjunct = 0;
    if ((class & UNICODE_PICTOGRAPHIC) != 0)
        c->pictographic = 1;
    else if (c->pictographic > 0 && extends)
        c->pictographic = code == 0x200D ? 2 : 1;
    else
        c->pictographic = 0;
}

static int cluster_takes(const cluster *c, uint32_t class)
{
    if ((class & UNICODE_GRAPHEME_CONTROL) != 0) return 0;
    return (class & UNICODE_EXTEND) != 0 || c->prepended ||
           (c->conjunct == 2 && (class & UNICODE_CONSONANT) != 0) ||
           (c->pictographic == 2 && (class & UNICODE_PICTOGRAPHIC) != 0);
}

/* Where the grapheme at `at` ends (Unicode Standard Annex 29). Only those of less than 6 bytes
 * must be told exactly: Hangul syllables and flags are longer, and a longer one is read by
 * characters. */
static size_t grapheme_end(const unicode *u, const text_buffer *in, size_t at)
{
    cluster c = {0, 0, 0};
    size_t length = 0;
    uint32_t code = utf8_read(in->data + at, &length);
    size_t end = at + length;
    if (code == '\r' && end < in->bytes && in->data[end] == '\n') return end + 1;
    uint32_t class = unicode_class(u, code);
    if ((class & UNICODE_GRAPHEME_CONTROL) != 0) return end;
    cluster_add(&c, code, class);
    while (end < in->bytes) {
        code = utf8_read(in->data + end, &length);
        class = unicode_class(u, code);
        if (!cluster_takes(&c, class)) break;
        cluster_add(&c, code, class);
        end += length;
    }
    return end;
}

typedef struct pass {
    rewrite out;
    uint32_t held; /* the last character, whose change is not final */
    int64_t change;
    int holds;
} pass;

static void add(pass *p, uint32_t code, int64_t change)
{
    if (p->holds) locus_rewrite_add(&p->out, p->held, p->change);
    p->held = code;
    p->change = change;
    p->holds = 1;
}

static size_t count_characters(const char *text, size_t bytes)
{
    size_t count = 0;
    for (size_t i = 0; i < bytes; i++) count += !utf8_continues(text[i]);
    return count;
}

/* `old_count` characters become `text`: added ones come last, removed ones count for the last
 * character that there is. */
static void substitute(pass *p, size_t old_count, const char *text, size_t bytes)
{
    const size_t new_count = count_characters(text, bytes);
    size_t index = 0;
    for (size_t at = 0, length = 0; at < bytes; at += length)
        add(p, utf8_read(text + at, &length), index++ >= old_count);
    if (new_count < old_count && p->holds) p->change -= (int64_t)(old_count - new_count);
}

void locus_normalize_charsmap(const unicode *u, const charsmap *map, const text_buffer *in,
                              text_buffer *out)
{
    pass p = {.out = {.in = in, .out = out}};
    size_t matched = 0, bytes = 0;
    for (size_t at = 0; at < in->bytes;) {
        const size_t end = grapheme_end(u, in, at);
        const char *found =
            end - at < SHORT_GRAPHEME
                ? locus_charsmap_find(map, in->data + at, end - at, 0, &matched, &bytes)
                : NULL;
        if (found != NULL) {
            substitute(&p, count_characters(in->data + at, end - at), found, bytes);
            at = end;
            continue;
        }
        for (size_t length = 0; at < end; at += length) {
            const uint32_t code = utf8_read(in->data + at, &length);
            found = locus_charsmap_find(map, in->data + at, length, 0, &matched, &bytes);
            if (found != NULL)
                substitute(&p, 1, found, bytes);
            else
                add(&p, code, 0);
        }
    }
    if (p.holds) locus_rewrite_add(&p.out, p.held, p.change);
}

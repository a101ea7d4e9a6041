/* SPDX-License-Identifier: Apache-2.0 */
/* BERT's normalizer in one pass: control characters go, white space becomes a space, CJK
 * ideographs get spaces around them, accents are dropped (decompose, then drop nonspacing
 * marks), letters become lower case. */
#include "core/error.h"
#include "text/tokenizer.h"

typedef struct pass {
    const unicode *u;
    const normalizer *step;
    text_buffer *out;
} pass;

static void add_lower(const pass *p, uint32_t code, size_t origin)
{
    uint32_t codes[2] = {code, 0};
    const size_t count = p->step->lower ? locus_unicode_lower(code, codes) : 1;
    for (size_t i = 0; i < count; i++) locus_text_buffer_add(p->out, codes[i], origin);
}

/* Right where the text has no marks of its own: there is nothing to put in order. */
static void add_without_accents(const pass *p, uint32_t code, size_t origin)
{
    uint32_t parts[UNICODE_MAX_EXPANSION];
    const size_t count = locus_unicode_decompose(p->u, UNICODE_NFD, code, parts);
    for (size_t i = 0; i < count; i++)
        if (parts[i] < 0x80 || (unicode_class(p->u, parts[i]) & UNICODE_MARK_NONSPACING) == 0)
            add_lower(p, parts[i], origin);
}

static void add_character(const pass *p, uint32_t code, size_t origin)
{
    const uint32_t class = unicode_class(p->u, code);
    if (p->step->clean && (class & UNICODE_REMOVED) != 0) return;
    if (p->step->clean && (class & UNICODE_BERT_SPACE) != 0) code = ' ';
    const int spaced = p->step->chinese && (class & UNICODE_CJK) != 0;
    if (spaced) locus_text_buffer_add(p->out, ' ', origin);
    if (p->step->accents)
        add_without_accents(p, code, origin);
    else
        add_lower(p, code, origin);
    if (spaced) locus_text_buffer_add(p->out, ' ', origin);
}

static void run(const pass *p, const text_buffer *in)
{
    for (size_t at = 0, length = 0; at < in->bytes; at += length) {
        const unsigned byte = (unsigned char)in->data[at];
        if (byte >= ' ' && byte < 0x7F) { /* printable ASCII */
            length = 1;
            locus_text_buffer_add(p->out, p->step->lower && byte - 'A' < 26u ? byte + 32 : byte,
                                  text_origin(in, at));
        } else {
            add_character(p, utf8_read(in->data + at, &length), text_origin(in, at));
        }
    }
}

static int has_marks(const unicode *u, const text_buffer *in)
{
    for (size_t at = 0, length = 0; at < in->bytes; at += length) {
        const uint32_t code = utf8_read(in->data + at, &length);
        if (code >= 0x300 && locus_unicode_ccc(u, UNICODE_NFD, code) != 0) return 1;
    }
    return 0;
}

static void drop_nonspacing(const unicode *u, const text_buffer *in, text_buffer *out)
{
    for (size_t at = 0, length = 0; at < in->bytes; at += length) {
        const uint32_t code = utf8_read(in->data + at, &length);
        if (code < 0x80 || (unicode_class(u, code) & UNICODE_MARK_NONSPACING) == 0)
            locus_text_buffer_add(out, code, text_origin(in, at));
    }
}

locus_status locus_normalize_bert(const unicode *u, const normalizer *step, const text_buffer *in,
                                  text_buffer *out, locus_encoding *e, locus_error *error)
{
    text_buffer *clean = &e->buffer[2], *decomposed = &e->buffer[3];
    if (!step->accents || !has_marks(u, in)) {
        run(&(pass){.u = u, .step = step, .out = out}, in);
        return LOCUS_OK;
    }
    /* Step by step: canonical ordering moves marks, and origins stay where they are. */
    normalizer first = *step, last = {.kind = NORMALIZE_BERT, .lower = step->lower};
    first.accents = first.lower = 0;
    locus_text_buffer_clear(clean, text_origin(in, 0));
    run(&(pass){.u = u, .step = &first, .out = clean}, in);
    locus_text_buffer_clear(decomposed, text_origin(in, 0));
    LOCUS_TRY(locus_normalize_unicode(u, UNICODE_NFD, clean, decomposed, e, error));
    if (clean->failed || decomposed->failed) return locus_text_no_memory(error);
    locus_text_buffer_clear(clean, text_origin(in, 0));
    drop_nonspacing(u, decomposed, clean);
    if (clean->failed) return locus_text_no_memory(error);
    run(&(pass){.u = u, .step = &last, .out = out}, clean);
    return LOCUS_OK;
}

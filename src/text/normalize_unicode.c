/* SPDX-License-Identifier: Apache-2.0 */
/* Normalization forms (Unicode Standard Annex 15): decompose, put marks in canonical order,
 * compose again. Each character carries how it changes the text (locus_rewrite_add), because that
 * decides which offsets `tokenizers` reports. */
#include <string.h>

#include "core/error.h"
#include "text/tokenizer.h"

typedef struct letter {
    uint32_t code;
    uint8_t ccc;
    int32_t change;
} letter;

typedef struct former {
    const unicode *u;
    unicode_form form;
    rewrite out;
    locus_encoding *e;
    text_array *marks; /* letters after a starter, waiting for their order */
    letter composee;   /* what later letters compose with                  */
    int has_composee;
    text_array *behind; /* letters behind the composee                      */
    int last_ccc;       /* of the last of them, -1: none                    */
    int failed;
} former;

static void push(former *f, text_array *list, letter l)
{
    if (!locus_text_array_reserve(list, f->e->allocator, list->count + 1, sizeof l)) {
        f->failed = 1;
        return;
    }
    ((letter *)list->data)[list->count++] = l;
}

static void emit(former *f, letter l) { locus_rewrite_add(&f->out, l.code, l.change); }

static void flush_behind(former *f)
{
    const letter *list = f->behind->data;
    for (size_t i = 0; i < f->behind->count; i++) emit(f, list[i]);
    f->behind->count = 0;
    f->last_ccc = -1;
}

/* ---- composition ---- */

static int compose(former *f, letter l)
{
    const uint32_t composed = locus_unicode_compose(f->composee.code, l.code);
    if (composed == 0) return 0;
    f->composee.code = composed;
    f->composee.change += l.change - 1;
    return 1;
}

static void take(former *f, letter l)
{
    if (f->form == UNICODE_NFD || f->form == UNICODE_NFKD || f->form == UNICODE_PY_NFKD) {
        emit(f, l);
        return;
    }
    if (!f->has_composee) {
        if (l.ccc != 0) {
            emit(f, l);
            return;
        }
        f->composee = l;
        f->has_composee = 1;
        return;
    }
    const int blocked = f->last_ccc >= 0 && f->last_ccc >= l.ccc;
    if (!blocked && compose(f, l)) return;
    if (l.ccc == 0) {
        emit(f, f->composee);
        flush_behind(f);
        f->composee = l;
        return;
    }
    push(f, f->behind, l);
    f->last_ccc = l.ccc;
}

/* ---- canonical order ---- */

/* Stable by class: counted, so that a million marks take no longer than a million letters. */
static void flush_marks(former *f)
{
    const letter *list = f->marks->data;
    const size_t count = f->marks->count;
    if (count < 2) {
        if (count == 1) take(f, list[0]);
        f->marks->count = 0;
        return;
    }
    uint8_t present[256] = {0};
    for (size_t i = 0; i < count; i++) present[list[i].ccc] = 1;
    for (unsigned ccc = 1; ccc < 256; ccc++) {
        if (!present[ccc]) continue;
        for (size_t i = 0; i < count; i++)
            if (list[i].ccc == ccc) take(f, list[i]);
    }
    f->marks->count = 0;
}

static void decompose(former *f, uint32_t code)
{
    uint32_t parts[UNICODE_MAX_EXPANSION];
    const size_t count = locus_unicode_decompose(f->u, f->form, code, parts);
    for (size_t i = 0; i < count; i++) {
        const letter l = {.code = parts[i],
                          .ccc = (uint8_t)locus_unicode_ccc(f->u, f->form, parts[i]),
                          .change = i > 0};
        if (l.ccc != 0) {
            push(f, f->marks, l);
            continue;
        }
        flush_marks(f);
        take(f, l);
    }
}

static int is_ascii(const text_buffer *in)
{
    for (size_t i = 0; i < in->bytes; i++)
        if ((unsigned char)in->data[i] >= 0x80) return 0;
    return 1;
}

locus_status locus_normalize_unicode(const unicode *u, unicode_form form, const text_buffer *in,
                                     text_buffer *out, locus_encoding *e, locus_error *error)
{
    former f = {.u = u,
                .form = form,
                .out = {.in = in, .out = out},
                .e = e,
                .marks = &e->nodes,
                .behind = &e->heap,
                .last_ccc = -1};
    if (is_ascii(in)) {
        locus_text_buffer_copy(out, in, 0, in->bytes);
        return LOCUS_OK;
    }
    f.marks->count = f.behind->count = 0;
    for (size_t at = 0, length = 0; at < in->bytes; at += length)
        decompose(&f, utf8_read(in->data + at, &length));
    flush_marks(&f);
    if (f.has_composee) emit(&f, f.composee);
    flush_behind(&f);
    return f.failed ? locus_text_no_memory(error) : LOCUS_OK;
}

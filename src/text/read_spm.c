/* SPDX-License-Identifier: Apache-2.0 */
/* SentencePiece models: protocol buffers, read by hand. Only the fields that change ids are
 * looked at; lengths are checked before anything is believed. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "text/read.h"

/* ---- the wire format ---- */

typedef struct wire {
    const char *text;
    size_t at, end;
    locus_error *error;
} wire;

typedef struct field {
    uint64_t number, value; /* value: of VARINT and FIXED32 */
    unsigned type;
    size_t from, bytes; /* of LENGTH */
} field;

enum wire_type { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5 };

static locus_status broken(const wire *w, const char *what)
{
    return locus_fail(w->error, LOCUS_ERR_FORMAT,
                      "byte %zu: found %s, expected a SentencePiece model", w->at, what);
}

static locus_status read_varint(wire *w, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (w->at >= w->end) return broken(w, "the end of the data inside a number");
        const unsigned char byte = (unsigned char)w->text[w->at++];
        *value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) return LOCUS_OK;
    }
    return broken(w, "a number of more than ten bytes");
}

static locus_status next_field(wire *w, field *f)
{
    uint64_t head = 0, bytes = 0;
    *f = (field){.number = 0};
    LOCUS_TRY(read_varint(w, &head));
    f->number = head >> 3;
    f->type = (unsigned)(head & 7);
    if (f->number == 0) return broken(w, "field number 0");
    if (f->type == VARINT) return read_varint(w, &f->value);
    if (f->type == LENGTH) LOCUS_TRY(read_varint(w, &bytes));
    if (f->type == FIXED64) bytes = 8;
    if (f->type == FIXED32) bytes = 4;
    if (f->type != LENGTH && f->type != FIXED64 && f->type != FIXED32)
        return broken(w, "an unknown wire type");
    if (bytes > w->end - w->at) return broken(w, "a field that is longer than the data");
    f->from = w->at;
    f->bytes = (size_t)bytes;
    w->at += f->bytes;
    for (size_t i = 4; f->type == FIXED32 && i-- > 0;)
        f->value = f->value << 8 | (unsigned char)w->text[f->from + i];
    return LOCUS_OK;
}

static wire inside(const wire *w, const field *f)
{
    return (wire){.text = w->text, .at = f->from, .end = f->from + f->bytes, .error = w->error};
}

/* ---- the messages ---- */

typedef struct spm {
    locus_tokenizer *t;
    model *m;
    normalizer *step;
    size_t pieces; /* so far */
    uint64_t model_type;
    field map;
    locus_error *error;
} spm;

enum spm_type { TYPE_UNIGRAM = 1, TYPE_BPE = 2 };

static locus_status take_piece(spm *s, wire w)
{
    field f = {.number = 0}, text = {.number = 0};
    float score = 0;
    uint64_t type = PIECE_NORMAL;
    while (w.at < w.end) {
        LOCUS_TRY(next_field(&w, &f));
        if (f.number == 1 && f.type == LENGTH) text = f;
        if (f.number == 2 && f.type == FIXED32) {
            const uint32_t bits = (uint32_t)f.value;
            memcpy(&score, &bits, sizeof score);
        }
        if (f.number == 3 && f.type == VARINT) type = f.value;
    }
    if (type < PIECE_NORMAL || type > PIECE_BYTE)
        return locus_fail(s->error, LOCUS_ERR_FORMAT,
                          "piece %zu: found type %" PRIu64 ", expected 1 to 6", s->pieces, type);
    if (!isfinite(score))
        return locus_fail(s->error, LOCUS_ERR_FORMAT, "piece %zu: found a score that is not finite",
                          s->pieces);
    if (text.bytes == 0)
        return locus_fail(s->error, LOCUS_ERR_FORMAT, "piece %zu: found an empty token", s->pieces);
    LOCUS_TRY(
        locus_read_piece_set(s->t, s->m, s->pieces, w.text + text.from, text.bytes, s->error));
    s->m->scores[s->pieces] = (double)score;
    s->m->types[s->pieces] = (uint8_t)type;
    s->pieces++;
    return LOCUS_OK;
}

static locus_status take_trainer(spm *s, wire w)
{
    field f = {.number = 0};
    while (w.at < w.end) {
        LOCUS_TRY(next_field(&w, &f));
        if (f.type != VARINT) continue;
        if (f.number == 3) s->model_type = f.value;
        if (f.number == 24) s->step->suffix = f.value != 0;
        if (f.number == 35) s->m->byte_fallback = f.value != 0;
    }
    return LOCUS_OK;
}

static locus_status take_normalizer(spm *s, wire w)
{
    field f = {.number = 0};
    while (w.at < w.end) {
        LOCUS_TRY(next_field(&w, &f));
        if (f.number == 2 && f.type == LENGTH) s->map = f;
        if (f.type != VARINT) continue;
        if (f.number == 3) s->step->dummy_prefix = f.value != 0;
        if (f.number == 4) s->step->extra_spaces = f.value == 0;
        if (f.number == 5) s->step->escape = f.value != 0;
    }
    return LOCUS_OK;
}

static locus_status count_pieces(wire w, size_t *count)
{
    field f = {.number = 0};
    *count = 0;
    while (w.at < w.end) {
        LOCUS_TRY(next_field(&w, &f));
        *count += f.number == 1 && f.type == LENGTH;
    }
    return LOCUS_OK;
}

static locus_status take_all(spm *s, wire w)
{
    field f = {.number = 0};
    while (w.at < w.end) {
        LOCUS_TRY(next_field(&w, &f));
        if (f.type != LENGTH) continue;
        if (f.number == 1) LOCUS_TRY(take_piece(s, inside(&w, &f)));
        if (f.number == 2) LOCUS_TRY(take_trainer(s, inside(&w, &f)));
        if (f.number == 3) LOCUS_TRY(take_normalizer(s, inside(&w, &f)));
    }
    return LOCUS_OK;
}

/* ---- what follows from them ---- */

static void find_scores(model *m)
{
    m->min_score = INFINITY;
    for (size_t i = 0; i < m->piece_count; i++) {
        if (m->types[i] != PIECE_NORMAL) continue;
        if (m->scores[i] < m->min_score) m->min_score = m->scores[i];
    }
}

static locus_status find_unknown(model *m, locus_error *error)
{
    m->unk = TEXT_NO_ID;
    for (size_t i = 0; i < m->piece_count; i++) {
        if (m->types[i] != PIECE_UNKNOWN) continue;
        if (m->unk != TEXT_NO_ID)
            return locus_fail(error, LOCUS_ERR_FORMAT,
                              "found two unknown pieces, %u and %zu, expected one", m->unk, i);
        m->unk = (uint32_t)i;
    }
    if (m->unk != TEXT_NO_ID) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_FORMAT, "found no unknown piece, expected one");
}

static locus_status build_symbols(locus_tokenizer *t, const model *m, trie *symbols,
                                  normalizer *step, locus_error *error)
{
    size_t count = 0, duplicate = 0;
    for (size_t i = 0; i < m->piece_count; i++) count += m->types[i] == PIECE_USER;
    step->symbols = NULL;
    if (count == 0) return LOCUS_OK;
    trie_key *keys = locus_allocate(t->allocator, count, sizeof *keys);
    if (keys == NULL) return locus_text_no_memory(error);
    count = 0;
    for (size_t i = 0; i < m->piece_count; i++)
        if (m->types[i] == PIECE_USER)
            keys[count++] = (trie_key){m->pieces[i].text, m->pieces[i].bytes, (uint32_t)i};
    const locus_status status =
        locus_trie_build(symbols, keys, count, &duplicate, t->allocator, error);
    locus_release(t->allocator, keys);
    step->symbols = symbols;
    return status;
}

locus_status locus_read_sentencepiece_text(locus_tokenizer *t, const char *text, size_t bytes,
                                           model *m, charsmap *map, trie *symbols, normalizer *step,
                                           locus_error *error)
{
    spm s = {.t = t, .m = m, .step = step, .model_type = TYPE_UNIGRAM, .error = error};
    const wire w = {.text = text, .end = bytes, .error = error};
    size_t count = 0;
    *step = (normalizer){
        .kind = NORMALIZE_SENTENCEPIECE, .dummy_prefix = 1, .escape = 1, .extra_spaces = 0};
    LOCUS_TRY(count_pieces(w, &count));
    if (count == 0)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "found no pieces, expected a SentencePiece model");
    LOCUS_TRY(locus_read_pieces_new(t, m, count, error));
    m->scores = locus_allocate(t->allocator, count, sizeof *m->scores);
    m->types = locus_allocate(t->allocator, count, sizeof *m->types);
    if (m->scores == NULL || m->types == NULL) return locus_text_no_memory(error);
    LOCUS_TRY(take_all(&s, w));
    if (s.model_type != TYPE_UNIGRAM && s.model_type != TYPE_BPE)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "trainer_spec: found model type %" PRIu64
                          ", expected 1 (unigram) or 2 (BPE)",
                          s.model_type);
    m->kind = s.model_type == TYPE_BPE ? MODEL_BPE : MODEL_UNIGRAM;
    m->by_score = s.model_type == TYPE_BPE;
    m->single = 1;
    find_scores(m);
    LOCUS_TRY(find_unknown(m, error));
    LOCUS_TRY(locus_read_index(t, m, error));
    locus_read_fallback_bytes(m);
    LOCUS_TRY(build_symbols(t, m, symbols, step, error));
    if (s.map.bytes == 0) return LOCUS_OK;
    step->map = map;
    return locus_charsmap_open(map, text + s.map.from, s.map.bytes, &t->arena, error);
}

locus_status locus_read_sentencepiece(const read_files *f, const char *name, model *m,
                                      charsmap *map, trie *symbols, normalizer *step)
{
    char *text = NULL;
    size_t bytes = 0;
    locus_status status = locus_read_whole(f, name, &text, &bytes);
    if (status != LOCUS_OK) return status;
    status = locus_read_sentencepiece_text(f->t, text, bytes, m, map, symbols, step, f->error);
    locus_release(f->t->allocator, text);
    return status == LOCUS_OK ? LOCUS_OK : locus_read_fail_in(f, status, name);
}

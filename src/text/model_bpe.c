/* SPDX-License-Identifier: Apache-2.0 */
/* Byte-pair encoding. A word begins as single characters (or bytes); the best merge of two
 * neighbours is done until none is left. Merges wait in a heap, so a word of n characters takes
 * O(n log n), also when it is a whole book. */
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "text/tokenizer.h"

#define NO_SYMBOL UINT32_MAX

typedef struct symbol {
    uint32_t id;
    uint32_t from, bytes; /* bytes 0: merged into the one before */
    uint32_t previous, next;
} symbol;

/* The smallest key first: rank in the high half, position in the low one. */
typedef struct candidate {
    uint64_t key;
    uint32_t check; /* the result's id, or the bytes of both (by_score) */
} candidate;

typedef struct work {
    const model *m;
    const char *text;
    symbol *symbols;
    size_t count;
    candidate *heap;
    size_t heap_count;
    locus_encoding *e; /* owns the heap */
    int failed;        /* no memory for the heap */
} work;

/* ---- merges ---- */

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    return x ^ x >> 32;
}

static size_t slot_of(const model *m, uint32_t left, uint32_t right)
{
    const uint64_t pair = (uint64_t)left << 32 | right;
    return (size_t)(mix(pair ^ m->merge_seed) & (m->merge_slots - 1));
}

static const bpe_merge *find_merge(const model *m, uint32_t left, uint32_t right)
{
    for (size_t slot = slot_of(m, left, right);; slot = (slot + 1) & (m->merge_slots - 1)) {
        const bpe_merge *merge = m->merges + slot;
        if (merge->rank == UINT32_MAX) return NULL;
        if (merge->left == left && merge->right == right) return merge;
    }
}

locus_status locus_bpe_add_merges(model *m, const bpe_merge *merges, size_t count,
                                  const locus_allocator *allocator, locus_error *error)
{
    m->merge_slots = 16;
    while (m->merge_slots < 2 * count + 2) m->merge_slots *= 2;
    m->merges = locus_allocate(allocator, m->merge_slots, sizeof *m->merges);
    if (m->merges == NULL) return locus_text_no_memory(error);
    for (size_t i = 0; i < m->merge_slots; i++) m->merges[i].rank = UINT32_MAX;
    /* The address of the table: nothing a file's author can know. */
    m->merge_seed = mix((uint64_t)(uintptr_t)m->merges ^ 0x9E3779B97F4A7C15u);
    for (size_t i = 0; i < count; i++) {
        size_t slot = slot_of(m, merges[i].left, merges[i].right);
        while (m->merges[slot].rank != UINT32_MAX &&
               (m->merges[slot].left != merges[i].left || m->merges[slot].right != merges[i].right))
            slot = (slot + 1) & (m->merge_slots - 1);
        m->merges[slot] = merges[i]; /* of two equal ones the later stays, as in `tokenizers` */
    }
    return LOCUS_OK;
}

/* ---- heap ---- */

static void heap_push(work *w, candidate entry)
{
    text_array *array = &w->e->heap;
    array->count = w->heap_count;
    if (!locus_text_array_reserve(array, w->e->allocator, w->heap_count + 1, sizeof entry)) {
        w->failed = 1;
        return;
    }
    w->heap = array->data;
    size_t at = w->heap_count++;
    while (at > 0) {
        const size_t parent = (at - 1) / 2;
        if (w->heap[parent].key <= entry.key) break;
        w->heap[at] = w->heap[parent];
        at = parent;
    }
    w->heap[at] = entry;
}

static candidate heap_pop(work *w)
{
    const candidate top = w->heap[0], last = w->heap[--w->heap_count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= w->heap_count) break;
        if (child + 1 < w->heap_count && w->heap[child + 1].key < w->heap[child].key) child++;
        if (last.key <= w->heap[child].key) break;
        w->heap[at] = w->heap[child];
        at = child;
    }
    w->heap[at] = last;
    return top;
}

/* A float as a number that ascends when the float descends. */
static uint32_t descending(double score)
{
    const float value = (float)score;
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    return (bits & 0x80000000u) != 0 ? bits : ~(bits | 0x80000000u);
}

/* The id of a piece that SentencePiece may form by merging, or TEXT_NO_ID. */
static uint32_t find_piece(const model *m, const char *text, size_t bytes)
{
    const uint32_t id = locus_trie_find(&m->index, text, bytes);
    if (id == TRIE_NONE) return TEXT_NO_ID;
    const uint8_t type = m->types[id];
    return type == PIECE_NORMAL || type == PIECE_USER || type == PIECE_UNUSED ? id : TEXT_NO_ID;
}

static void consider_score(work *w, uint32_t left, const symbol *a, const symbol *b)
{
    const model *m = w->m;
    const uint32_t bytes = a->bytes + b->bytes;
    const uint32_t id = find_piece(m, w->text + a->from, bytes);
    if (id == TEXT_NO_ID) return;
    heap_push(w, (candidate){(uint64_t)descending(m->scores[id]) << 32 | left, bytes});
}

static void consider(work *w, uint32_t left)
{
    if (left == NO_SYMBOL || w->symbols[left].next == NO_SYMBOL) return;
    const symbol *a = w->symbols + left, *b = w->symbols + a->next;
    if (w->m->by_score) {
        consider_score(w, left, a, b);
        return;
    }
    const bpe_merge *merge = find_merge(w->m, a->id, b->id);
    if (merge != NULL) heap_push(w, (candidate){(uint64_t)merge->rank << 32 | left, merge->result});
}

/* Is the candidate still there? Then *id is what the two become. */
static int still_there(const work *w, const symbol *a, const candidate *top, uint32_t *id)
{
    if (a->bytes == 0 || a->next == NO_SYMBOL) return 0;
    const symbol *b = w->symbols + a->next;
    *id = top->check;
    if (w->m->by_score) return a->bytes + b->bytes == top->check;
    const bpe_merge *merge = find_merge(w->m, a->id, b->id);
    return merge != NULL && merge->result == top->check;
}

static void merge_all(work *w)
{
    for (uint32_t i = 0; i + 1 < w->count; i++) consider(w, i);
    while (w->heap_count > 0) {
        const candidate top = heap_pop(w);
        const uint32_t at = (uint32_t)top.key;
        symbol *a = w->symbols + at;
        uint32_t id = 0;
        if (!still_there(w, a, &top, &id)) continue;
        symbol *b = w->symbols + a->next;
        a->id = id;
        a->bytes += b->bytes;
        b->bytes = 0;
        a->next = b->next;
        if (a->next != NO_SYMBOL) w->symbols[a->next].previous = at;
        consider(w, a->previous);
        consider(w, at);
    }
}

/* ---- the first symbols of a word ---- */

static void add_symbol(work *w, uint32_t id, size_t from, size_t bytes)
{
    const uint32_t at = (uint32_t)w->count++;
    w->symbols[at] = (symbol){.id = id,
                              .from = (uint32_t)from,
                              .bytes = (uint32_t)bytes,
                              .previous = at == 0 ? NO_SYMBOL : at - 1,
                              .next = NO_SYMBOL};
    if (at > 0) w->symbols[at - 1].next = at;
}

/* The piece of one character, with the suffix that the last of a word may have. */
static uint32_t find_character(const model *m, const char *text, size_t bytes, int is_last)
{
    char joined[4 + 64];
    if (!is_last || m->word_suffix.bytes == 0) return locus_trie_find(&m->index, text, bytes);
    memcpy(joined, text, bytes);
    memcpy(joined + bytes, m->word_suffix.text, m->word_suffix.bytes);
    return locus_trie_find(&m->index, joined, bytes + m->word_suffix.bytes);
}

static int all_bytes_known(const model *m, const char *text, size_t bytes)
{
    if (!m->byte_fallback) return 0;
    for (size_t i = 0; i < bytes; i++)
        if (m->byte_ids[(unsigned char)text[i]] == TEXT_NO_ID) return 0;
    return 1;
}

/* Characters without a piece are bytes, or unknown (neighbours fused into one), or dropped where
 * the model has no unknown token. */
static void begin_characters(work *w, size_t from, size_t to)
{
    const model *m = w->m;
    size_t unknown = 0; /* bytes before `at` that wait to become an unknown symbol */
    for (size_t at = from; at < to;) {
        const size_t bytes = utf8_length((unsigned char)w->text[at]);
        const uint32_t id = find_character(m, w->text + at, bytes, at + bytes == to);
        if (id != TRIE_NONE) {
            if (unknown > 0) add_symbol(w, m->unk, at - unknown, unknown);
            unknown = 0;
            add_symbol(w, id, at, bytes);
        } else if (all_bytes_known(m, w->text + at, bytes)) {
            for (size_t i = 0; i < bytes; i++)
                add_symbol(w, m->byte_ids[(unsigned char)w->text[at + i]], at + i, 1);
        } else if (m->unk != TEXT_NO_ID) {
            if (unknown > 0 && !m->fuse_unk) {
                add_symbol(w, m->unk, at - unknown, unknown);
                unknown = 0;
            }
            unknown += bytes;
        }
        at += bytes;
    }
    if (unknown > 0) add_symbol(w, m->unk, to - unknown, unknown);
}

static void begin_bytes(work *w, size_t from, size_t to)
{
    for (size_t at = from; at < to; at++) {
        const uint32_t id = w->m->byte_ids[(unsigned char)w->text[at]];
        if (id != TEXT_NO_ID)
            add_symbol(w, id, at, 1);
        else if (w->m->unk != TEXT_NO_ID)
            add_symbol(w, w->m->unk, at, 1);
    }
}

/* SentencePiece: characters whatever they are; ids come at the end. */
static void begin_sentencepiece(work *w, size_t from, size_t to)
{
    for (size_t at = from; at < to;) {
        const size_t bytes = utf8_length((unsigned char)w->text[at]);
        add_symbol(w, TEXT_NO_ID, at, bytes);
        at += bytes;
    }
}

/* ---- results ---- */

static int add_piece(locus_encoding *e, uint32_t id, size_t from, size_t bytes)
{
    text_array *pieces = &e->pieces;
    if (!locus_text_array_reserve(pieces, e->allocator, pieces->count + 1, sizeof(model_piece)))
        return 0;
    ((model_piece *)pieces->data)[pieces->count++] =
        (model_piece){id, (uint32_t)from, (uint32_t)(from + bytes)};
    return 1;
}

/* SentencePiece gives unknown characters as bytes, or runs of them as one piece. */
static int add_by_text(const work *w, const symbol *s, locus_encoding *e)
{
    const model *m = w->m;
    const uint32_t id = find_piece(m, w->text + s->from, s->bytes);
    if (id != TEXT_NO_ID) return add_piece(e, id, s->from, s->bytes);
    if (all_bytes_known(m, w->text + s->from, s->bytes)) {
        for (size_t i = 0; i < s->bytes; i++)
            if (!add_piece(e, m->byte_ids[(unsigned char)w->text[s->from + i]], s->from, s->bytes))
                return 0;
        return 1;
    }
    model_piece *last = e->pieces.data;
    if (e->pieces.count > 0) {
        last += e->pieces.count - 1;
        if (last->id == m->unk && last->to == s->from) {
            last->to += s->bytes;
            return 1;
        }
    }
    return add_piece(e, m->unk, s->from, s->bytes);
}

static int collect(const work *w, locus_encoding *e)
{
    for (uint32_t i = 0; i < w->count; i++) {
        const symbol *s = w->symbols + i;
        if (s->bytes == 0) continue;
        const int good =
            w->m->by_score ? add_by_text(w, s, e) : add_piece(e, s->id, s->from, s->bytes);
        if (!good) return 0;
    }
    return 1;
}

locus_status locus_bpe_pieces(const model *m, const char *text, size_t from, size_t to,
                              locus_encoding *e, locus_error *error)
{
    const size_t most = to - from;
    if (m->ignore_merges) { /* `continuing` holds byte-level pieces as bytes */
        const trie *whole_words = m->byte_level ? &m->continuing : &m->index;
        const uint32_t whole = locus_trie_find(whole_words, text + from, most);
        if (whole != TRIE_NONE)
            return add_piece(e, whole, from, most) ? LOCUS_OK : locus_text_no_memory(error);
    }
    e->nodes.count = 0;
    if (!locus_text_array_reserve(&e->nodes, e->allocator, most, sizeof(symbol)))
        return locus_text_no_memory(error);
    work w = {.m = m, .text = text, .symbols = e->nodes.data, .heap = e->heap.data, .e = e};
    if (m->by_score)
        begin_sentencepiece(&w, from, to);
    else if (m->byte_level)
        begin_bytes(&w, from, to);
    else
        begin_characters(&w, from, to);
    merge_all(&w);
    return !w.failed && collect(&w, e) ? LOCUS_OK : locus_text_no_memory(error);
}

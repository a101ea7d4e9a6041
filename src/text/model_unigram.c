/* SPDX-License-Identifier: Apache-2.0 */
/* Unigram: the segmentation whose pieces have the largest sum of scores (Viterbi), in one pass
 * over the text. `tokenizers` adds in double, SentencePiece (0.2) in float. */
#include <string.h>

#include "core/error.h"
#include "text/tokenizer.h"

#define UNKNOWN_PENALTY 10.0
#define NOWHERE UINT32_MAX

/* The best segmentation that ends at a byte. */
typedef struct node {
    double score;
    uint32_t id, start;
} node;

static double sum(const model *m, double a, double b)
{
    return m->single ? (double)(float)(a + b) : a + b;
}

static void offer(node *target, double score, uint32_t id, size_t start)
{
    if (target->start != NOWHERE && !(score > target->score)) return;
    target->score = score;
    target->id = id;
    target->start = (uint32_t)start;
}

/* Pieces of these types are never found in a text. */
static int hidden(const model *m, uint32_t id)
{
    return m->single && m->types[id] != PIECE_NORMAL && m->types[id] != PIECE_USER;
}

static double unknown_score(const model *m)
{
    if (m->single) return (double)((float)m->min_score - (float)UNKNOWN_PENALTY);
    return m->min_score - UNKNOWN_PENALTY;
}

/* Fill nodes[0 .. bytes]; 0: a character has no piece and the model no unknown one. */
static int search(const model *m, const char *text, size_t bytes, node *nodes)
{
    const double unknown = unknown_score(m);
    for (size_t i = 0; i <= bytes; i++) nodes[i] = (node){0, 0, NOWHERE};
    for (size_t start = 0; start < bytes;) {
        const size_t width = utf8_length((unsigned char)text[start]);
        const double here = nodes[start].score;
        int single_found = 0;
        uint32_t at = 0;
        for (size_t end = start; end < bytes;) {
            at = trie_child(&m->index, at, (unsigned char)text[end++]);
            if (at == TRIE_NONE) break;
            const uint32_t id = m->index.value[at];
            if (id == TRIE_NONE || hidden(m, id)) continue;
            offer(nodes + end, sum(m, m->scores[id], here), id, start);
            if (end - start == width) single_found = 1;
        }
        if (!single_found) {
            if (m->unk == TEXT_NO_ID) return 0;
            offer(nodes + start + width, sum(m, unknown, here), m->unk, start);
        }
        start += width;
    }
    return 1;
}

static int add_piece(locus_encoding *e, uint32_t id, size_t from, size_t to)
{
    text_array *pieces = &e->pieces;
    if (!locus_text_array_reserve(pieces, e->allocator, pieces->count + 1, sizeof(model_piece)))
        return 0;
    ((model_piece *)pieces->data)[pieces->count++] =
        (model_piece){id, (uint32_t)from, (uint32_t)to};
    return 1;
}

static int all_bytes_known(const model *m, const char *text, size_t bytes)
{
    if (!m->byte_fallback) return 0;
    for (size_t i = 0; i < bytes; i++)
        if (m->byte_ids[(unsigned char)text[i]] == TEXT_NO_ID) return 0;
    return 1;
}

/* Unknown text, fused: a piece after all, its bytes, or the unknown piece. */
static int add_unknown(const model *m, const char *text, size_t from, size_t to, locus_encoding *e)
{
    const uint32_t known = locus_trie_find(&m->index, text + from, to - from);
    if (known != TRIE_NONE) return add_piece(e, known, from, to);
    if (!all_bytes_known(m, text + from, to - from)) return add_piece(e, m->unk, from, to);
    for (size_t i = from; i < to; i++)
        if (!add_piece(e, m->byte_ids[(unsigned char)text[i]], from, to)) return 0;
    return 1;
}

/* Turn the links round, so that start tells where the piece that begins there ends. */
static void reverse(node *nodes, size_t bytes)
{
    for (size_t end = bytes; end > 0;) {
        const size_t start = nodes[end].start;
        const uint32_t id = nodes[end].id;
        nodes[start].score = (double)end;
        nodes[end].id = id;
        end = start;
    }
}

locus_status locus_unigram_pieces(const model *m, const char *text, size_t from, size_t to,
                                  locus_encoding *e, locus_error *error)
{
    const size_t bytes = to - from;
    e->nodes.count = 0;
    if (!locus_text_array_reserve(&e->nodes, e->allocator, bytes + 1, sizeof(node)))
        return locus_text_no_memory(error);
    node *nodes = e->nodes.data;
    if (!search(m, text + from, bytes, nodes))
        return locus_fail(error, LOCUS_ERR_RANGE,
                          "found a character without a token, and the tokenizer has no unk_id");
    reverse(nodes, bytes);
    size_t unknown = SIZE_MAX; /* where a run of unknown pieces began */
    int good = 1;
    for (size_t start = 0; start < bytes && good;) {
        const size_t end = (size_t)nodes[start].score;
        const int is_unknown = nodes[end].id == m->unk;
        if (unknown != SIZE_MAX && !is_unknown) {
            good = add_unknown(m, text, from + unknown, from + start, e);
            unknown = SIZE_MAX;
        }
        if (is_unknown && unknown == SIZE_MAX) unknown = start;
        if (!is_unknown && good) good = add_piece(e, nodes[end].id, from + start, from + end);
        start = end;
    }
    if (good && unknown != SIZE_MAX) good = add_unknown(m, text, from + unknown, to, e);
    return good ? LOCUS_OK : locus_text_no_memory(error);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces to text as SentencePiece joins them, special tokens between them as transformers' own
 * classes write them; and ByT5's bytes. */
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "text/decode.h"

typedef struct joiner {
    const locus_tokenizer *t;
    const model *m;
    decode_list *list;
    text_buffer out; /* bytes only; origins are not used */
    int dummy_prefix, extra_spaces;
    size_t begin;  /* of the run of pieces in `out` */
    int seen;      /* the space in front is gone    */
    char bytes[4]; /* of byte pieces that wait for the rest of a character */
    size_t waiting;
} joiner;

static void add_raw(joiner *j, const char *text, size_t bytes)
{
    if (!locus_text_buffer_reserve(&j->out, j->out.bytes + bytes)) return;
    if (bytes > 0) memcpy(j->out.data + j->out.bytes, text, bytes);
    j->out.bytes += bytes;
}

/* Byte pieces that do not make a character are U+FFFD each. */
static void flush_bytes(joiner *j)
{
    for (size_t i = 0; i < j->waiting; i++) add_raw(j, "\xEF\xBF\xBD", 3);
    j->waiting = 0;
}

static void add_byte(joiner *j, int byte)
{
    j->bytes[j->waiting++] = (char)byte;
    for (;;) {
        const size_t need = utf8_length((unsigned char)j->bytes[0]);
        if (locus_utf8_check(j->bytes, j->waiting) == j->waiting && need == j->waiting) {
            add_raw(j, j->bytes, j->waiting);
            j->waiting = 0;
            return;
        }
        locus_utf8 state = {0, 0, 0};
        int possible = locus_utf8_begin(&state, (unsigned char)j->bytes[0]);
        for (size_t i = 1; i < j->waiting && possible; i++)
            possible = locus_utf8_continue(&state, (unsigned char)j->bytes[i]);
        if (possible) return;
        add_raw(j, "\xEF\xBF\xBD", 3); /* the first cannot begin a character with the others */
        memmove(j->bytes, j->bytes + 1, --j->waiting);
        if (j->waiting == 0) return;
    }
}

static void add_piece(joiner *j, text_string piece)
{
    const uint32_t id = locus_trie_find(&j->m->index, piece.text, piece.bytes);
    const int type = id == TRIE_NONE ? PIECE_NORMAL : j->m->types[id];
    const int byte = type == PIECE_BYTE ? locus_decode_byte_piece(&piece) : -1;
    if (byte >= 0) {
        add_byte(j, byte);
        return;
    }
    flush_bytes(j);
    if (type == PIECE_CONTROL) return;
    if (type == PIECE_UNKNOWN) {
        add_raw(j, " \xE2\x81\x87 ", 5);
        return;
    }
    const int in_front =
        j->out.bytes == j->begin && !j->seen && (j->dummy_prefix || !j->extra_spaces);
    if (in_front && piece.bytes >= 3 && memcmp(piece.text, TEXT_META, 3) == 0) {
        piece.text += 3;
        piece.bytes -= 3;
        if (j->extra_spaces) j->seen = 1;
    }
    for (size_t at = 0; at < piece.bytes;) {
        if (at + 3 <= piece.bytes && memcmp(piece.text + at, TEXT_META, 3) == 0) {
            add_raw(j, " ", 1);
            at += 3;
        } else {
            add_raw(j, piece.text + at++, 1);
        }
    }
}

static int is_special_text(const locus_tokenizer *t, const text_string *text)
{
    const uint32_t id = locus_trie_find(&t->token_index, text->text, text->bytes);
    return id != TRIE_NONE && t->special[id];
}

static void strip(joiner *j)
{
    size_t begin = 0, length = 0;
    const unicode *u = &j->t->unicode;
    while (begin < j->out.bytes &&
           (unicode_class(u, utf8_read(j->out.data + begin, &length)) & UNICODE_PY_SPACE) != 0)
        begin += length;
    while (j->out.bytes > begin &&
           (unicode_class(u, utf8_read_back(j->out.data, j->out.bytes, &length)) &
            UNICODE_PY_SPACE) != 0)
        j->out.bytes -= length;
    if (begin > 0) memmove(j->out.data, j->out.data + begin, j->out.bytes - begin);
    j->out.bytes -= begin;
}

static void finish(joiner *j)
{
    decode_list *list = j->list;
    list->strings.count = 0;
    if (j->out.failed)
        list->failed = 1;
    else
        locus_decode_add(list, j->out.bytes == 0 ? "" : j->out.data, j->out.bytes);
    locus_text_buffer_free(&j->out);
}

void locus_decode_sentencepiece(const locus_tokenizer *t, decode_list *list)
{
    const normalizer *step = t->normalizers + t->normalizer_count - 1;
    const int is_marian = t->decoder_model != NULL;
    joiner j = {.t = t,
                .m = is_marian ? t->decoder_model : &t->model,
                .list = list,
                .out = {.allocator = list->allocator},
                .dummy_prefix = step->dummy_prefix,
                .extra_spaces = step->extra_spaces};
    int after_special = 0;
    for (size_t i = 0; i < list->strings.count; i++) {
        const text_string token = ((text_string *)list->strings.data)[i];
        if (!t->slow || !is_special_text(t, &token)) {
            add_piece(&j, token);
            after_special = 0;
            continue;
        }
        flush_bytes(&j);
        if (!is_marian && !after_special) add_raw(&j, " ", 1);
        add_raw(&j, token.text, token.bytes);
        if (is_marian) add_raw(&j, " ", 1);
        j.begin = j.out.bytes;
        j.seen = 0;
        after_special = 1;
    }
    flush_bytes(&j);
    if (t->slow && strcmp(t->rules, "LlamaTokenizer") != 0) strip(&j);
    finish(&j);
}

/* ByT5: tokens of one byte each, added tokens as they are; what is no UTF-8 goes. */
void locus_decode_bytes(const locus_tokenizer *t, decode_list *list)
{
    joiner j = {.t = t, .list = list, .out = {.allocator = list->allocator}};
    for (size_t i = 0; i < list->strings.count; i++) {
        const text_string token = ((text_string *)list->strings.data)[i];
        size_t length = 0;
        const uint32_t code = token.bytes == 0 ? 0 : utf8_read(token.text, &length);
        const char byte = (char)code;
        if (length == token.bytes && code < 256)
            add_raw(&j, &byte, 1);
        else
            add_raw(&j, token.text, token.bytes);
    }
    finish(&j);
    locus_decode_make_valid(list, 1);
}

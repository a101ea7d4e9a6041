/* SPDX-License-Identifier: Apache-2.0 */
/* Added tokens: found in the text before anything else, the leftmost first and of those the
 * longest. They may eat the white space beside them. */
#include "core/error.h"
#include "core/memory.h"
#include "text/tokenizer.h"

locus_status locus_added_set_build(added_set *set, const locus_tokenizer *t, int normalized,
                                   const text_string *texts, locus_error *error)
{
    size_t duplicate = 0;
    set->count = 0;
    trie_key *keys = locus_allocate(t->allocator, t->added_count, sizeof *keys);
    if (keys == NULL) return locus_text_no_memory(error);
    for (size_t i = 0; i < t->added_count; i++) {
        if (t->added[i].normalized != normalized || texts[i].bytes == 0) continue;
        keys[set->count++] =
            (trie_key){.text = texts[i].text, .bytes = texts[i].bytes, .value = (uint32_t)i};
    }
    const locus_status status =
        locus_trie_build(&set->tokens, keys, set->count, &duplicate, t->allocator, error);
    locus_release(t->allocator, keys);
    return status;
}

static int is_class(const locus_tokenizer *t, const char *text, uint32_t bits)
{
    size_t length = 0;
    return (unicode_class(&t->unicode, utf8_read(text, &length)) & bits) != 0;
}

static int ends_with_class(const locus_tokenizer *t, const char *text, size_t end, uint32_t bits,
                           size_t *length)
{
    return (unicode_class(&t->unicode, utf8_read_back(text, end, length)) & bits) != 0;
}

/* Is the token a word of its own? */
static int stands_alone(const locus_tokenizer *t, const char *text, size_t bytes, size_t begin,
                        size_t end)
{
    size_t length = 0;
    return (begin == 0 || !ends_with_class(t, text, begin, UNICODE_WORD, &length)) &&
           (end == bytes || !is_class(t, text + end, UNICODE_WORD));
}

uint32_t locus_added_next(const locus_tokenizer *t, const added_set *set, const char *text,
                          size_t bytes, size_t at, size_t floor, size_t *begin, size_t *end)
{
    const uint32_t space = t->slow ? UNICODE_PY_SPACE : UNICODE_SPACE;
    size_t length = 0;
    for (; at < bytes; at++) {
        if (set->tokens.root[(unsigned char)text[at]] == TRIE_NONE) continue;
        const uint32_t index = locus_trie_longest(&set->tokens, text + at, bytes - at, &length);
        if (index == TRIE_NONE) continue;
        const added_token *token = t->added + index;
        *begin = at;
        *end = at + length;
        if (token->single_word && !stands_alone(t, text, bytes, *begin, *end)) {
            at = *end - 1;
            continue;
        }
        while (token->lstrip && *begin > floor && ends_with_class(t, text, *begin, space, &length))
            *begin -= length;
        while (token->rstrip && *end < bytes && is_class(t, text + *end, space))
            *end += utf8_length((unsigned char)text[*end]);
        return index;
    }
    return TEXT_NO_ID;
}

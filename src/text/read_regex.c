/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions, and the steps that split by them. */
#include <string.h>

#include "core/error.h"
#include "text/read.h"

const char locus_gpt2_expression[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const char locus_qwen2_expression[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

locus_status locus_read_regex(locus_tokenizer *t, const char *text, size_t bytes, const regex **out,
                              locus_error *error)
{
    regex *r = NULL;
    if (t->expression_count == sizeof t->expressions / sizeof *t->expressions)
        return locus_fail(error, LOCUS_ERR_FORMAT, "found more than %d expressions",
                          3 * TEXT_MAX_STEPS);
    LOCUS_TRY(locus_regex_compile(&r, text, bytes, t->allocator, error));
    *out = t->expressions[t->expression_count++] = r;
    return LOCUS_OK;
}

locus_status locus_read_split(locus_tokenizer *t, const char *expression, locus_error *error)
{
    splitter step = {.kind = SPLIT_REGEX, .behaviour = SPLIT_ISOLATED};
    LOCUS_TRY(locus_read_regex(t, expression, strlen(expression), &step.regex, error));
    t->splitters[t->splitter_count++] = step;
    return LOCUS_OK;
}

locus_status locus_read_settle_letters(locus_tokenizer *t, locus_error *error)
{
    const model *m = &t->model;
    const size_t count = t->splitter_count;
    if (count == 0 || t->splitters[count - 1].kind != SPLIT_LETTERS || m->kind != MODEL_BPE)
        return LOCUS_OK;
    for (size_t i = 0; i < t->normalizer_count; i++)
        if (t->normalizers[i].kind == NORMALIZE_LETTERS) return LOCUS_OK;
    for (size_t i = 0; i + 1 < count; i++)
        if (t->splitters[i].kind == SPLIT_LETTERS) return LOCUS_OK;
    if (m->fuse_unk || m->byte_fallback || m->word_suffix.bytes > 0) return LOCUS_OK;
    t->splitter_count--;
    return locus_read_byte_level(t, &t->model, error);
}

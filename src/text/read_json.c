/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.json as a whole, and its added tokens. */
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "text/class_rules.h"

/* ---- added tokens ---- */

static locus_status read_added_list(locus_tokenizer *t, const json_value *list, locus_error *error)
{
    char found[100];
    if (list == NULL || list->kind == LOCUS_JSON_NULL) return LOCUS_OK;
    if (list->kind != LOCUS_JSON_ARRAY)
        return locus_fail(error, LOCUS_ERR_FORMAT, "added_tokens: found %s, expected an array",
                          locus_tree_describe(found, sizeof found, list));
    LOCUS_TRY(locus_read_added_reserve(t, list->count, error));
    uint32_t next = 0; /* what `tokenizers` gives a token that the model does not know */
    for (size_t i = 0; i < t->model.piece_count; i++) next += t->model.pieces[i].text != NULL;
    for (const json_value *v = list->child; v != NULL; v = v->next) {
        added_token token = {.id = 0};
        const json_value *content = NULL;
        uint64_t id = 0;
        LOCUS_TRY(locus_tree_string(v, "added_tokens", "content", &content, error));
        LOCUS_TRY(locus_tree_unsigned(v, "added_tokens", "id", 0, LOCUS_TEXT_MAX_VOCABULARY - 1,
                                      &id, error));
        if (content == NULL || content->bytes == 0) continue; /* `tokenizers` passes over it */
        LOCUS_TRY(locus_read_added_flags(v, &token, error));
        LOCUS_TRY(locus_read_keep_value(t, content, &token.content, error));
        const uint32_t known = locus_trie_find(&t->model.index, content->text, content->bytes);
        token.id = known != TRIE_NONE ? known : next;
        if (token.id >= next) next = token.id + 1;
        LOCUS_TRY(locus_read_added(t, token, error));
    }
    return LOCUS_OK;
}

/* ---- the file ---- */

static const text_template one_segment = {.items = {{.kind = ITEM_FIRST}}, .count = 1};
static const text_template two_segments = {
    .items = {{.kind = ITEM_FIRST}, {.kind = ITEM_SECOND, .type = 1}}, .count = 2};

locus_status locus_read_tokenizer_tree(locus_tokenizer *t, const json_value *root,
                                       locus_error *error)
{
    char found[100];
    if (root == NULL || root->kind != LOCUS_JSON_OBJECT)
        return locus_fail(error, LOCUS_ERR_FORMAT, "found %s, expected an object",
                          locus_tree_describe(found, sizeof found, root));
    t->single = one_segment;
    t->pair = two_segments;
    LOCUS_TRY(locus_read_json_model(t, locus_tree_get(root, "model"), error));
    LOCUS_TRY(locus_read_json_normalizer(t, locus_tree_get(root, "normalizer"), error));
    LOCUS_TRY(locus_read_json_splitter(t, locus_tree_get(root, "pre_tokenizer"), error));
    LOCUS_TRY(locus_read_json_processor(t, locus_tree_get(root, "post_processor"), error));
    LOCUS_TRY(locus_read_json_decoder(t, locus_tree_get(root, "decoder"), error));
    return read_added_list(t, locus_tree_get(root, "added_tokens"), error);
}

static locus_status read_tree(const read_files *f, const json_value *root)
{
    LOCUS_TRY(locus_read_tokenizer_tree(f->t, root, f->error));
    LOCUS_TRY(locus_read_fast_changes(f, root));
    LOCUS_TRY(locus_read_settle_letters(f->t, f->error));
    return locus_read_finish(f->t, f->error);
}

locus_status locus_read_tokenizer_json(read_files *f, const char *name)
{
    json_tree tree;
    locus_tokenizer *t = f->t;
    LOCUS_TRY(locus_read_json(f, name, 1, &tree));
    t->source = t->rules = "tokenizer.json";
    locus_status status = read_tree(f, tree.root);
    locus_json_tree_free(&tree);
    if (status != LOCUS_OK) return locus_read_fail_in(f, status, name);
    return locus_read_parts(f);
}

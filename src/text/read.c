/* SPDX-License-Identifier: Apache-2.0 */
/* Which file of a folder decides. */
#include <string.h>

#include "core/error.h"
#include "io/system.h"
#include "text/class_rules.h"

static int ends_with(const char *text, const char *ending)
{
    const size_t a = strlen(text), b = strlen(ending);
    return a >= b && strcmp(text + a - b, ending) == 0;
}

static locus_status read_folder(read_files *f)
{
    LOCUS_TRY(locus_read_json(f, "tokenizer_config.json", 0, &f->tokenizer_config));
    LOCUS_TRY(locus_read_json(f, "special_tokens_map.json", 0, &f->special_tokens_map));
    LOCUS_TRY(locus_read_json(f, "config.json", 0, &f->config));
    LOCUS_TRY(locus_read_json(f, "added_tokens.json", 0, &f->added_tokens));
    const json_value *named = NULL;
    const class_rules *rules = locus_class_rules_of(f, &named);
    const int own = rules != NULL && (rules->files == FILES_MARIAN || rules->files == FILES_BYTES);
    if (locus_read_exists(f, "tokenizer.json") && !own)
        return locus_read_tokenizer_json(f, "tokenizer.json");
    return locus_read_by_class(f);
}

static locus_status read_path(read_files *f, const char *path)
{
    if (!locus_system_exists(path)) {
        char *text = NULL;
        size_t bytes = 0;
        return locus_read_whole(f, path, &text, &bytes); /* which says why not */
    }
    if (locus_system_is_folder(path)) {
        f->folder = path;
        return read_folder(f);
    }
    if (ends_with(path, ".gguf"))
        return locus_fail(f->error, LOCUS_ERR_FORMAT,
                          "%s: found a GGUF file, whose tokenizer is not read, expected tokenizer "
                          "files (--tokenizer PATH)",
                          path);
    if (ends_with(path, ".json")) return locus_read_tokenizer_json(f, path);
    f->file = path;
    return locus_read_by_class(f);
}

locus_status locus_text_read(locus_tokenizer *t, const char *path, locus_error *error)
{
    read_files f = {.t = t, .error = error};
    const locus_status status = read_path(&f, path);
    locus_json_tree_free(&f.tokenizer_config);
    locus_json_tree_free(&f.special_tokens_map);
    locus_json_tree_free(&f.config);
    locus_json_tree_free(&f.added_tokens);
    return status;
}

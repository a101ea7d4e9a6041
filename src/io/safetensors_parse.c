/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/print.h"
#include "io/dtype.h"
#include "io/json_scan.h"
#include "io/system.h"
#include "io/tensorfile.h"

/* The header's JSON, token by token. Everything unknown is refused where it begins,
 * so no part of a file is stored that the format does not ask for. */

enum { FIELD_TEXT = 64 }; /* bytes of a field name or a dtype that are looked at */
enum { WORDS = 64 };      /* room for locus_json_describe */

typedef struct parser {
    locus_file *file;
    locus_json json;
    locus_json_token token;
    locus_error *error;
    const char *what, *name; /* the thing that is being parsed, for messages; or NULL */
    int metadata_seen;
} parser;

/* The tensor being parsed. */
typedef struct entry {
    const char *name;
    const locus_file_dtype *dtype;
    uint32_t rank;
    uint64_t shape[LOCUS_FILE_MAX_RANK];
    uint64_t begin, end;
    unsigned seen; /* bit f: field f was there */
} entry;

/* `tensor "x": `, or nothing outside of a tensor. Written only when it is needed:
 * escaping every name would be the dearest part of opening a file. */
static const char *where(const parser *p, char out[LOCUS_FILE_NAME_TEXT + 16])
{
    char text[LOCUS_FILE_NAME_TEXT];
    out[0] = '\0';
    if (p->name == NULL) return out;
    locus_escape(text, sizeof text, p->name, strlen(p->name));
    snprintf(out, LOCUS_FILE_NAME_TEXT + 16, "%s \"%s\": ", p->what, text);
    return out;
}

/* "byte N: tensor "x": " and the rest, for the token that was read last. */
static locus_status refuse(parser *p, const char *format, ...) LOCUS_PRINTF(2, 3);
static locus_status refuse(parser *p, const char *format, ...)
{
    char text[320], place[LOCUS_FILE_NAME_TEXT + 16];
    va_list arguments;
    va_start(arguments, format);
    locus_vprint(text, sizeof text, format, arguments);
    va_end(arguments);
    return locus_fail(p->error, LOCUS_ERR_FORMAT, "byte %" PRIu64 ": %s%s", p->token.at,
                      where(p, place), text);
}

static locus_status refuse_token(parser *p, const char *expected, const char *rule)
{
    char found[WORDS];
    locus_json_describe(found, sizeof found, &p->token);
    return refuse(p, "found %s, expected %s [%s]", found, expected, rule);
}

static locus_status no_memory(parser *p)
{
    return locus_fail(p->error, LOCUS_ERR_MEMORY, "byte %" PRIu64 ": no memory for the header",
                      p->token.at);
}

static locus_status next(parser *p, size_t limit)
{
    return locus_json_next(&p->json, limit, &p->token);
}

static locus_status expect(parser *p, locus_json_kind kind, size_t limit, const char *expected,
                           const char *rule)
{
    LOCUS_TRY(next(p, limit));
    return p->token.kind == kind ? LOCUS_OK : refuse_token(p, expected, rule);
}

static void enter(parser *p, const char *what, const char *name)
{
    p->what = what;
    p->name = name;
}

static void leave(parser *p) { p->name = NULL; }

/* ---- names ---- */

const char *locus_file_name_fault(const char *name, size_t bytes)
{
    if (bytes == 0) return "found an empty name, expected at least one byte [S13]";
    if (bytes > LOCUS_FILE_MAX_NAME)
        return "found a name of more than 4096 bytes, expected at most 4096 [S13]";
    if (locus_utf8_check(name, bytes) != bytes)
        return "found a name that is not UTF-8, expected UTF-8 [S06]";
    return NULL;
}

/* A key that names a tensor or a metadata entry. */
static locus_status judge_name(parser *p, const locus_names *names, const char *what)
{
    const locus_json_token *token = &p->token;
    const char *fault = token->cut ? locus_file_name_fault(token->text, LOCUS_FILE_MAX_NAME + 1)
                                   : locus_file_name_fault(token->text, token->bytes);
    if (fault != NULL) return refuse(p, "%s: %s", what, fault);
    if (memchr(token->text, '\0', token->bytes) != NULL)
        return refuse(p, "%s: found a name with a NUL in it, expected none [S13]", what);
    if (locus_names_find(names, token->text) == LOCUS_NAMES_NONE) return LOCUS_OK;
    char text[LOCUS_FILE_NAME_TEXT];
    locus_escape(text, sizeof text, token->text, token->bytes);
    return refuse(p, "found %s \"%s\" twice, expected once [S10]", what, text);
}

/* ---- __metadata__ ---- */

static locus_status store_metadata(parser *p, const char *key, size_t key_bytes)
{
    locus_file *file = p->file;
    const locus_json_token *value = &p->token;
    if (memchr(value->text, '\0', value->bytes) != NULL)
        return refuse(p, "found a value with a NUL in it, expected none [S11]");
    char *pair = locus_arena_take(&file->arena, key_bytes + 1 + value->bytes + 1, 1);
    if (pair == NULL) return no_memory(p);
    memcpy(pair, key, key_bytes);
    memcpy(pair + key_bytes + 1, value->text, value->bytes);
    locus_file_entry *stored = locus_list_push(&file->metadata, file->allocator);
    if (stored == NULL) return no_memory(p);
    stored->key = pair;
    return locus_names_add(&file->metadata_names, file->allocator) ? LOCUS_OK : no_memory(p);
}

static locus_status parse_pair(parser *p)
{
    char key[LOCUS_FILE_MAX_NAME + 1];
    LOCUS_TRY(judge_name(p, &p->file->metadata_names, "metadata key"));
    if (p->file->metadata.count == LOCUS_FILE_MAX_METADATA)
        return refuse(p, "found one more metadata key, expected at most 1000000 [S11]");
    const size_t bytes = p->token.bytes;
    memcpy(key, p->token.text, bytes + 1);
    enter(p, "metadata", key);
    LOCUS_TRY(expect(p, LOCUS_JSON_STRING, SIZE_MAX, "a string", "S11"));
    const locus_status status = store_metadata(p, key, bytes);
    leave(p);
    return status;
}

static locus_status parse_metadata(parser *p)
{
    if (p->metadata_seen)
        return refuse(p, "found \"" LOCUS_FILE_METADATA "\" twice, expected once [S10]");
    p->metadata_seen = 1;
    enter(p, "key", LOCUS_FILE_METADATA);
    LOCUS_TRY(expect(p, LOCUS_JSON_OBJECT, 0, "an object of strings", "S11"));
    leave(p);
    for (;;) {
        LOCUS_TRY(next(p, LOCUS_FILE_MAX_NAME));
        if (p->token.kind == LOCUS_JSON_OBJECT_END) return LOCUS_OK;
        LOCUS_TRY(parse_pair(p));
    }
}

/* ---- the fields of a tensor ---- */

static locus_status parse_dtype(parser *p, entry *e)
{
    char text[FIELD_TEXT + 16];
    LOCUS_TRY(expect(p, LOCUS_JSON_STRING, FIELD_TEXT, "a dtype, a string", "S14"));
    const int whole = !p->token.cut && memchr(p->token.text, '\0', p->token.bytes) == NULL;
    e->dtype = whole ? locus_file_dtype_find(p->token.text) : NULL;
    if (e->dtype != NULL) return LOCUS_OK;
    locus_escape(text, sizeof text, p->token.text, p->token.bytes);
    return refuse(p, "found dtype \"%s\"%s, expected a known one such as F32 or BF16 [S14]", text,
                  p->token.cut ? " and more" : "");
}

static locus_status parse_shape(parser *p, entry *e)
{
    LOCUS_TRY(expect(p, LOCUS_JSON_ARRAY, 0, "a shape, an array of integers", "S16"));
    for (;;) {
        LOCUS_TRY(next(p, 0));
        if (p->token.kind == LOCUS_JSON_ARRAY_END) return LOCUS_OK;
        if (p->token.kind != LOCUS_JSON_INTEGER)
            return refuse_token(p, "an unsigned integer in digits, below 2^64", "S15");
        if (e->rank == LOCUS_FILE_MAX_RANK)
            return refuse(p, "found extent number 17 of the shape, expected a rank of at most 16 "
                             "[S16]");
        if (p->token.integer > LOCUS_FILE_MAX_DIM)
            return refuse(p, "found extent %" PRIu64 ", expected less than 2^48 [S16]",
                          p->token.integer);
        e->shape[e->rank++] = p->token.integer;
    }
}

static locus_status parse_offsets(parser *p, entry *e)
{
    LOCUS_TRY(expect(p, LOCUS_JSON_ARRAY, 0, "data_offsets, an array of two integers", "S18"));
    LOCUS_TRY(expect(p, LOCUS_JSON_INTEGER, 0,
                     "the begin, an unsigned integer in digits, below 2^64", "S15"));
    e->begin = p->token.integer;
    LOCUS_TRY(expect(p, LOCUS_JSON_INTEGER, 0, "the end, an unsigned integer in digits, below 2^64",
                     "S15"));
    e->end = p->token.integer;
    LOCUS_TRY(expect(p, LOCUS_JSON_ARRAY_END, 0, "two offsets and no more", "S18"));
    if (e->begin > e->end)
        return refuse(p,
                      "found begin %" PRIu64 " after end %" PRIu64 ", expected begin <= end "
                      "[S18]",
                      e->begin, e->end);
    return LOCUS_OK;
}

static const struct field {
    const char *name;
    locus_status (*parse)(parser *p, entry *e);
} fields[] = {
    {"dtype", parse_dtype},
    {"shape", parse_shape},
    {"data_offsets", parse_offsets},
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields };

static locus_status parse_field(parser *p, entry *e)
{
    char text[FIELD_TEXT + 16];
    const locus_json_token *key = &p->token;
    for (unsigned f = 0; f < FIELD_COUNT; f++) {
        if (key->bytes != strlen(fields[f].name) || strcmp(key->text, fields[f].name) != 0)
            continue;
        if ((e->seen >> f & 1u) != 0)
            return refuse(p, "found field \"%s\" twice, expected once [S10]", fields[f].name);
        e->seen |= 1u << f;
        return fields[f].parse(p, e);
    }
    locus_escape(text, sizeof text, key->text, key->bytes);
    return refuse(p, "found field \"%s\"%s, expected only dtype, shape and data_offsets [S12]",
                  text, key->cut ? " and more" : "");
}

/* ---- a tensor ---- */

static locus_status judge_entry(parser *p, const entry *e)
{
    uint64_t bytes = 0;
    for (unsigned f = 0; f < FIELD_COUNT; f++)
        if ((e->seen >> f & 1u) == 0)
            return refuse(p, "found no field \"%s\", expected one [S12]", fields[f].name);
    const locus_status status =
        locus_file_dtype_bytes(&bytes, e->dtype, e->rank, e->shape, p->error);
    if (status != LOCUS_OK) {
        char place[LOCUS_FILE_NAME_TEXT + 16];
        where(p, place);
        place[strlen(place) - 2] = '\0'; /* locus_fail_in has its own ": " */
        return locus_fail_in(p->error, status, place);
    }
    if (e->end - e->begin == bytes) return LOCUS_OK;
    return refuse(p,
                  "found offsets %" PRIu64 " to %" PRIu64 ", which is %" PRIu64 " bytes, "
                  "expected the %" PRIu64 " bytes of shape and dtype [S18]",
                  e->begin, e->end, e->end - e->begin, bytes);
}

static locus_status store_entry(parser *p, const entry *e)
{
    locus_file *file = p->file;
    uint64_t *shape = locus_arena_take(&file->arena, e->rank * sizeof *shape, sizeof *shape);
    if (shape == NULL) return no_memory(p);
    for (uint32_t i = 0; i < e->rank; i++) shape[i] = e->shape[i];
    locus_file_tensor *tensor = locus_list_push(&file->tensors, file->allocator);
    if (tensor == NULL) return no_memory(p);
    *tensor = (locus_file_tensor){
        .name = e->name,
        .dtype = e->dtype->name,
        .bits = e->dtype->bits,
        .rank = e->rank,
        .shape = shape,
        .begin = e->begin,
        .end = e->end,
    };
    return locus_names_add(&file->tensor_names, file->allocator) ? LOCUS_OK : no_memory(p);
}

static locus_status parse_tensor(parser *p)
{
    entry e = {.name = NULL};
    LOCUS_TRY(judge_name(p, &p->file->tensor_names, "tensor"));
    if (p->file->tensors.count == LOCUS_FILE_MAX_TENSORS)
        return refuse(p, "found tensor number 1000001, expected at most 1000000 [S21]");
    e.name = locus_arena_copy(&p->file->arena, p->token.text, p->token.bytes);
    if (e.name == NULL) return no_memory(p);
    enter(p, "tensor", e.name);
    LOCUS_TRY(expect(p, LOCUS_JSON_OBJECT, 0, "an object", "S12"));
    for (;;) {
        LOCUS_TRY(next(p, FIELD_TEXT));
        if (p->token.kind == LOCUS_JSON_OBJECT_END) break;
        LOCUS_TRY(parse_field(p, &e));
    }
    LOCUS_TRY(judge_entry(p, &e));
    LOCUS_TRY(store_entry(p, &e));
    leave(p);
    return LOCUS_OK;
}

/* ---- the header ---- */

static locus_status parse_header(parser *p)
{
    LOCUS_TRY(expect(p, LOCUS_JSON_OBJECT, 0, "the header to be an object", "S09"));
    for (;;) {
        LOCUS_TRY(next(p, LOCUS_FILE_MAX_NAME));
        if (p->token.kind == LOCUS_JSON_OBJECT_END) break;
        const int is_metadata = p->token.bytes == sizeof LOCUS_FILE_METADATA - 1 &&
                                memcmp(p->token.text, LOCUS_FILE_METADATA, p->token.bytes) == 0;
        LOCUS_TRY(is_metadata ? parse_metadata(p) : parse_tensor(p));
    }
    return next(p, 0); /* the end, or the scanner refuses what follows */
}

static locus_status read_header(void *context, uint64_t at, void *out, size_t count,
                                locus_error *error)
{
    const locus_file *file = context;
    return locus_system_read(file->descriptor, at, out, count, error);
}

locus_status locus_file_parse(locus_file *file, locus_error *error)
{
    parser p = {.file = file, .error = error};
    const locus_json_source source = {
        .read = read_header,
        .context = file,
        .begin = LOCUS_FILE_LENGTH_BYTES,
        .end = LOCUS_FILE_LENGTH_BYTES + file->header_bytes,
    };
    locus_status status = locus_json_open(&p.json, &source, file->allocator, error);
    if (status == LOCUS_OK) status = parse_header(&p);
    locus_json_close(&p.json);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/print.h"
#include "core/size.h"
#include "core/utf8.h"
#include "io/bytes.h"
#include "io/dtype.h"
#include "io/sources.h"
#include "io/system.h"

/* GGUF, versions 2 and 3: magic, version, how many tensors and values; the values; name, extents,
 * type and place of every tensor; the data, aligned. Values that are one number or text become
 * metadata; lists (vocabularies) are passed over. */

enum {
    WINDOW = 65536,
    MOST_TEXT = 65536, /* bytes of a value that is kept */
    MOST_RANK = 4,
    MOST_ALIGNMENT = 1 << 20,
    PRESET_ALIGNMENT = 32,
};

typedef struct cursor {
    locus_file *file;
    uint64_t at; /* in the file */
    unsigned char *window;
    uint64_t window_at;
    size_t filled;
    locus_error *error;
} cursor;

static locus_status refuse(const cursor *c, const char *fault)
{
    return locus_fail(c->error, LOCUS_ERR_FORMAT, "byte %" PRIu64 ": %s", c->at, fault);
}

/* `count` bytes, at most WINDOW, that stay until the next call. */
static locus_status take(cursor *c, uint64_t count, const unsigned char **bytes)
{
    const uint64_t left = c->file->bytes - c->at;
    if (count > left) return refuse(c, "found the end of the file, expected more of its header");
    if (c->at < c->window_at || c->at + count > c->window_at + c->filled) {
        c->filled = left < WINDOW ? (size_t)left : WINDOW;
        c->window_at = c->at;
        LOCUS_TRY(locus_system_read(c->file->descriptor, c->at, c->window, c->filled, c->error));
    }
    *bytes = c->window + (c->at - c->window_at);
    c->at += count;
    return LOCUS_OK;
}

static locus_status skip(cursor *c, uint64_t count)
{
    if (count > c->file->bytes - c->at)
        return refuse(c, "found the end of the file, expected more of its header");
    c->at += count;
    return LOCUS_OK;
}

static locus_status take_number(cursor *c, size_t count, uint64_t *out)
{
    const unsigned char *bytes;
    LOCUS_TRY(take(c, count, &bytes));
    *out = 0;
    for (size_t i = count; i-- > 0;) *out = *out << 8 | bytes[i];
    return LOCUS_OK;
}

/* A text of at most `most` bytes as a C string in the arena. */
static locus_status take_text(cursor *c, uint64_t most, const char **out)
{
    uint64_t count = 0;
    const unsigned char *bytes;
    LOCUS_TRY(take_number(c, 8, &count));
    if (count > most) return refuse(c, "found a longer text than is read");
    LOCUS_TRY(take(c, count, &bytes));
    if (memchr(bytes, '\0', (size_t)count) != NULL ||
        locus_utf8_check((const char *)bytes, (size_t)count) != count)
        return refuse(c, "found a text with a NUL or that is not UTF-8");
    *out = locus_arena_copy(&c->file->arena, (const char *)bytes, (size_t)count);
    return *out != NULL ? LOCUS_OK
                        : locus_fail(c->error, LOCUS_ERR_MEMORY, "no memory for the header");
}

/* ---- values ---- */

enum { TEXT = 8, LIST = 9, KINDS = 13 };
static const unsigned char widths[KINDS] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

static locus_status skip_text(cursor *c)
{
    uint64_t count = 0;
    LOCUS_TRY(take_number(c, 8, &count));
    return skip(c, count);
}

static locus_status skip_list(cursor *c)
{
    uint64_t kind = 0, count = 0, bytes = 0;
    LOCUS_TRY(take_number(c, 4, &kind));
    LOCUS_TRY(take_number(c, 8, &count));
    if (kind >= KINDS || kind == LIST) return refuse(c, "found a list of an unknown kind");
    if (kind != TEXT) {
        if (!locus_mul_u64(&bytes, count, widths[kind])) return refuse(c, "found too long a list");
        return skip(c, bytes);
    }
    for (uint64_t i = 0; i < count; i++) LOCUS_TRY(skip_text(c));
    return LOCUS_OK;
}

/* 7 digits of a float of 4 bytes: 1e-05, not 9.99999975e-06. */
static void print_number(char out[32], uint64_t kind, uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    const size_t width = widths[kind];
    float single;
    double real;
    memcpy(&single, &low, sizeof single);
    memcpy(&real, &bits, sizeof real);
    if (kind == 6)
        locus_print(out, 32, "%.7g", (double)single);
    else if (kind == 12)
        locus_print(out, 32, "%.17g", real);
    else if (kind == 7)
        snprintf(out, 32, "%s", bits != 0 ? "true" : "false");
    else if (kind == 1 || kind == 3 || kind == 5 || kind == 11) /* signed */
        snprintf(out, 32, "%" PRId64, (int64_t)(bits << (64 - 8 * width)) >> (64 - 8 * width));
    else
        snprintf(out, 32, "%" PRIu64, bits);
}

static locus_status take_value(cursor *c)
{
    char number[32];
    const char *key, *text = number;
    uint64_t kind = 0, bits = 0;
    LOCUS_TRY(take_text(c, LOCUS_FILE_MAX_NAME, &key));
    LOCUS_TRY(take_number(c, 4, &kind));
    if (kind >= KINDS) return refuse(c, "found a value of an unknown kind, expected 0 to 12");
    if (kind == LIST) return skip_list(c);
    if (kind == TEXT) {
        const uint64_t before = c->at;
        LOCUS_TRY(take_number(c, 8, &bits));
        if (bits > MOST_TEXT) return skip(c, bits);
        c->at = before;
        LOCUS_TRY(take_text(c, MOST_TEXT, &text));
    } else {
        LOCUS_TRY(take_number(c, widths[kind], &bits));
        print_number(number, kind, bits);
    }
    return locus_file_add_metadata(c->file, key, text, c->error);
}

/* ---- tensors ---- */

static const struct {
    uint64_t type;
    const char *name, *dtype;
} types[] = {
    {0, "F32", "F32"},    {1, "F16", "F16"},  {8, "Q8_0", "F32"}, {24, "I8", "I8"},
    {25, "I16", "I16"},   {26, "I32", "I32"}, {27, "I64", "I64"}, {28, "F64", "F64"},
    {30, "BF16", "BF16"}, {2, "Q4_0", NULL},  {3, "Q4_1", NULL},  {6, "Q5_0", NULL},
    {7, "Q5_1", NULL},    {10, "Q2_K", NULL}, {11, "Q3_K", NULL}, {12, "Q4_K", NULL},
    {13, "Q5_K", NULL},   {14, "Q6_K", NULL},
};
enum { TYPES = sizeof types / sizeof *types };

static locus_status refuse_type(const cursor *c, const char *name, uint64_t type)
{
    char text[LOCUS_FILE_NAME_TEXT], found[32];
    snprintf(found, sizeof found, "%" PRIu64, type);
    for (size_t i = 0; i < TYPES; i++)
        if (types[i].type == type) snprintf(found, sizeof found, "%s", types[i].name);
    return locus_fail(c->error, LOCUS_ERR_FORMAT,
                      "tensor %s: found type %s, expected F32, F16, BF16 or Q8_0 (python -m "
                      "locus.convert reads some others)",
                      locus_escape(text, sizeof text, name, strlen(name)), found);
}

static locus_status take_tensor(cursor *c)
{
    locus_file_tensor t = {.rank = 0};
    uint64_t shape[MOST_RANK], rank = 0, type = 0, offset = 0;
    size_t i = 0;
    LOCUS_TRY(take_text(c, LOCUS_FILE_MAX_NAME, &t.name));
    LOCUS_TRY(take_number(c, 4, &rank));
    if (rank > MOST_RANK) return refuse(c, "found a tensor of more than 4 axes");
    for (uint64_t n = rank; n-- > 0;) LOCUS_TRY(take_number(c, 8, &shape[n]));
    LOCUS_TRY(take_number(c, 4, &type));
    LOCUS_TRY(take_number(c, 8, &offset));
    while (i < TYPES && types[i].type != type) i++;
    if (i == TYPES || types[i].dtype == NULL) return refuse_type(c, t.name, type);
    const locus_file_source source = {.at = offset, .is_q8_0 = type == 8};
    if (source.is_q8_0 && (rank == 0 || shape[rank - 1] % LOCUS_Q8_0_NUMBERS != 0))
        return refuse(c, "found rows of Q8_0 that are not whole blocks of 32");
    t.dtype = types[i].dtype;
    t.bits = locus_file_dtype_find(t.dtype)->bits;
    t.rank = (uint32_t)rank;
    t.shape = shape;
    return locus_file_add(c->file, &t, &source, c->error);
}

/* Offsets count from the data section; every tensor lies in the file. */
static locus_status place_tensors(cursor *c, uint64_t alignment)
{
    locus_file *f = c->file;
    char name[LOCUS_FILE_NAME_TEXT];
    const uint64_t data = (c->at + alignment - 1) / alignment * alignment;
    f->header_bytes = c->at;
    for (size_t i = 0; i < f->tensors.count; i++) {
        const locus_file_tensor *t = locus_list_at(&f->tensors, i);
        locus_file_source *s = locus_list_at(&f->sources, i);
        uint64_t bytes = t->end - t->begin, end = 0;
        if (s->is_q8_0) bytes = bytes / sizeof(float) / LOCUS_Q8_0_NUMBERS * LOCUS_Q8_0_BYTES;
        const int fits = locus_add_u64(&s->at, s->at, data) && locus_add_u64(&end, s->at, bytes) &&
                         end <= f->bytes && s->at % alignment == 0;
        if (!fits)
            return locus_fail(c->error, LOCUS_ERR_FORMAT,
                              "tensor %s: found it at byte %" PRIu64 ", expected %" PRIu64
                              " bytes inside of the file (a download that broke off?)",
                              locus_escape(name, sizeof name, t->name, strlen(t->name)), s->at,
                              bytes);
    }
    return LOCUS_OK;
}

/* general.alignment, a power of two. */
static locus_status find_alignment(const cursor *c, uint64_t *alignment)
{
    const char *text = locus_file_metadata(c->file, "general.alignment");
    *alignment = PRESET_ALIGNMENT;
    if (text == NULL) return LOCUS_OK;
    *alignment = 0;
    for (; *text >= '0' && *text <= '9' && *alignment <= MOST_ALIGNMENT; text++)
        *alignment = 10 * *alignment + (uint64_t)(*text - '0');
    if (*text == '\0' && *alignment > 0 && *alignment <= MOST_ALIGNMENT &&
        (*alignment & (*alignment - 1)) == 0)
        return LOCUS_OK;
    return refuse(c, "general.alignment: found another number, expected a power of two");
}

static locus_status parse(cursor *c)
{
    uint64_t version = 0, tensors = 0, values = 0, alignment = 0;
    LOCUS_TRY(skip(c, 4)); /* the magic */
    LOCUS_TRY(take_number(c, 4, &version));
    if (version != 2 && version != 3)
        return refuse(c, "found another version of GGUF, expected 2 or 3, little-endian");
    LOCUS_TRY(take_number(c, 8, &tensors));
    LOCUS_TRY(take_number(c, 8, &values));
    for (uint64_t i = 0; i < values; i++) LOCUS_TRY(take_value(c));
    for (uint64_t i = 0; i < tensors; i++) LOCUS_TRY(take_tensor(c));
    LOCUS_TRY(find_alignment(c, &alignment));
    return place_tensors(c, alignment);
}

locus_status locus_file_parse_gguf(locus_file *file, locus_error *error)
{
    cursor c = {.file = file, .error = error};
    c.window = locus_allocate(file->allocator, WINDOW, 1);
    if (c.window == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for the header");
    const locus_status status = parse(&c);
    locus_release(file->allocator, c.window);
    return status;
}

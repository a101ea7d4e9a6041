/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/corpus.h"

#include <string.h>

#include "core/crc32.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/size.h"
#include "io/gzip.h"
#include "io/system.h"
#include "io/tensorfile.h"
#include "lab/embed.h"

/* The packed novels: lab/corpus/PROVENANCE.md. */
EMBED_FILE(lab_austen, LAB_CORPUS_FILE);

const char *lab_corpus_builtin_name(void)
{
    return "Jane Austen, five novels; judged by a sixth, Northanger Abbey";
}

/* ---- reading ---- */

static locus_status read_file(unsigned char **out, size_t *bytes, const char *path,
                              const locus_allocator *allocator, locus_error *error)
{
    int descriptor = -1;
    uint64_t size = 0;
    locus_status status = locus_system_open(&descriptor, &size, path, error);
    *out = NULL;
    if (status == LOCUS_OK && (size > LAB_TEXT_BYTES || !locus_to_size(bytes, size)))
        status = locus_fail(error, LOCUS_ERR_FORMAT, "longer than 4 GiB");
    if (status == LOCUS_OK && (*out = locus_allocate(allocator, *bytes + 1, 1)) == NULL)
        status = locus_fail(error, LOCUS_ERR_MEMORY, "no memory for the text");
    if (status == LOCUS_OK) status = locus_system_read(descriptor, 0, *out, *bytes, error);
    locus_system_close(descriptor);
    if (status != LOCUS_OK) {
        locus_release(allocator, *out);
        *out = NULL;
    }
    return status;
}

/* The bytes of `path`, unpacked where they are packed. */
static locus_status read_text(unsigned char **out, size_t *bytes, const char *path,
                              const locus_allocator *allocator, locus_error *error)
{
    unsigned char *packed;
    if (path == NULL)
        return locus_gzip_unpack(out, bytes, lab_austen, (size_t)lab_austen_bytes, allocator,
                                 error);
    LOCUS_TRY(read_file(out, bytes, path, allocator, error));
    if (*bytes < 2 || (*out)[0] != 0x1F || (*out)[1] != 0x8B) return LOCUS_OK;
    packed = *out;
    const locus_status status = locus_gzip_unpack(out, bytes, packed, *bytes, allocator, error);
    locus_release(allocator, packed);
    return status;
}

/* ---- parts ---- */

/* Where the validation part begins; *gap bytes before it belong to neither. */
static size_t split_at(const unsigned char *text, size_t bytes, size_t *gap)
{
    const size_t fifth = bytes - bytes / 5, tenth = bytes - bytes / 10;
    const unsigned char *found = memchr(text + fifth, '\f', bytes - fifth);
    *gap = found != NULL;
    if (found != NULL) return (size_t)(found - text) + 1;
    if (tenth == 0) return 0;
    found = memchr(text + tenth - 1, '\n', bytes - tenth + 1);
    const size_t line = found != NULL ? (size_t)(found - text) + 1 : bytes;
    return line < bytes ? line : tenth;
}

/* Control characters that texts have: tab, ends of lines and pages, backspace, escape. */
static int is_text(unsigned char byte)
{
    return byte >= 0x20 || (byte >= '\b' && byte <= '\r') || byte == 0x1B;
}

static locus_status check_text(const lab_corpus *c, size_t bytes, size_t least, locus_error *error)
{
    const size_t shorter =
        c->train_bytes < c->validation_bytes ? c->train_bytes : c->validation_bytes;
    for (size_t i = 0; i < bytes; i++)
        if (!is_text(c->text[i]))
            return locus_fail(error, LOCUS_ERR_FORMAT,
                              "byte %zu is 0x%02x: found binary data, expected a text", i,
                              c->text[i]);
    if (shorter < least || shorter == 0)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "%zu bytes, %zu to train on and %zu to validate on; expected at least "
                          "%zu of each",
                          bytes, c->train_bytes, c->validation_bytes, least > 0 ? least : 1);
    return LOCUS_OK;
}

locus_status lab_corpus_open(lab_corpus *corpus, const char *path, size_t least,
                             const locus_allocator *allocator, locus_error *error)
{
    lab_corpus c = {.allocator = allocator};
    size_t bytes = 0, gap = 0;
    locus_status status = read_text(&c.text, &bytes, path, allocator, error);
    if (status == LOCUS_OK) {
        const size_t at = split_at(c.text, bytes, &gap);
        c.train = c.text;
        c.train_bytes = at - gap;
        c.validation = c.text + at;
        c.validation_bytes = bytes - at;
        c.sum = locus_crc32(0, c.text, bytes);
        status = check_text(&c, bytes, least, error);
    }
    if (status != LOCUS_OK) {
        locus_release(allocator, c.text);
        return path != NULL ? locus_file_fail_in(error, status, path) : status;
    }
    *corpus = c;
    return LOCUS_OK;
}

void lab_corpus_close(lab_corpus *corpus)
{
    locus_release(corpus->allocator, corpus->text);
    *corpus = (lab_corpus){.text = NULL};
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/crc32.h"
#include "core/error.h"
#include "core/memory.h"
#include "io/system.h"
#include "io/tensorfile.h"

#define PIECE_BYTES ((size_t)65536)
#define KEY "\"" LOCUS_FILE_METADATA "\":{\"" LOCUS_FILE_SUM "\":\""

/* The digits stand where the writer puts them: in the first entry of the metadata, which come
 * first. */
enum { DIGITS_AT = LOCUS_FILE_LENGTH_BYTES + 1 + sizeof KEY - 1, DIGITS = 8 };

static locus_status sum_up(const locus_file *file, unsigned char *piece, uint32_t *crc,
                           locus_error *error)
{
    *crc = 0;
    for (uint64_t at = 0; at < file->bytes; at += PIECE_BYTES) {
        const uint64_t left = file->bytes - at;
        const size_t count = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        LOCUS_TRY(locus_system_read(file->descriptor, at, piece, count, error));
        if (at == 0) memset(piece + DIGITS_AT, '0', DIGITS);
        *crc = locus_crc32(*crc, piece, count);
    }
    return LOCUS_OK;
}

static locus_status check(const locus_file *file, unsigned char *piece, locus_error *error)
{
    char head[sizeof KEY], found[DIGITS + 1];
    const char *said = locus_file_metadata(file, LOCUS_FILE_SUM);
    uint32_t crc = 0;
    if (said == NULL || file->bytes < DIGITS_AT + DIGITS)
        return locus_fail(error, LOCUS_ERR_FORMAT, "metadata \"sum\": found none, expected one");
    LOCUS_TRY(locus_system_read(file->descriptor, LOCUS_FILE_LENGTH_BYTES + 1, head,
                                sizeof head - 1, error));
    if (memcmp(head, KEY, sizeof head - 1) != 0)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "metadata \"sum\": found later, expected in the first entry");
    LOCUS_TRY(sum_up(file, piece, &crc, error));
    snprintf(found, sizeof found, "%08" PRIx32, crc);
    if (strcmp(found, said) != 0)
        return locus_fail(error, LOCUS_ERR_FORMAT, "the file has the sum %s, but says %s", found,
                          said);
    return LOCUS_OK;
}

locus_status locus_file_check_sum(const locus_file *file, locus_error *error)
{
    unsigned char *piece = locus_allocate(file->allocator, PIECE_BYTES, 1);
    locus_status status = LOCUS_ERR_MEMORY;
    if (piece == NULL)
        locus_fail(error, status, "no memory to check the sum");
    else
        status = check(file, piece, error);
    locus_release(file->allocator, piece);
    return status == LOCUS_OK ? LOCUS_OK : locus_file_fail_in(error, status, file->path);
}

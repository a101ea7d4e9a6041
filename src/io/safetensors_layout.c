/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/size.h"
#include "io/tensorfile.h"

/* Sorted by (begin, end), each tensor must begin where the one before it ended, and
 * the last must end where the file does: no hole, no overlap, nothing appended. */

typedef struct range {
    uint64_t begin, end;
    size_t index;
} range;

static const locus_file_tensor *tensor_at(const locus_file *file, size_t index)
{
    return locus_list_at(&file->tensors, index);
}

static int comes_before(const range *a, const range *b)
{
    return a->begin < b->begin || (a->begin == b->begin && a->end < b->end);
}

static void merge(range *out, const range *in, size_t low, size_t middle, size_t high)
{
    size_t left = low, right = middle;
    for (size_t i = low; i < high; i++) {
        const int take_right =
            left == middle || (right < high && comes_before(&in[right], &in[left]));
        out[i] = take_right ? in[right++] : in[left++];
    }
}

/* Bottom-up merge sort: no recursion, n log n whatever the file does. The result is
 * in one of the two buffers. */
static range *sort_ranges(range *from, range *to, size_t count)
{
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t low = 0; low < count; low += 2 * width) {
            const size_t middle = count - low < width ? count : low + width;
            const size_t high = count - middle < width ? count : middle + width;
            merge(to, from, low, middle, high);
        }
        range *kept = from;
        from = to;
        to = kept;
    }
    return from;
}

static int is_sorted(const range *ranges, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (comes_before(&ranges[i], &ranges[i - 1])) return 0;
    return 1;
}

static locus_status refuse_range(const locus_file *file, const range *ranges, size_t i,
                                 uint64_t expected, locus_error *error)
{
    char name[LOCUS_FILE_NAME_TEXT], before[LOCUS_FILE_NAME_TEXT];
    const char *text = tensor_at(file, ranges[i].index)->name;
    locus_escape(name, sizeof name, text, strlen(text));
    if (ranges[i].begin > expected)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "tensor \"%s\": found begin %" PRIu64 ", expected %" PRIu64
                          ": a hole of %" PRIu64 " bytes [S19]",
                          name, ranges[i].begin, expected, ranges[i].begin - expected);
    text = i == 0 ? "" : tensor_at(file, ranges[i - 1].index)->name;
    locus_escape(before, sizeof before, text, strlen(text));
    return locus_fail(error, LOCUS_ERR_FORMAT,
                      "tensor \"%s\": found begin %" PRIu64 ", expected %" PRIu64
                      ": it overlaps tensor \"%s\" [S19]",
                      name, ranges[i].begin, expected, before);
}

static locus_status check_tiles(const locus_file *file, const range *ranges, uint64_t *end,
                                locus_error *error)
{
    *end = 0;
    for (size_t i = 0; i < file->tensors.count; i++) {
        if (ranges[i].begin != *end) return refuse_range(file, ranges, i, *end, error);
        *end = ranges[i].end;
    }
    return LOCUS_OK;
}

static locus_status check_length(const locus_file *file, uint64_t data_bytes, locus_error *error)
{
    uint64_t expected = 0;
    if (!locus_add_u64(&expected, LOCUS_FILE_LENGTH_BYTES, file->header_bytes) ||
        !locus_add_u64(&expected, expected, data_bytes))
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "found data offsets up to %" PRIu64 ", expected a file below 2^64 bytes "
                          "[S20]",
                          data_bytes);
    if (file->bytes == expected) return LOCUS_OK;
    if (file->bytes < expected)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "found %" PRIu64 " bytes, expected %" PRIu64 ": %" PRIu64
                          " bytes are missing (a download that broke off?) [S20]",
                          file->bytes, expected, expected - file->bytes);
    return locus_fail(error, LOCUS_ERR_FORMAT,
                      "found %" PRIu64 " bytes, expected %" PRIu64 ": %" PRIu64
                      " bytes follow the last tensor [S20]",
                      file->bytes, expected, file->bytes - expected);
}

locus_status locus_file_check_layout(const locus_file *file, locus_error *error)
{
    const size_t count = file->tensors.count;
    range *ranges = locus_allocate(file->allocator, count, sizeof *ranges);
    range *spare = NULL, *sorted = ranges;
    uint64_t data_bytes = 0;
    locus_status status = LOCUS_OK;
    for (size_t i = 0; ranges != NULL && i < count; i++)
        ranges[i] = (range){tensor_at(file, i)->begin, tensor_at(file, i)->end, i};
    if (ranges != NULL && !is_sorted(ranges, count)) {
        spare = locus_allocate(file->allocator, count, sizeof *spare);
        sorted = spare == NULL ? NULL : sort_ranges(ranges, spare, count);
    }
    if (sorted == NULL) status = locus_fail(error, LOCUS_ERR_MEMORY, "no memory for the header");
    if (status == LOCUS_OK) status = check_tiles(file, sorted, &data_bytes, error);
    if (status == LOCUS_OK) status = check_length(file, data_bytes, error);
    locus_release(file->allocator, spare);
    locus_release(file->allocator, ranges);
    return status;
}

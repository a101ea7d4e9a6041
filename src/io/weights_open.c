/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core/error.h"
#include "io/bytes.h"
#include "io/sniff.h"
#include "io/system.h"
#include "io/tensorfile.h"

/* The kinds of files that hold the weights of models, by their first bytes. A safetensors file
 * begins with a length of at most LOCUS_FILE_MAX_HEADER, which none of the others does. */

typedef struct kind {
    const char *magic;
    size_t bytes;
    locus_status (*parse)(locus_file *file, locus_error *error);
} kind;

static locus_status refuse_legacy(locus_file *file, locus_error *error)
{
    (void)file;
    return locus_fail(error, LOCUS_ERR_FORMAT,
                      "found torch's format from before 1.6, a row of pickles, expected its ZIP "
                      "(python -m locus.convert reads it)");
}

static locus_status refuse_tar(locus_file *file, locus_error *error)
{
    (void)file;
    return locus_fail(error, LOCUS_ERR_FORMAT,
                      "found a tar archive (torch's format from before 0.2), expected a ZIP of "
                      "torch.save");
}

#define MAGIC(text) text, sizeof(text) - 1
static const kind kinds[] = {
    {MAGIC("PK\3\4"), locus_file_parse_torch},
    {MAGIC("GGUF"), locus_file_parse_gguf},
    {MAGIC("\200\2\212\nl\374\234F\371 j\250P\31"), refuse_legacy},
};

static const kind *kind_of(const unsigned char *bytes, size_t count)
{
    static const kind tar = {NULL, 0, refuse_tar};
    if (count < 8 || locus_load_u64(bytes) <= LOCUS_FILE_MAX_HEADER) return NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (count >= kinds[i].bytes && memcmp(bytes, kinds[i].magic, kinds[i].bytes) == 0)
            return &kinds[i];
    return count >= 262 && memcmp(bytes + 257, "ustar", 5) == 0 ? &tar : NULL;
}

/* NULL where safetensors is what it may be. */
static locus_status open_other(locus_file **file, const char *path,
                               const locus_allocator *allocator, locus_error *error)
{
    unsigned char bytes[LOCUS_SNIFF_BYTES];
    int descriptor = -1;
    uint64_t size = 0;
    LOCUS_TRY(locus_system_open(&descriptor, &size, path, error));
    const size_t count = size < sizeof bytes ? (size_t)size : sizeof bytes;
    locus_status status = locus_system_read(descriptor, 0, bytes, count, error);
    const kind *k = status == LOCUS_OK ? kind_of(bytes, count) : NULL;
    if (k == NULL) {
        locus_system_close(descriptor);
        return status;
    }
    *file = locus_file_new(descriptor, size, path, allocator); /* takes the descriptor */
    if (*file == NULL) {
        locus_system_close(descriptor);
        return locus_fail(error, LOCUS_ERR_MEMORY, "no memory to open the file");
    }
    status = k->parse(*file, error);
    if (status == LOCUS_OK) return LOCUS_OK;
    locus_file_close(*file);
    *file = NULL;
    return status;
}

locus_status locus_weights_open(locus_file **file, const char *path,
                                const locus_allocator *allocator, locus_error *error)
{
    if (file == NULL || path == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "locus_weights_open: NULL argument");
    *file = NULL;
    const locus_status status = open_other(file, path, allocator, error);
    if (status != LOCUS_OK) return locus_file_fail_in(error, status, path);
    return *file != NULL ? LOCUS_OK : locus_file_open(file, path, allocator, error);
}

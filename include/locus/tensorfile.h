/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TENSORFILE_H
#define LOCUS_TENSORFILE_H

/* Strict safetensors files: a reader that refuses what the format's rules
 * forbid, in bounded memory and time, and a writer that leaves the old file or
 * the new one, never a part. docs/formats.md lists the rules and the limits. */

#include <locus/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LOCUS_FILE_MAX_RANK 16
#define LOCUS_FILE_MAX_HEADER 100000000u
#define LOCUS_FILE_MAX_TENSORS 1000000u
#define LOCUS_FILE_MAX_NAME 4096u
#define LOCUS_FILE_MAX_DIM (((uint64_t)1 << 48) - 1)

/* One tensor of an open file. Pointers live as long as the file is open. */
typedef struct locus_file_tensor {
    const char *name;  /* UTF-8, NUL-terminated, unescaped; never use it as a path     */
    const char *dtype; /* "F32", "BF16", ... as the file spells it           */
    uint32_t bits;     /* of one element                                     */
    uint32_t rank;
    const uint64_t *shape; /* rank numbers                                       */
    uint64_t begin, end;   /* bytes, relative to the data section                */
} locus_file_tensor;

typedef struct locus_file locus_file;

/* Open and validate the whole header before anything is exposed. *file is NULL on
 * failure. LOCUS_ERR_FORMAT: the file is refused, `error` names the file, the byte
 * or the tensor, what was found and what was expected. LOCUS_ERR_IO: the system
 * could not open or read it. Only regular files are opened; never blocks. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_file_open(locus_file **file, const char *path,
                                                        const locus_allocator *allocator,
                                                        locus_error *error);
/* The same for files that hold the weights of a model: safetensors; the ZIP of torch.save
 * (pytorch_model.bin), a dict of plain tensors, nothing of whose pickle is executed; GGUF of
 * floats and Q8_0, whose blocks come back as F32. Views come back dense; reading a transposed one
 * takes memory. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_weights_open(locus_file **file, const char *path,
                                                           const locus_allocator *allocator,
                                                           locus_error *error);
LOCUS_API void locus_file_close(locus_file *file);

LOCUS_API size_t locus_file_count(const locus_file *file);
LOCUS_API const locus_file_tensor *locus_file_tensor_at(const locus_file *file, size_t index);
LOCUS_API const locus_file_tensor *locus_file_find(const locus_file *file, const char *name);

/* The string -> string map of "__metadata__", in the order of the file. */
LOCUS_API size_t locus_file_metadata_count(const locus_file *file);
LOCUS_API void locus_file_metadata_at(const locus_file *file, size_t index, const char **key,
                                      const char **value);
LOCUS_API const char *locus_file_metadata(const locus_file *file, const char *key); /* or NULL */

LOCUS_API uint64_t locus_file_bytes(const locus_file *file);        /* whole file        */
LOCUS_API uint64_t locus_file_header_bytes(const locus_file *file); /* the JSON part     */

/* Read raw little-endian bytes [from, from + count) of one tensor's data. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_file_read(const locus_file *file, size_t index,
                                                        uint64_t from, uint64_t count, void *out,
                                                        locus_error *error);

typedef struct locus_file_writer locus_file_writer;

/* Writes go to a new file beside `path`; nothing appears under `path` until
 * locus_file_commit has synced it and renamed it. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_file_create(locus_file_writer **writer,
                                                          const char *path,
                                                          const locus_allocator *allocator,
                                                          locus_error *error);
LOCUS_API LOCUS_MUST_CHECK locus_status locus_file_put_metadata(locus_file_writer *writer,
                                                                const char *key, const char *value,
                                                                locus_error *error);

/* Declare a tensor; `data` is dense, in native byte order, borrowed until commit. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_file_put(locus_file_writer *writer, const char *name,
                                                       const char *dtype, uint32_t rank,
                                                       const uint64_t *shape, const void *data,
                                                       locus_error *error);
/* Write, sync, rename, sync the folder; frees the writer whatever happens. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_file_commit(locus_file_writer *writer,
                                                          locus_error *error);
/* Forget everything; nothing is left on disk. NULL is allowed. */
LOCUS_API void locus_file_abandon(locus_file_writer *writer);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_STATUS_H
#define LOCUS_STATUS_H

/* Symbols, status codes and error messages: included by every other header. */

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32) && defined(LOCUS_BUILDING)
#define LOCUS_API __declspec(dllexport)
#elif defined(_WIN32)
#define LOCUS_API
#elif defined(__GNUC__)
#define LOCUS_API __attribute__((visibility("default")))
#else
#define LOCUS_API
#endif
#if defined(__GNUC__)
#define LOCUS_MUST_CHECK __attribute__((warn_unused_result))
#else
#define LOCUS_MUST_CHECK
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Structs that a caller allocates begin with `size`, sizeof of the struct as the caller
 * compiled it, unless they say that they never grow. Later versions append fields. The
 * library reads and writes up to the smaller of both sizes: fields that an older caller
 * does not have read as their defaults; fields that an older library does not know must
 * be 0. Structs that the library hands out by pointer may grow at their end: they are
 * never walked by sizeof.
 *
 * Text that a struct points to (scheme, isa, path, options as text) is read during the call
 * it is passed to and may go afterwards; only an allocator must outlive what was made
 * with it. */

/* Every fallible call returns one of these. LOCUS_OK is 0. */
typedef enum locus_status {
    LOCUS_OK = 0,
    LOCUS_ERR_ARGUMENT,    /* a NULL or contradictory argument: a bug of the caller      */
    LOCUS_ERR_SCHEME,      /* no scheme of that name                                     */
    LOCUS_ERR_OPTION,      /* an option is unknown, missing or out of range              */
    LOCUS_ERR_TENSOR,      /* a tensor is missing, unknown, of the wrong type or shape   */
    LOCUS_ERR_RANGE,       /* a position needs a table row that does not exist           */
    LOCUS_ERR_OVERLAP,     /* an output overlaps an input or another output              */
    LOCUS_ERR_WORKSPACE,   /* the workspace is smaller than the size query said          */
    LOCUS_ERR_MEMORY,      /* the allocator returned NULL, or a size does not fit        */
    LOCUS_ERR_FORMAT,      /* a file breaks a rule of its format                         */
    LOCUS_ERR_IO,          /* the system refused to open, read, write or sync a file     */
    LOCUS_ERR_ISA,         /* an instruction set is unknown or not on this CPU           */
    LOCUS_ERR_UNSUPPORTED, /* the oracle knows it, the kernels do not                    */
    LOCUS_STATUS_COUNT
} locus_status;

/* One line in English for a status, never NULL. */
LOCUS_API const char *locus_status_text(locus_status status);

/* Where a failing call explains itself: one line without a newline, control
 * bytes of file text escaped. Calls that succeed leave it untouched; passing
 * NULL instead of a locus_error is always allowed. This struct never grows. */
typedef struct locus_error {
    char text[512];
} locus_error;

/* The one of `count` names that `word` is probably a misspelling of, or NULL: what messages about
 * unknown words suggest. */
LOCUS_API const char *locus_nearest(const char *word, const char *const *names, size_t count);

/* Memory comes from here wherever a struct has an `allocator` field; NULL there
 * means malloc and free. `allocate` returns memory aligned to 64 bytes or NULL.
 * The allocator must outlive what was made with it. This struct never grows. */
typedef struct locus_allocator {
    void *(*allocate)(void *context, size_t bytes);
    void (*release)(void *context, void *memory);
    void *context;
} locus_allocator;

#define LOCUS_VERSION_MAJOR 0
#define LOCUS_VERSION_MINOR 2
#define LOCUS_VERSION_PATCH 0

/* The version of the library that is running, "0.2.0". */
LOCUS_API const char *locus_version(void);

#ifdef __cplusplus
}
#endif
#endif

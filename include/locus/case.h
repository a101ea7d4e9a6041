/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_CASE_H
#define LOCUS_CASE_H

/* Case files: one attention call in one safetensors file (docs/formats.md). */

#include <locus/attention.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct locus_case locus_case;

/* Read and check a whole case file: metadata, tensor names, types, shapes, rows. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_case_load(locus_case **loaded, const char *path,
                                                        const locus_allocator *allocator,
                                                        locus_error *error);
LOCUS_API void locus_case_free(locus_case *loaded);

LOCUS_API uint32_t locus_case_level(const locus_case *loaded); /* LOCUS_ATTEND or LOCUS_LAYER */
LOCUS_API int locus_case_wants_gradients(const locus_case *loaded);
LOCUS_API const locus_config *locus_case_config(const locus_case *loaded);
LOCUS_API const locus_tensors *locus_case_inputs(const locus_case *loaded);

/* Write a call as a case file, atomically: what locus_case_load reads. Tensors are dense; `note`
 * may be NULL. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_case_write(const char *path, uint32_t level,
                                                         const locus_config *config,
                                                         const locus_tensors *in, const char *note,
                                                         locus_error *error);

typedef struct locus_case_run_options {
    uint32_t size;    /* sizeof(locus_case_run_options)        */
    uint32_t oracle;  /* 1: the double path; results are F64   */
    uint32_t threads; /* 0: the default                        */
    const char *isa;  /* ceiling, NULL: none                   */
} locus_case_run_options;

/* Run the call. Results replace those of an earlier run. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_case_run(locus_case *loaded,
                                                       const locus_case_run_options *options,
                                                       locus_error *error);

/* The kernel table and path of the last run ("double", "oracle" after the oracle). */
LOCUS_API const char *locus_case_isa(const locus_case *loaded);
LOCUS_API const char *locus_case_path(const locus_case *loaded);

/* Results of the last run by number: "out", "lse", "grad.q", ... */
LOCUS_API size_t locus_case_result_count(const locus_case *loaded);
LOCUS_API const char *locus_case_result_name(const locus_case *loaded, size_t index);
LOCUS_API const locus_tensor *locus_case_result(const locus_case *loaded, size_t index);

/* How far result `index` is from the file's `want.` tensor of that name. */
typedef struct locus_case_difference {
    uint32_t size;     /* sizeof(locus_case_difference), set before; filled up to it    */
    int expected;      /* 1: the file holds a `want.` tensor for this result            */
    double worst;      /* largest |got - want| / max(1, max |want|); NAN where one side
                         alone is NaN, or infinities differ                            */
    double tolerance;  /* what the file says, else 5e-6 for out and lse, 2e-5 for gradients */
    int passed;        /* worst <= tolerance                                            */
    uint64_t want_nan; /* elements of the `want.` tensor that are NaN                  */
} locus_case_difference;
LOCUS_API LOCUS_MUST_CHECK locus_status locus_case_compare(const locus_case *loaded, size_t index,
                                                           locus_case_difference *difference,
                                                           locus_error *error);

/* Write all results of the last run into a new file, atomically. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_case_save(const locus_case *loaded, const char *path,
                                                        locus_error *error);

#ifdef __cplusplus
}
#endif
#endif

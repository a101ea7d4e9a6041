/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_PICTURE_H
#define LOCUS_PICTURE_H

/* The pictures of a scheme, as `locus plot` draws them:
 *
 *     locus_picture_request request;
 *     locus_picture *picture;
 *     locus_picture_request_init(&request, "t5");
 *     status = locus_picture_new(&picture, &request, &error);
 *     status = locus_figure_render(locus_picture_figure(picture), LOCUS_FORMAT_SVG, NULL, &svg,
 *                                  &error);
 *     locus_picture_free(picture);
 *
 * All numbers are double: from the scheme's own rules and from the explainer. */

#include <locus/plot.h>
#include <locus/problem.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    LOCUS_PICTURE_LENGTH = 1024, /* positions at most, also of a case */
    LOCUS_PICTURE_TOKENS = 256,  /* with names                        */
    LOCUS_PICTURE_HEADS = 64,    /* of a made-up call                 */
    LOCUS_PICTURE_DIM = 256,
};

typedef struct locus_picture_request {
    uint32_t size;      /* sizeof(locus_picture_request) as the caller compiled it         */
    const char *scheme; /* NULL: that of the case                                          */
    const char *what;   /* kinds with commas between; NULL: those that show best what the
                                  scheme is about                                                 */
    const char *const
        *tokens; /* names of rows and columns; NULL: a built-in sentence, or numbers */
    size_t token_count;
    int64_t length; /* instead of tokens: positions, or the farthest distance; 0: chosen      */
    int64_t heads;  /* of the made-up call; 0: 4                                              */
    int64_t dim;    /* width of a head; 0: chosen                                             */
    int64_t head;   /* show this head only; -1: all                                           */
    int64_t window; /* a query sees keys at most this far away; -1: all                       */
    uint32_t causal;
    uint64_t seed;                         /* of the made-up numbers                          */
    const locus_problem_setting *settings; /* options of the scheme; NULL: the usual ones     */
    const char *path;                      /* a case file: its q, k, tables, options and masks
                                              instead of made-up ones; NULL: none             */
    uint32_t threads;                      /* 0: the default */
    const locus_allocator *allocator;      /* NULL: malloc                                    */
} locus_picture_request;

/* Nothing asked for: what `locus plot SCHEME` draws. The first is for callers without this
 * header: `size` is that of their struct. */
LOCUS_API void locus_picture_request_init_sized(locus_picture_request *request, size_t size,
                                                const char *scheme);
static inline void locus_picture_request_init(locus_picture_request *request, const char *scheme)
{
    locus_picture_request_init_sized(request, sizeof *request, scheme);
}

typedef struct locus_picture locus_picture;

/* Make the whole picture; it borrows nothing from the request but the allocator. On failure
 * *picture is NULL. A field that is refused is named first: "head: found 9, expected 0 to 3",
 * with LOCUS_ERR_ARGUMENT for all but options of the scheme and what a case holds. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_picture_new(locus_picture **picture,
                                                          const locus_picture_request *request,
                                                          locus_error *error);
LOCUS_API void locus_picture_free(locus_picture *picture); /* NULL is allowed */

/* To be rendered; lives as long as the picture. */
LOCUS_API const locus_figure *locus_picture_figure(const locus_picture *picture);

/* What `what` is made of. */
typedef struct locus_picture_kind {
    const char *name;  /* "rows"                                   */
    const char *title; /* in the title of the picture              */
    const char *help;  /* one line: what is to be seen             */
} locus_picture_kind;

/* The kinds that a scheme has, NULL: all of them. NULL beyond the end. */
LOCUS_API const locus_picture_kind *locus_picture_kind_at(const char *scheme, size_t index);

/* The locus_ink of a term of a score, by the name that locus_explain and locus_term_name give it ("content-position",
 * "w.r", "rotation"): the same in every picture. What has no place among the eight has one ink. */
LOCUS_API uint32_t locus_picture_term_ink(const char *name);

#ifdef __cplusplus
}
#endif
#endif

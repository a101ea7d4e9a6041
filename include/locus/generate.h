/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_GENERATE_H
#define LOCUS_GENERATE_H

/* Texts continued or translated, token by token, by a model whose head is LOCUS_MODEL_GENERATE.
 *
 *     locus_generation how = {.size = sizeof how};
 *     locus_generation_init(&how, model);                 as generation_config.json says
 *     how.beams = 4;
 *     locus_generated *texts;
 *     locus_generate(&texts, model, &how, ids, offsets, count, &error);
 *     const int32_t *first = locus_generated_ids(texts, 0, &length);
 *
 * Greedy and beam search choose the tokens that transformers 4.57.6 chooses. Texts share steps
 * but nothing else: each gives the same bits alone and in any batch, with any number of threads. */

#include <locus/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- step by step ---- */

/* What a decoder keeps from step to step: keys and values of every layer, for `rows` texts. Of one
 * thread at a time. Belongs to the model, which must outlive it. */
typedef struct locus_session locus_session;
LOCUS_API LOCUS_MUST_CHECK locus_status locus_session_new(locus_session **session,
                                                          const locus_model *model, int64_t rows,
                                                          locus_error *error);
LOCUS_API void locus_session_free(locus_session *session); /* NULL is allowed */

/* Encoder-decoders, before the first step: run the encoder over `texts` texts, which divide the
 * rows: as many rows are about each, in order. `hidden` as in locus_model_results, or NULL. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_session_read(locus_session *session,
                                                           const int32_t *ids,
                                                           const int64_t *offsets, int64_t texts,
                                                           float *const *hidden,
                                                           locus_error *error);

/* Tokens offsets[r] .. offsets[r + 1] - 1 continue row r; a row may have none. Of the results:
 * hidden, logits, next. Room for lengths that were not there before is made first; after that
 * nothing is allocated. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_session_step(locus_session *session,
                                                           const int32_t *ids,
                                                           const int64_t *offsets,
                                                           const locus_model_results *results,
                                                           locus_error *error);

/* Row r goes on where row from[r] is. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_session_reorder(locus_session *session,
                                                              const int64_t *from,
                                                              locus_error *error);

/* ---- whole texts ---- */

/* When a beam search ends: `beams` texts are finished and none can become better by the estimate of
 * transformers; as soon as so many are finished; or when none can become better. */
typedef enum locus_early_stopping {
    LOCUS_STOP_ESTIMATE = 0,
    LOCUS_STOP_EARLY,
    LOCUS_STOP_NEVER,
} locus_early_stopping;

/* How to generate. Start from locus_generation_init. */
typedef struct locus_generation {
    uint32_t size;           /* sizeof(locus_generation) as the caller compiled it            */
    uint32_t sample;         /* 1: draw each token, 0: take the best                          */
    int64_t beams;           /* 1: no beam search                                             */
    int64_t max_length;      /* tokens of a whole sequence, its prompt included               */
    int64_t max_new_tokens;  /* behind the prompt, goes before max_length; 0: not given       */
    int64_t min_length;      /* no end before so many                                         */
    int64_t min_new_tokens;  /* the same behind the prompt                                    */
    int64_t no_repeat_ngram; /* so many tokens never occur twice in a row; 0: they may        */
    int64_t top_k;           /* sampling: of so many best; 0: of all                          */
    double top_p;            /* sampling: of the best that hold this probability together     */
    double temperature;      /* sampling: logits are divided by it                            */
    double length_penalty;   /* a beam's score is divided by its length to this power         */
    double repetition_penalty;
    uint64_t seed;           /* of Philox4x32-10, whose counter is the number of the new token */
    uint32_t early_stopping; /* locus_early_stopping                                          */
    int32_t start;           /* first token of a decoder behind an encoder, and of a text without
                                tokens, which stays empty otherwise; -1: none                 */
    int32_t forced_begin;    /* first token behind it; -1: none                               */
    int32_t forced_end;      /* last token at max_length; -1: none                            */
    const int32_t *ends;     /* tokens that end a text                                        */
    int64_t end_count;
    const int32_t *suppressed; /* tokens that never occur                                     */
    int64_t suppressed_count;
    const int32_t *bad_words; /* sequences that never occur, one behind the other:            */
    const int64_t *bad_word_offsets; /* [bad_word_count + 1]                                  */
    int64_t bad_word_count;
    const int32_t *prompt; /* tokens of the decoder of an encoder-decoder, instead of `start` */
    int64_t prompt_count;
    /* Told each token as it is chosen, but not by beam search. NULL: nobody */
    void (*token)(void *context, int64_t text, int32_t id);
    void *context;
    uint32_t renormalize; /* 1: beam search counts probabilities among what is not forbidden */
    uint32_t reserved;    /* 0 */
} locus_generation;

/* What generation_config.json says, else config.json, else transformers' defaults, which are greedy
 * and 20 tokens. Fills *settings, whose size is set, up to that size; arrays are the model's. */
LOCUS_API void locus_generation_init(locus_generation *settings, const locus_model *model);

/* What became of the texts. */
typedef struct locus_generated locus_generated;
LOCUS_API LOCUS_MUST_CHECK locus_status locus_generate(locus_generated **generated,
                                                       const locus_model *model,
                                                       const locus_generation *settings,
                                                       const int32_t *ids, const int64_t *offsets,
                                                       int64_t texts, locus_error *error);
LOCUS_API void locus_generated_free(locus_generated *generated); /* NULL is allowed */

/* The whole sequence of a text: prompt or start first, the end last if it was reached. */
LOCUS_API const int32_t *locus_generated_ids(const locus_generated *generated, int64_t text,
                                             int64_t *count);
/* The sum of the logarithms of the chosen tokens' probabilities; of a beam search, divided by the
 * length to the power of length_penalty. */
LOCUS_API double locus_generated_score(const locus_generated *generated, int64_t text);

/* ---- texts that come and go ---- */

/* Rows that write one text each, of a decoder without an encoder. A text begins and ends between two
 * steps, whatever the others do, and becomes what locus_generate makes of it alone. Of one thread at
 * a time. Belongs to the model, which must outlive it. */
typedef struct locus_writer locus_writer;
LOCUS_API LOCUS_MUST_CHECK locus_status locus_writer_new(locus_writer **writer,
                                                         const locus_model *model, int64_t rows,
                                                         locus_error *error);
LOCUS_API void locus_writer_free(locus_writer *writer); /* NULL is allowed */

/* A text begins in the first free row, *row; -1: every row writes. *settings, without beams, is copied,
 * its arrays must live as long as the text; `token` of it is told the row in place of the text. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_writer_begin(locus_writer *writer,
                                                           const locus_generation *settings,
                                                           const int32_t *ids, int64_t count,
                                                           int64_t *row, locus_error *error);
/* One token more of every text that is not done. If this fails, all rows have to be ended. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_writer_step(locus_writer *writer, locus_error *error);
/* The tokens of a row so far, its prompt first; *done: no more will come. NULL: nothing is written there. */
LOCUS_API const int32_t *locus_writer_ids(const locus_writer *writer, int64_t row, int64_t *count,
                                          int *done);
/* The row is free, whether its text was done or not. */
LOCUS_API void locus_writer_end(locus_writer *writer, int64_t row);

#ifdef __cplusplus
}
#endif
#endif

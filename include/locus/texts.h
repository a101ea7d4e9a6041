/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TEXTS_H
#define LOCUS_TEXTS_H

/* Texts into a trained model: a list that grows by tokenizing and runs as one ragged batch.
 *
 *     locus_texts *texts;
 *     locus_texts_new(&texts, model, tokenizer, NULL, &error);
 *     locus_texts_add(texts, &input, &error);                  once per text
 *     locus_texts_forward(texts, &results, &error);            see locus/model.h for the results
 *
 * examples/embed.c is a whole program. One list per thread; model and tokenizer are shared. */

#include <locus/model.h>
#include <locus/text.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct locus_texts locus_texts;

/* `tokenizer` NULL: ids only. Model and tokenizer must outlive the list. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_texts_new(locus_texts **texts,
                                                        const locus_model *model,
                                                        const locus_tokenizer *tokenizer,
                                                        const locus_allocator *allocator,
                                                        locus_error *error);
LOCUS_API void locus_texts_free(locus_texts *texts); /* NULL is allowed */

/* Add a text, or a pair of them. Into a model whose modules.json pools, it goes as sentence-transformers
 * gives it: behind the prompt of locus_model_info, cut to its cut_tokens unless `truncate` says
 * otherwise. LOCUS_ERR_RANGE: the model takes fewer tokens or does not know an
 * id; then nothing was added. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_texts_add(locus_texts *texts,
                                                        const locus_text_input *input,
                                                        locus_error *error);
/* Add ids as they are, of token type 0. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_texts_add_ids(locus_texts *texts, const int32_t *ids,
                                                            int64_t count, locus_error *error);
LOCUS_API void locus_texts_clear(locus_texts *texts); /* its memory stays for the next ones */

/* What is in the list, until the next change: text t has the ids offsets[t] .. offsets[t + 1] - 1. */
LOCUS_API int64_t locus_texts_count(const locus_texts *texts);
LOCUS_API const int64_t *locus_texts_offsets(const locus_texts *texts);
LOCUS_API const int32_t *locus_texts_ids(const locus_texts *texts);
LOCUS_API const int32_t *locus_texts_types(const locus_texts *texts);    /* NULL: all 0 */
LOCUS_API const uint8_t *locus_texts_segments(const locus_texts *texts); /* as in <locus/text.h>; of
                                                                             ids 0 */

/* locus_model_forward on everything in the list, with memory that the list keeps. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_texts_forward(locus_texts *texts,
                                                            const locus_model_results *results,
                                                            locus_error *error);

/* The same with logits of the tokens rows[0 .. count - 1] of the list alone: a head that fills masks
 * has as many of each as the vocabulary has tokens. rows NULL: of all. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_texts_forward_rows(locus_texts *texts,
                                                                 const int32_t *rows, int64_t count,
                                                                 const locus_model_results *results,
                                                                 locus_error *error);

#ifdef __cplusplus
}
#endif
#endif

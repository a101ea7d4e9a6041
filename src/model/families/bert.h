/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_FAMILIES_BERT_H
#define LOCUS_MODEL_FAMILIES_BERT_H

/* What BERT's kin take over from it. */

#include "model/description.h"

extern const model_name model_bert_names[];
locus_status model_describe_bert(const model_settings *settings, model_description *description,
                                 locus_error *error);

/* RoBERTa and XLM-RoBERTa: BERT whose positions are counted from pad_token_id + 1, over the tokens
 * that are not padding. */
locus_status model_describe_roberta(const model_settings *settings, model_description *description,
                                    locus_error *error);

#endif

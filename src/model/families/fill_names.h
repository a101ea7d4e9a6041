/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_FAMILIES_FILL_NAMES_H
#define LOCUS_MODEL_FAMILIES_FILL_NAMES_H

/* Heads that fill masks, by the names that several families share. */

#include "model/description.h"

/* BERT, DeBERTa and RoFormer. */
#define MODEL_FILL_NAMES_CLS                                                                       \
    {SLOT_FILL_MAP, "cls.predictions.transform.dense.weight"},                                     \
        {SLOT_FILL_MAP_BIAS, "cls.predictions.transform.dense.bias"},                              \
        {SLOT_FILL_NORM_GAIN, "cls.predictions.transform.LayerNorm.weight"},                       \
        {SLOT_FILL_NORM_SHIFT, "cls.predictions.transform.LayerNorm.bias"},                        \
        {SLOT_FILL_OUT, "cls.predictions.decoder.weight"},                                         \
        {SLOT_FILL_OUT_BIAS, "cls.predictions.bias"},                                              \
    {                                                                                              \
        SLOT_FILL_OUT_BIAS, "cls.predictions.decoder.bias"                                         \
    }

/* RoBERTa and MPNet. */
#define MODEL_FILL_NAMES_LM_HEAD                                                                   \
    {SLOT_FILL_MAP, "lm_head.dense.weight"}, {SLOT_FILL_MAP_BIAS, "lm_head.dense.bias"},           \
        {SLOT_FILL_NORM_GAIN, "lm_head.layer_norm.weight"},                                        \
        {SLOT_FILL_NORM_SHIFT, "lm_head.layer_norm.bias"},                                         \
        {SLOT_FILL_OUT, "lm_head.decoder.weight"}, {SLOT_FILL_OUT_BIAS, "lm_head.bias"},           \
    {                                                                                              \
        SLOT_FILL_OUT_BIAS, "lm_head.decoder.bias"                                                 \
    }

/* DeBERTa, as its authors published it: logits by the word table. */
#define MODEL_FILL_NAMES_LM_PREDICTIONS                                                            \
    {SLOT_FILL_MAP, "lm_predictions.lm_head.dense.weight"},                                        \
        {SLOT_FILL_MAP_BIAS, "lm_predictions.lm_head.dense.bias"},                                 \
        {SLOT_FILL_NORM_GAIN, "lm_predictions.lm_head.LayerNorm.weight"},                          \
        {SLOT_FILL_NORM_SHIFT, "lm_predictions.lm_head.LayerNorm.bias"},                           \
    {                                                                                              \
        SLOT_FILL_OUT_BIAS, "lm_predictions.lm_head.bias"                                          \
    }

#endif

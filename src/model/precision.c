/* SPDX-License-Identifier: Apache-2.0 */
#include "model/precision.h"

#include <locus/model.h>

#include "core/error.h"
#include "model/ops/ops.h"

/* Integers are:
 *     i16    weights of linear maps: 16 bits, a scale for each output and 128 inputs; rows that go
 *            through them: 16 bits. Tables of words: 16 bits.
 *     int8   the same in 8 bits: behind a Walsh-Hadamard transform, rows in 8 bits; in models that
 *            generate (and the encoders before their decoders), 8 bits in groups of 64 and rows in
 *            16. Maps to the logits of a vocabulary: as i16. Tables of words: 8 bits in groups of 64.
 * Floats stay:
 *     maps of fewer than LEAST_SIDE outputs or inputs (labels), or of too many inputs
 *     convolutions, norms, biases, tables of positions and types, everything that is made once
 *     weights that hold NaN, infinities or numbers beyond 1e30
 * What is decided by the model alone, never by the rows of a call, keeps the bits of a text the same
 * alone and in a batch. */

enum { WEIGHT = 1, LEAST_SIDE = 16 };

static const struct {
    const char *name, *keeps;
} precisions[] = {
    [LOCUS_EXACT] = {"exact", "everything in float32"},
    [LOCUS_I16] = {"i16", "maps in 16 bits, a scale for 128 inputs; words in 16 bits; "
                          "convolutions, norms, biases, positions, labels, attention in float32"},
    [LOCUS_INT8] = {"int8",
                    "maps in 8 bits behind a transform of 128 inputs (of models that generate: in "
                    "groups of 64, rows in 16 bits), to a vocabulary in 16; words in 8 bits; "
                    "convolutions, norms, biases, positions, labels, attention in float32"},
};
enum { PRECISIONS = sizeof precisions / sizeof *precisions };

const char *locus_precision_name(uint32_t precision)
{
    return precision < PRECISIONS ? precisions[precision].name : NULL;
}

const char *locus_precision_keeps(uint32_t precision)
{
    return precision < PRECISIONS ? precisions[precision].keeps : NULL;
}

static int gives_vocabulary(const program *p, const op *o)
{
    const gift_kind gives = p->values[o->out].gives;
    return gives == GIVES_LOGITS || gives == GIVES_NEXT;
}

static locus_quant_kind kind_of_map(const program *p, const op *o)
{
    const value_info *w = &p->values[o->in[WEIGHT]];
    if (!w->constant || p->values[o->out].constant) return LOCUS_QUANT_KINDS;
    if (w->count < LEAST_SIDE || w->width < LEAST_SIDE || w->width > LOCUS_QUANT_MOST_INPUTS)
        return LOCUS_QUANT_KINDS;
    if (p->precision == LOCUS_I16 || gives_vocabulary(p, o)) return LOCUS_QUANT_I16;
    return p->generates ? LOCUS_QUANT_W8 : LOCUS_QUANT_H8;
}

static locus_quant_kind kind_of_table(const program *p, const op *o, int input)
{
    const value_info *table = &p->values[o->in[input]];
    if (o->as.embed.by[input] != BY_IDS || !table->constant || table->count < LEAST_SIDE ||
        table->width > LOCUS_QUANT_MOST_INPUTS)
        return LOCUS_QUANT_KINDS;
    return p->precision == LOCUS_I16 ? LOCUS_QUANT_I16 : LOCUS_QUANT_W8;
}

locus_quant_kind precision_of(const program *p, const op *o, int input)
{
    if (p->precision == LOCUS_EXACT || o->in[input] == NONE) return LOCUS_QUANT_KINDS;
    if (o->kind == &op_map && input == WEIGHT) return kind_of_map(p, o);
    if (o->kind == &op_embed) return kind_of_table(p, o, input);
    return LOCUS_QUANT_KINDS;
}

int precision_packed(const program *p, const op *o, int input)
{
    const value_info *w = &p->values[o->in[input]];
    return o->kind == &op_embed ? w->words != NULL : w->packed != NULL || w->quantized != NULL;
}

locus_status precision_set(program *p, const locus_model_config *config, locus_error *error)
{
    p->precision = config != NULL ? config->precision : LOCUS_EXACT;
    if (p->precision >= PRECISIONS)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "model: precision: found %u, expected exact, i16 or int8",
                          (unsigned)p->precision);
    if (p->precision != LOCUS_EXACT && config->trainable != 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "model: precision %s: a model that is trained is exact",
                          precisions[p->precision].name);
    p->integers = locus_quant_kernels_pick(config != NULL ? config->isa : NULL);
    return LOCUS_OK;
}

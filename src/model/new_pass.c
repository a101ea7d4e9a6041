/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "core/memory.h"
#include "core/size.h"
#include "model/pass.h"

/* Room for what the decoder reads of the encoder and for its own workspace, behind the encoder's. */
static locus_status add_workspace(locus_model_pass *p, locus_error *error)
{
    const model_description *d = &p->decoder->model->description;
    const uint64_t extents[] = {(uint64_t)p->tokens, 2, (uint64_t)(d->heads * d->head_dim),
                                sizeof(float)};
    uint64_t at = p->bytes, source = 0, all = 0;
    if (!locus_pad_u64(&at, at, LOCUS_ALIGNMENT) || !locus_product_u64(&source, extents, 4) ||
        !locus_pad_u64(&source, source, LOCUS_ALIGNMENT) || !locus_add_u64(&all, at, source) ||
        !locus_add_u64(&all, all, p->decoder->bytes) ||
        !locus_add_u64(&all, all, LOCUS_ALIGNMENT) || !locus_to_size(&p->bytes, all))
        return locus_fail(error, LOCUS_ERR_MEMORY,
                          "model: these lengths need more memory than a machine can address");
    p->source_at = (size_t)at;
    p->decoder_at = (size_t)(at + source);
    return LOCUS_OK;
}

static locus_status add_decoder(locus_model_pass *p, const int64_t *offsets, locus_error *error)
{
    const int64_t count = p->ragged.sequences;
    p->decoder_rows =
        locus_allocate(p->model->allocator, 2 * (size_t)count, sizeof *p->decoder_rows);
    if (p->decoder_rows == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory");
    for (int64_t s = 0; s < count; s++) p->decoder_rows[count + s] = s;
    p->source = (model_cache){.rows = count,
                              .past = p->decoder_rows,
                              .text = p->decoder_rows + count,
                              .source_tokens = p->tokens,
                              .source_offsets = p->offsets};
    LOCUS_TRY(model_pass_make(&p->decoder, p->model->decoder, &p->source, count, error));
    LOCUS_TRY(model_pass_set(p->decoder, offsets, error));
    return add_workspace(p, error);
}

static locus_status new_pass(locus_model_pass **out, const locus_model *model,
                             const int64_t *offsets, const int64_t *decoder_offsets,
                             int64_t sequences, locus_error *error)
{
    LOCUS_TRY(model_pass_make(out, model, NULL, sequences, error));
    locus_status status = model_pass_set(*out, offsets, error);
    if (status == LOCUS_OK && decoder_offsets != NULL)
        status = add_decoder(*out, decoder_offsets, error);
    if (status == LOCUS_OK && model->trainable != NULL) status = model_count_tape(*out, error);
    if (status != LOCUS_OK) {
        locus_model_pass_free(*out);
        *out = NULL;
    }
    return status;
}

locus_status locus_model_pass_new(locus_model_pass **out, const locus_model *model,
                                  const int64_t *offsets, int64_t sequences, locus_error *error)
{
    if (out == NULL || model == NULL || offsets == NULL || sequences < 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "model: NULL or negative argument");
    return new_pass(out, model, offsets, NULL, sequences, error);
}

locus_status locus_model_pass_both(locus_model_pass **out, const locus_model *model,
                                   const int64_t *offsets, const int64_t *decoder_offsets,
                                   int64_t sequences, locus_error *error)
{
    if (out == NULL || model == NULL || offsets == NULL || decoder_offsets == NULL || sequences < 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "model: NULL or negative argument");
    *out = NULL;
    if (model->decoder == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "model: it has no decoder behind an encoder (model_type %s)",
                          model->family->type);
    return new_pass(out, model, offsets, decoder_offsets, sequences, error);
}

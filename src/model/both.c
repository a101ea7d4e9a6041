/* SPDX-License-Identifier: Apache-2.0 */
#include "core/adopt.h"
#include "core/error.h"
#include "core/memory.h"
#include "model/pass.h"

/* An encoder and the decoder behind it in one pass: the states of a text stay where the encoder left
 * them, and every layer of the decoder makes its k and v of them. */

static locus_status run_decoder(const locus_model_pass *pass, const locus_model_batch *batch,
                                const locus_model_results *results, unsigned char *workspace,
                                locus_error *error)
{
    locus_model_pass decoder = *pass->decoder;
    model_cache source = pass->source;
    pass_work encoder;
    const locus_model_batch own = {.size = sizeof own, .ids = batch->decoder_ids};
    const locus_model_results to = {.size = sizeof to,
                                    .hidden = results->decoder_hidden,
                                    .logits = results->logits,
                                    .qkv = results->decoder_qkv,
                                    .cross_q = results->cross_q,
                                    .cross_kv = results->cross_kv};
    const uintptr_t start = ((uintptr_t)workspace + LOCUS_ALIGNMENT - 1) & ~(LOCUS_ALIGNMENT - 1);
    if (!model_pass_carve(pass, (void *)start, &encoder))
        return locus_fail(error, LOCUS_ERR_WORKSPACE, "workspace: cannot be laid out");
    source.states = encoder.h;
    source.projected = (float *)(void *)((unsigned char *)start + pass->source_at);
    source.source = source.projected;
    decoder.cache = &source;
    return model_forward_stack(&decoder, &own, &to, (unsigned char *)start + pass->decoder_at,
                               decoder.bytes, error);
}

locus_status locus_model_forward(const locus_model_pass *pass, const locus_model_batch *batch,
                                 const locus_model_results *results, void *workspace,
                                 size_t workspace_bytes, locus_error *error)
{
    locus_model_batch own_batch = {.size = sizeof own_batch};
    locus_model_results own_results = {.size = sizeof own_results};
    if (pass == NULL || batch == NULL || results == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "model: NULL argument");
    LOCUS_ADOPT(batch, own_batch, "model batch", error);
    LOCUS_ADOPT(results, own_results, "model results", error);
    if (pass->decoder == NULL)
        return model_forward_stack(pass, batch, results, workspace, workspace_bytes, error);
    if (results->next != NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "next: not of an encoder and its decoder, ask for logits");
    locus_model_results first = *results;
    first.logits = NULL;
    LOCUS_TRY(model_forward_stack(pass, batch, &first, workspace, workspace_bytes, error));
    return run_decoder(pass, batch, results, workspace, error);
}

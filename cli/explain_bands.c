/* SPDX-License-Identifier: Apache-2.0 */
/* A score by rotation as the exact sum of its pairs of channels, in bands of frequency: a band is the score of a query
 * that has zeros in all other channels. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <locus/picture.h>
#include <locus/plot.h>

#include "explain.h"

enum { MOST_PAIRS = 512, UNTURNED = EXPLAIN_BANDS - 1 };

/* Tokens in which a pair turns around once, below which it belongs to a band. */
static const struct {
    double below;
    const char *name, *formula;
} bands[EXPLAIN_BANDS] = {
    {16.0, "turns<16", "pairs of channels that turn around in less than 16 tokens"},
    {128.0, "turns<128", "pairs that turn around in 16 to 128 tokens"},
    {1024.0, "turns<1024", "pairs that turn around in 128 to 1,024 tokens"},
    {INFINITY, "turns>1024", "pairs that hardly turn: once in more than 1,024 tokens"},
    {INFINITY, "unturned", "channels that do not turn"},
};

static int band_of(double frequency)
{
    const double tokens = 2.0 * acos(-1.0) / fabs(frequency);
    int band = 0;
    while (band < UNTURNED - 1 && !(tokens < bands[band].below)) band++;
    return band;
}

/* Which band each of `dim` channels belongs to; 0: the call cannot be taken apart. */
static int sort_channels(const explain_call *call, int64_t dim, int *band)
{
    double frequency[MOST_PAIRS], gain[MOST_PAIRS];
    size_t pairs = MOST_PAIRS;
    if (locus_call_turns(call->level, call->config, call->in, &pairs, frequency, gain, NULL) !=
            LOCUS_OK ||
        pairs == 0 || 2 * (int64_t)pairs > dim)
        return 0;
    const int half = call->config->options.pairing != LOCUS_PAIRING_INTERLEAVED;
    const int64_t axes = call->config->options.axes > 1 ? call->config->options.axes : 1;
    const int64_t run = (int64_t)pairs / axes;
    for (int64_t c = 0; c < dim; c++) band[c] = UNTURNED;
    if (axes > 1) return 0;
    for (int64_t t = 0; t < run; t++) {
        band[half ? t : 2 * t] = band_of(frequency[t]);
        band[half ? t + run : 2 * t + 1] = band_of(frequency[t]);
    }
    return 1;
}

/* q with zeros outside of a band, [B H T D]. */
static float *masked(const locus_tensor *q, const int *channel, int band)
{
    const int64_t dim = q->shape[3], rows = q->shape[0] * q->shape[1] * q->shape[2];
    float *copy = calloc((size_t)(rows * dim) + 1, sizeof *copy);
    for (int64_t at = 0; copy != NULL && at < rows * dim; at++) {
        const int64_t c = at % dim, t = at / dim % q->shape[2],
                      h = at / dim / q->shape[2] % q->shape[1],
                      b = at / dim / q->shape[2] / q->shape[1];
        if (channel[c] == band)
            copy[at] = ((const float *)q->data)[b * q->stride[0] + h * q->stride[1] +
                                                t * q->stride[2] + c * q->stride[3]];
    }
    return copy;
}

static locus_status add_band(explain_call *call, const int *channel, int which, locus_error *error)
{
    explain_band *band = &call->band[call->bands++];
    const locus_tensor *q = &call->in->q;
    band->term =
        (locus_explainer_term){LOCUS_TERM_ROTATION, bands[which].name, bands[which].formula};
    band->ink = LOCUS_INK_SEQUENTIAL + 4 + 13 * (uint32_t)which;
    band->q = masked(q, channel, which);
    if (band->q == NULL) return LOCUS_ERR_MEMORY;
    band->in = *call->in;
    band->in.q = locus_view(band->q, LOCUS_F32, 4, q->shape);
    return locus_explainer_new(&band->explainer, call->level, call->config, &band->in, error);
}

/* The bands take the place of the rotation, the first of the terms. */
static void name_terms(explain_call *call)
{
    const size_t more = call->bands - 1;
    for (size_t t = call->info.terms; t-- > 1;) call->terms[t + more] = call->terms[t];
    for (size_t b = 0; b < call->bands; b++) call->terms[b] = &call->band[b].term;
    call->info.terms += more;
}

int explain_split(explain_call *call)
{
    locus_error error = {"out of memory"};
    int channel[2 * MOST_PAIRS], there[EXPLAIN_BANDS] = {0}, count = 0;
    const locus_tensor *q = &call->in->q;
    if (call->terms[0]->place != LOCUS_TERM_ROTATION || call->level != LOCUS_ATTEND ||
        q->rank != 4 || q->dtype != LOCUS_F32 || q->shape[3] > 2 * MOST_PAIRS ||
        call->info.terms + EXPLAIN_BANDS > EXPLAIN_TERMS ||
        !sort_channels(call, q->shape[3], channel))
        return CLI_DONE;
    for (int64_t c = 0; c < q->shape[3]; c++) count += !there[channel[c]]++;
    for (int which = 0; which < EXPLAIN_BANDS && count > 1; which++) {
        const locus_status status =
            there[which] ? add_band(call, channel, which, &error) : LOCUS_OK;
        if (status != LOCUS_OK)
            return cli_report(call->values->command != NULL ? call->values->command : "explain",
                              status, call->values->path, &error);
    }
    if (call->bands > 0) name_terms(call);
    return CLI_DONE;
}

void explain_split_close(explain_call *call)
{
    for (size_t b = 0; b < call->bands; b++) {
        locus_explainer_free(call->band[b].explainer);
        free(call->band[b].q);
    }
}

uint32_t explain_ink(const explain_call *call, size_t term)
{
    return term < call->bands ? call->band[term].ink
                              : locus_picture_term_ink(call->terms[term]->name);
}

locus_status explain_numbers(const explain_call *call, const locus_explain_block *block,
                             const locus_explained *into, locus_error *error)
{
    if (call->bands == 0) return locus_explain(call->explainer, block, into, error);
    const size_t pairs = (size_t)(block->queries * block->keys);
    const size_t own = call->info.terms - call->bands + 1; /* of each explainer */
    double *room = calloc(own * pairs + 1, sizeof *room);
    locus_explained whole = *into;
    whole.terms += (call->bands - 1) * pairs; /* the last band lies where the rotation was */
    locus_status status =
        room != NULL ? locus_explain(call->explainer, block, &whole, error) : LOCUS_ERR_MEMORY;
    for (size_t b = 0; b < call->bands && status == LOCUS_OK; b++) {
        const locus_explained part = {.size = sizeof part, .terms = room};
        status = locus_explain(call->band[b].explainer, block, &part, error);
        for (size_t i = 0; i < pairs; i++) into->terms[b * pairs + i] = room[i];
    }
    free(room);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core/error.h"
#include "model/description.h"

/* Which head a checkpoint has, by the class that wrote it: the first of `architectures`. */

/* Names that classes of several families share; a family's own are tried before. */
const model_name model_head_names[] = {
    {SLOT_HEAD_OUT, "classifier.weight"},    {SLOT_HEAD_OUT_BIAS, "classifier.bias"},
    {SLOT_HEAD_OUT, "score.weight"},                                               /* of decoders */
    {SLOT_HEAD_OUT_BIAS, "score.bias"},      {SLOT_HEAD_OUT, "qa_outputs.weight"}, /* spans */
    {SLOT_HEAD_OUT_BIAS, "qa_outputs.bias"}, {SLOT_COUNT, NULL},
};

static int ends_with(const char *text, const char *end)
{
    const size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

/* "ForMaskedLM", not "RoFormer". */
static int is_for_something(const char *name)
{
    const char *at = strstr(name, "For");
    while (at != NULL && !(at[3] >= 'A' && at[3] <= 'Z')) at = strstr(at + 1, "For");
    return at != NULL;
}

/* The class is one without a head: "BertModel", "T5EncoderModel". */
static int is_base(const char *name)
{
    static const char *const heads[] = {"LMHeadModel", "MTModel", "DoubleHeadsModel", NULL};
    for (const char *const *head = heads; *head != NULL; head++)
        if (ends_with(name, *head)) return 0;
    return !is_for_something(name) && (ends_with(name, "Model") || ends_with(name, "Encoder"));
}

static locus_model_head head_of(const char *name)
{
    static const struct {
        const char *end;
        locus_model_head head;
    } known[] = {{"ForSequenceClassification", LOCUS_MODEL_CLASSIFY},
                 {"ForTokenClassification", LOCUS_MODEL_TAG},
                 {"ForQuestionAnswering", LOCUS_MODEL_SPAN},
                 {"ForQuestionAnsweringSimple", LOCUS_MODEL_SPAN},
                 {"ForMaskedLM", LOCUS_MODEL_FILL},
                 {"XLNetLMHeadModel", LOCUS_MODEL_FILL},
                 {"ForPreTraining", LOCUS_MODEL_FILL},
                 {"ForCausalLM", LOCUS_MODEL_GENERATE},
                 {"LMHeadModel", LOCUS_MODEL_GENERATE},
                 {"ForConditionalGeneration", LOCUS_MODEL_GENERATE},
                 {"MTModel", LOCUS_MODEL_GENERATE}};
    static const char *const others[] = {
        "ElectraForPreTraining", "XLNetForQuestionAnswering",
        "GPT2DoubleHeadsModel"}; /* other heads than the name says */
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i]) == 0) return LOCUS_MODEL_NO_HEAD;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (ends_with(name, known[i].end)) return known[i].head;
    return LOCUS_MODEL_NO_HEAD;
}

static int has_names(const model_family *family, model_slot slot)
{
    const model_name *n = family->names;
    while (n->name != NULL && n->slot != slot) n++;
    return n->name != NULL;
}

/* 1: this head of this family is read. An encoder-decoder has that of its decoder alone, and that of
 * tokens where its encoder is all there is. */
static int is_read(const model_family *family, const model_description *d, locus_model_head head)
{
    const int decoder = d->head == LOCUS_MODEL_GENERATE; /* as the family described it */
    const int labels = has_names(family, SLOT_HEAD_OUT) || (decoder && !d->narrows);
    switch (head) {
    case LOCUS_MODEL_CLASSIFY: return labels;
    case LOCUS_MODEL_TAG: return labels || family->decoder != NULL;
    case LOCUS_MODEL_SPAN: return labels;
    case LOCUS_MODEL_FILL: return has_names(family, SLOT_FILL_OUT_BIAS);
    case LOCUS_MODEL_GENERATE: return decoder || family->decoder != NULL;
    default: return 0;
    }
}

static locus_status count_labels(const model_settings *s, model_description *d, locus_error *error)
{
    const char *problem;
    const int64_t named = model_setting_count(s, "id2label");
    LOCUS_TRY(model_setting_integer(s, "num_labels", named > 0 ? named : 2, 1, 1 << 16, &d->labels,
                                    error));
    LOCUS_TRY(model_setting_text(s, "problem_type", "", &problem, error));
    d->multi_label = strcmp(problem, "multi_label_classification") == 0 ||
                     (problem[0] == '\0' && d->labels == 1);
    return LOCUS_OK;
}

locus_status model_read_head(const model_settings *s, const model_family *family,
                             model_description *d, const char **unread, locus_error *error)
{
    const char *name;
    LOCUS_TRY(model_setting_text(s, "architectures.0", NULL, &name, error));
    *unread = NULL;
    if (name == NULL || d->features > 0 || d->head == LOCUS_MODEL_PRIOR) return LOCUS_OK;
    const locus_model_head head = head_of(name);
    if (!is_read(family, d, head)) {
        if (!is_base(name)) *unread = name;
        d->head = LOCUS_MODEL_NO_HEAD;
        d->fill_next = 0;
        return LOCUS_OK;
    }
    d->head = head;
    switch (head) {
    case LOCUS_MODEL_FILL:
        return d->fill_tied ? LOCUS_OK
                            : model_setting_flag(s, "tie_word_embeddings", 1, &d->fill_tied, error);
    case LOCUS_MODEL_SPAN: d->labels = 2; return LOCUS_OK;
    case LOCUS_MODEL_GENERATE: return LOCUS_OK;
    default: return count_labels(s, d, error);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>

#include "pieces.h"
#include "run.h"

run_text run_text_at(const run_session *s, int64_t index)
{
    const int64_t *offsets = locus_texts_offsets(s->texts);
    return (run_text){.ids = locus_texts_ids(s->texts) + offsets[index],
                      .first = offsets[index],
                      .count = offsets[index + 1] - offsets[index]};
}

int run_no_memory(void) { return cli_complain("run", CLI_RESOURCES, "out of memory"); }

int run_forward(run_session *s, const locus_model_results *results)
{
    locus_error error = {""};
    const locus_status status = locus_texts_forward(s->texts, results, &error);
    return status == LOCUS_OK ? CLI_DONE : cli_report("run", status, NULL, &error);
}

void run_json_begin(json *j, const run_session *s, const run_text *text)
{
    json_inline_object(j, NULL);
    pieces_json(j, s->tokenizer, (const uint32_t *)text->ids, (size_t)text->count);
}

void run_json_numbers(json *j, const char *key, const float *numbers, int64_t count)
{
    json_inline_array(j, key);
    for (int64_t c = 0; c < count; c++) json_float(j, NULL, numbers[c]);
    json_end(j);
}

size_t run_print_token(const run_session *s, int32_t id)
{
    return s->tokenizer != NULL ? pieces_print(stdout, s->tokenizer, (uint32_t)id)
                                : (size_t)printf("%" PRId32, id);
}

double run_probability(const locus_model_info *info, const float *row, int64_t label)
{
    if (info->multi_label) return 1.0 / (1.0 + exp(-(double)row[label]));
    double sum = 0.0;
    for (int64_t c = 0; c < info->labels; c++) sum += exp((double)row[c] - (double)row[label]);
    return 1.0 / sum;
}

int64_t run_best(const float *row, int64_t count)
{
    int64_t best = 0;
    for (int64_t c = 1; c < count; c++)
        if (row[c] > row[best]) best = c;
    return best;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* locus run --task embed: one vector per text. */
#include <stdlib.h>

#include "run.h"

static int given(const locus_model_info *info) { return info->layers > 0 && info->features == 0; }

static void print(const run_session *s, const run_text *text, const float *vector)
{
    json j = {.out = stdout};
    const int64_t width = s->info.embedding_width;
    if (!s->values->json) {
        for (int64_t c = 0; c < width; c++) printf("%s%.9g", c > 0 ? " " : "", (double)vector[c]);
        putchar('\n');
        return;
    }
    run_json_begin(&j, s, text);
    run_json_numbers(&j, "embedding", vector, width);
    json_end(&j);
}

static int run(run_session *s)
{
    const int64_t count = locus_texts_count(s->texts), width = s->info.embedding_width;
    float *vectors = calloc((size_t)(count * width) + 1, sizeof *vectors);
    if (vectors == NULL) return run_no_memory();
    const locus_model_results results = {.size = sizeof results, .embedding = vectors};
    const int exit_code = run_forward(s, &results);
    for (int64_t t = 0; exit_code == CLI_DONE && t < count; t++) {
        const run_text text = run_text_at(s, t);
        print(s, &text, vectors + t * width);
    }
    free(vectors);
    return exit_code;
}

const run_task run_embed = {.name = "embed", .given = given, .run = run};

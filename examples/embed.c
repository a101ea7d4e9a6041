/* SPDX-License-Identifier: Apache-2.0 */
/* embed FOLDER TEXT...: how alike texts are to the first one, by a trained model of the Hugging Face
 * hub, for example all-MiniLM-L6-v2. */
#include <locus/locus.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    locus_error error = {""};
    locus_model *model = NULL;
    locus_tokenizer *tokenizer = NULL;
    locus_texts *texts = NULL;
    if (argc < 3) return fprintf(stderr, "usage: embed FOLDER TEXT...\n"), 2;
    locus_status status = locus_model_open(&model, argv[1], NULL, &error);
    if (!status) status = locus_tokenizer_open(&tokenizer, argv[1], NULL, &error);
    if (!status) status = locus_texts_new(&texts, model, tokenizer, NULL, &error);
    for (int i = 2; !status && i < argc; i++)
        status = locus_texts_add(texts,
                                 &(locus_text_input){.size = sizeof(locus_text_input),
                                                     .text = argv[i],
                                                     .bytes = strlen(argv[i])},
                                 &error);
    if (status) return fprintf(stderr, "embed: %s\n", error.text), 1;

    locus_model_info info = {.size = sizeof info};
    locus_model_describe(model, &info);
    float *vectors = calloc((size_t)(argc - 2) * (size_t)info.embedding_width, sizeof *vectors);
    const locus_model_results results = {.size = sizeof results, .embedding = vectors};
    if (vectors == NULL || locus_texts_forward(texts, &results, &error)) return 1;
    for (int i = 0; i + 2 < argc; i++) {
        double dot = 0.0;
        for (int64_t c = 0; c < info.embedding_width; c++)
            dot += (double)vectors[c] * (double)vectors[i * info.embedding_width + c];
        printf("%8.4f  %s\n", dot, argv[i + 2]);
    }
    free(vectors);
    locus_texts_free(texts);
    locus_tokenizer_close(tokenizer);
    locus_model_free(model);
}

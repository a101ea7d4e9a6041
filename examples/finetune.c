/* SPDX-License-Identifier: Apache-2.0 */
/* finetune FOLDER TEXT: five steps by which a decoder, as examples/stories260K, learns TEXT. */
#include <locus/locus.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc != 3) return fprintf(stderr, "usage: finetune FOLDER TEXT\n"), 2;
    locus_error error = {""};
    locus_model *model = NULL;
    locus_tokenizer *tokenizer = NULL;
    locus_encoding *words = NULL;
    locus_model_pass *pass = NULL;
    const locus_model_config config = {.size = sizeof config, .trainable = 1};
    const locus_text_input text = {.size = sizeof text, .text = argv[2], .bytes = strlen(argv[2])};
    if (locus_model_open(&model, argv[1], &config, &error) ||
        locus_tokenizer_open(&tokenizer, argv[1], NULL, &error) ||
        locus_encoding_new(&words, NULL, &error) ||
        locus_tokenizer_encode(tokenizer, &text, words, &error))
        return fprintf(stderr, "finetune: %s\n", error.text), 1;
    /* token i is to say token i + 1 */
    const int64_t tokens = (int64_t)locus_encoding_count(words) - 1, offsets[] = {0, tokens};
    const int32_t *ids = (const int32_t *)locus_encoding_ids(words);
    if (locus_model_pass_new(&pass, model, offsets, 1, &error))
        return fprintf(stderr, "finetune: %s\n", error.text), 1;
    locus_model_info info = {.size = sizeof info};
    locus_model_describe(model, &info);
    const size_t kept_bytes = locus_model_kept(pass), bytes = locus_model_workspace(pass);
    const size_t back_bytes = locus_model_backward_workspace(pass);
    void *kept = malloc(kept_bytes), *there = malloc(bytes), *back = malloc(back_bytes);
    float *logits = calloc((size_t)(tokens * (info.vocabulary + 1)), sizeof *logits);
    float *each = logits + tokens * info.vocabulary;
    float *slopes = calloc((size_t)locus_model_parameter_floats(model), sizeof *slopes);
    const locus_model_batch batch = {.size = sizeof batch, .ids = ids};
    const locus_model_results results = {.size = sizeof results, .logits = logits};
    const locus_model_gradients to = {.size = sizeof to, .logits = logits, .parameters = slopes};
    for (int step = 0; step < 5; step++) {
        double loss = 0.0;
        if (locus_model_update(model, &error) ||
            locus_model_forward_kept(pass, &batch, &results, kept, kept_bytes, there, bytes,
                                     &error) ||
            locus_model_cross_entropy(model, logits, ids + 1, tokens, info.vocabulary, each, logits,
                                      &loss, &error) ||
            locus_model_backward(pass, &to, kept, kept_bytes, back, back_bytes, &error))
            return fprintf(stderr, "finetune: %s\n", error.text), 1;
        printf("step %d: %.4f nats per token\n", step, loss);
        locus_model_parameter p = {.size = sizeof p};
        for (int64_t i = 0; !locus_model_parameter_at(model, i, &p, NULL); i++)
            for (int64_t k = 0; k < locus_tensor_elements(&p.value); k++)
                ((float *)p.value.data)[k] -= 0.01f * slopes[p.at + k];
    }
    free(kept), free(there), free(back), free(logits), free(slopes);
    locus_model_pass_free(pass);
    locus_encoding_free(words);
    locus_tokenizer_close(tokenizer);
    locus_model_free(model);
}

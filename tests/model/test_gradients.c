/* SPDX-License-Identifier: Apache-2.0 */

/* Gradients through small models of every family: against central differences, bits, sums over ragged
 * batches, refusals. That they are those of torch is what gradients.py looks at. */

#define _POSIX_C_SOURCE 200809L
#include <locus/attention.h>
#include <locus/model.h>
#include <locus/runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/folder.h"
#include "support/check.h"
#include "support/problem.h"

enum { WIDTH = 24, LAYERS = 2, FEATURES = 10, TOKENS = 19, SEQUENCES = 4, LOGITS = 64 };
static const int64_t mixed[SEQUENCES + 1] = {0, 7, 7, 8, 19};
static const int64_t mixed_decoder[SEQUENCES + 1] = {0, 3, 3, 9, 14};

/* ---- one step ---- */

typedef struct step {
    locus_model *model;
    locus_model_pass *pass;
    locus_model_info info;
    int64_t sequence, sequences; /* of the mixed batch: the first, how many */
    int64_t first, tokens;
    int64_t decoder_first, decoder_tokens;
    int64_t floats, logit_first, logits; /* of parameters; of logits */
    int32_t ids[TOKENS], types[TOKENS], decoder_ids[TOKENS];
    float features[TOKENS * FEATURES];
    float hidden[LAYERS + 1][TOKENS * WIDTH], embedding[SEQUENCES * WIDTH];
    float decoder_hidden[LAYERS + 1][TOKENS * WIDTH];
    float out[TOKENS * LOGITS];
    float *gradients, input[TOKENS * WIDTH];
    void *kept, *workspace;
    size_t workspace_bytes;
} step;

static void *memory_of(size_t bytes)
{
    void *memory = malloc(bytes + 64);
    if (memory == NULL) exit(2);
    memset(memory, 0x7F, bytes + 64);
    return memory;
}

static void set_logits(step *s)
{
    const locus_model_info *i = &s->info;
    const int each =
        i->head == LOCUS_MODEL_TAG || i->head == LOCUS_MODEL_SPAN || i->head == LOCUS_MODEL_PRIOR;
    int64_t width = i->vocabulary, first = s->first, rows = s->tokens;
    if (i->decoder_layers > 0) {
        first = s->decoder_first;
        rows = s->decoder_tokens;
    }
    if (i->head == LOCUS_MODEL_CLASSIFY || each) width = i->labels;
    if (i->head == LOCUS_MODEL_CLASSIFY) {
        first = s->sequence;
        rows = s->sequences;
    }
    if (i->head == LOCUS_MODEL_NO_HEAD) width = 0;
    s->logit_first = first * width;
    s->logits = rows * width;
}

static void set_tokens(step *s)
{
    for (int64_t i = 0; i < s->tokens; i++) {
        s->ids[i] = (int32_t)(test_uniform(77, (uint64_t)(s->first + i)) * 50.0);
        s->types[i] = (int32_t)((s->first + i) % 3 == 0);
    }
    for (int64_t i = 0; i < s->decoder_tokens; i++)
        s->decoder_ids[i] = (int32_t)(test_uniform(79, (uint64_t)(s->decoder_first + i)) * 50.0);
    for (int64_t i = 0; i < s->tokens * FEATURES; i++)
        s->features[i] = (float)test_uniform(78, (uint64_t)(s->first * FEATURES + i));
}

/* Sequences `sequence` and so on of the mixed batch. */
static int begin(step *s, locus_model *model, int64_t sequence, int64_t sequences)
{
    locus_error error = {""};
    int64_t own[SEQUENCES + 1], decoder[SEQUENCES + 1];
    *s = (step){.model = model, .sequence = sequence, .sequences = sequences};
    s->info.size = sizeof s->info;
    locus_model_describe(model, &s->info);
    s->first = mixed[sequence];
    s->decoder_first = mixed_decoder[sequence];
    for (int64_t i = 0; i <= sequences; i++) {
        own[i] = mixed[sequence + i] - s->first;
        decoder[i] = mixed_decoder[sequence + i] - s->decoder_first;
    }
    s->tokens = own[sequences];
    s->decoder_tokens = decoder[sequences];
    set_tokens(s);
    set_logits(s);
    s->floats = locus_model_parameter_floats(model);
    const locus_status status =
        s->info.decoder_layers > 0
            ? locus_model_pass_both(&s->pass, model, own, decoder, sequences, &error)
            : locus_model_pass_new(&s->pass, model, own, sequences, &error);
    CHECK(status == LOCUS_OK, "%s", error.text);
    if (status != LOCUS_OK) return 0;
    const size_t forward = locus_model_workspace(s->pass);
    s->workspace_bytes = locus_model_backward_workspace(s->pass);
    if (forward > s->workspace_bytes) s->workspace_bytes = forward;
    s->workspace = memory_of(s->workspace_bytes);
    s->kept = memory_of(locus_model_kept(s->pass));
    s->gradients = memory_of((size_t)s->floats * sizeof(float));
    return 1;
}

static void end(step *s)
{
    locus_model_pass_free(s->pass);
    free(s->workspace);
    free(s->kept);
    free(s->gradients);
}

static locus_status forward(step *s, int kept, locus_error *error)
{
    float *hidden[LAYERS + 1], *decoder_hidden[LAYERS + 1];
    for (int l = 0; l <= LAYERS; l++) {
        hidden[l] = s->hidden[l];
        decoder_hidden[l] = s->decoder_hidden[l];
    }
    const locus_model_batch batch = {.size = sizeof batch,
                                     .ids = s->ids,
                                     .types = s->info.types > 1 ? s->types : NULL,
                                     .features = s->features,
                                     .decoder_ids = s->decoder_ids};
    const locus_model_results results = {.size = sizeof results,
                                         .hidden = hidden,
                                         .logits = s->logits > 0 ? s->out : NULL,
                                         .embedding = s->embedding,
                                         .decoder_hidden = decoder_hidden};
    return kept ? locus_model_forward_kept(s->pass, &batch, &results, s->kept,
                                           locus_model_kept(s->pass), s->workspace,
                                           s->workspace_bytes, error)
                : locus_model_forward(s->pass, &batch, &results, s->workspace, s->workspace_bytes,
                                      error);
}

/* The scalar: products of the results with fixed random numbers, which so are its gradients. It has a
 * part of the embedding, of the states between two layers and of the last ones, of the last ones of a
 * decoder, and of the logits. */
static float weight_of(int which, int64_t i)
{
    return (float)(test_uniform(900 + (uint64_t)which, (uint64_t)i) - 0.5);
}

static double part_of(int which, const float *values, int64_t first, int64_t count)
{
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)values[i] * (double)weight_of(which, first + i);
    return sum;
}

static double loss_of(const step *s)
{
    const int64_t last = s->info.last_width;
    double sum = part_of(0, s->hidden[LAYERS], s->first * last, s->tokens * last);
    sum += part_of(1, s->hidden[1], s->first * WIDTH, s->tokens * WIDTH);
    sum += part_of(2, s->embedding, s->sequence * last, s->sequences * last);
    sum += part_of(3, s->out, s->logit_first, s->logits);
    if (s->info.decoder_layers > 0)
        sum += part_of(4, s->decoder_hidden[s->info.decoder_layers], s->decoder_first * WIDTH,
                       s->decoder_tokens * WIDTH);
    return sum;
}

static const float *weights_of(float *to, int which, int64_t first, int64_t count)
{
    for (int64_t i = 0; i < count; i++) to[i] = weight_of(which, first + i);
    return to;
}

static locus_status backward(step *s, uint32_t flags, locus_error *error)
{
    static float last[TOKENS * WIDTH], between[TOKENS * WIDTH], embedding[SEQUENCES * WIDTH];
    static float logits[TOKENS * LOGITS], decoder[TOKENS * WIDTH];
    const int64_t width = s->info.last_width;
    const float *hidden[LAYERS + 1] = {NULL}, *decoder_hidden[LAYERS + 1] = {NULL};
    hidden[1] = weights_of(between, 1, s->first * WIDTH, s->tokens * WIDTH);
    hidden[LAYERS] = weights_of(last, 0, s->first * width, s->tokens * width);
    decoder_hidden[s->info.decoder_layers] =
        weights_of(decoder, 4, s->decoder_first * WIDTH, s->decoder_tokens * WIDTH);
    const locus_model_gradients gradients = {
        .size = sizeof gradients,
        .flags = flags,
        .hidden = hidden,
        .logits = s->logits > 0 ? weights_of(logits, 3, s->logit_first, s->logits) : NULL,
        .embedding = weights_of(embedding, 2, s->sequence * width, s->sequences * width),
        .parameters = s->gradients,
        .input = s->input,
        .decoder_hidden = decoder_hidden};
    return locus_model_backward(s->pass, &gradients, s->kept, locus_model_kept(s->pass),
                                s->workspace, s->workspace_bytes, error);
}

static locus_model *open_model(const char *path, uint32_t threads, uint32_t trainable)
{
    locus_model *model = NULL;
    locus_error error = {""};
    const locus_model_config config = {.size = sizeof config,
                                       .threads = threads,
                                       .trainable = trainable};
    const locus_status status = locus_model_open(&model, path, &config, &error);
    CHECK(status == LOCUS_OK, "%s", error.text);
    return model;
}

static int both_ways(step *s)
{
    locus_error error = {""};
    const locus_status there = forward(s, 1, &error);
    CHECK(there == LOCUS_OK, "%s", error.text);
    const locus_status back = there == LOCUS_OK ? backward(s, 0, &error) : there;
    CHECK(back == LOCUS_OK, "%s", error.text);
    return back == LOCUS_OK;
}

static double largest_of(const float *x, int64_t count)
{
    double largest = 0.0;
    for (int64_t i = 0; i < count; i++)
        largest = isnan(x[i]) ? (double)INFINITY : fmax(largest, fabs((double)x[i]));
    return largest;
}

/* ---- central differences ---- */

/* Numbers in -1/2 .. 1/2. */
static double direction(int64_t i) { return test_uniform(500, (uint64_t)i) - 0.5; }

static double loss_along(step *s, float *to, const float *from, int64_t count, double length)
{
    locus_error error = {""};
    for (int64_t i = 0; i < count; i++) to[i] = (float)((double)from[i] + length * direction(i));
    CHECK(locus_model_update(s->model, &error) == LOCUS_OK, "%s", error.text);
    CHECK(forward(s, 0, &error) == LOCUS_OK, "%s", error.text);
    return loss_of(s);
}

/* The derivative along a random direction. Of steps h and 2 h, weighted so that the third derivative
 * drops out. Losses are sums of float32 results, about 20 in all, so that each has noise of some 1e-5
 * and the quotient of some 2e-3; a wrong term of a gradient is of the size of the gradient itself, of
 * which random directions show about a third. */
static void check_along(step *s, const char *name, float *values, const float *gradient,
                        int64_t count)
{
    const double h = 4e-3;
    const size_t bytes = (size_t)count * sizeof(float);
    float *kept = memory_of(bytes);
    memcpy(kept, values, bytes);
    double expected = 0.0, norm = 0.0;
    for (int64_t i = 0; i < count; i++) {
        expected += (double)gradient[i] * direction(i);
        norm += (double)gradient[i] * (double)gradient[i];
    }
    const double near =
        loss_along(s, values, kept, count, h) - loss_along(s, values, kept, count, -h);
    const double far =
        loss_along(s, values, kept, count, 2.0 * h) - loss_along(s, values, kept, count, -2.0 * h);
    const double found = (8.0 * near - far) / (12.0 * h);
    const double tolerance = 5e-3 * sqrt(norm) + 5e-3;
    CHECK(fabs(found - expected) <= tolerance, "%s: found %g by differences, expected %g (+- %g)",
          name, found, expected, tolerance);
    memcpy(values, kept, bytes);
    free(kept);
}

static void test_differences(const test_model *m)
{
    static step s;
    locus_error error = {""};
    if (!check_begin("gradients/%s/differences", m->name)) return;
    const char *path = test_folder("gradients");
    write_model(path, m, &(folder_change){.scale = 0.25});
    locus_model *model = open_model(path, 1, 1);
    if (model == NULL) return;
    replace_relu(model);
    if (begin(&s, model, 0, SEQUENCES) && both_ways(&s)) {
        const double largest = largest_of(s.gradients, s.floats);
        CHECK(isfinite(largest) && largest > 0.1, "the largest gradient is %g", largest);
        for (int64_t i = 0; i < locus_model_parameter_count(model); i++) {
            locus_model_parameter p = {.size = sizeof p};
            CHECK(locus_model_parameter_at(model, i, &p, &error) == LOCUS_OK, "%s", error.text);
            check_along(&s, p.name, p.value.data, s.gradients + p.at,
                        locus_tensor_elements(&p.value));
        }
        if (s.info.features > 0)
            check_along(&s, "features", s.features, s.input, s.tokens * s.info.features);
    }
    end(&s);
    locus_model_free(model);
    remove_model(path);
}

/* ---- bits ---- */

/* Instruction sets with fused multiply-add change none. */
static void test_isas(const test_model *m)
{
    static step first, other;
    if (!check_begin("gradients/%s/isas", m->name)) return;
    const char *path = test_folder("isas"), *from = NULL;
    write_model(path, m, NULL);
    for (size_t k = 0; locus_isa_name(k) != NULL; k++) {
        const char *isa = locus_isa_name(k);
        if (strcmp(isa, "generic") == 0 || !locus_isa_available(isa)) continue;
        setenv("LOCUS_ISA", isa, 1);
        locus_model *model = open_model(path, 1, 1);
        unsetenv("LOCUS_ISA");
        step *s = from == NULL ? &first : &other;
        if (model == NULL || !begin(s, model, 0, SEQUENCES) || !both_ways(s)) return;
        CHECK(from == NULL ||
                  (memcmp(s->gradients, first.gradients, (size_t)s->floats * sizeof(float)) == 0 &&
                   memcmp(s->input, first.input, sizeof s->input) == 0),
              "%s gives other bits", isa);
        if (from != NULL) {
            end(s);
            locus_model_free(model);
        } else
            from = isa;
    }
    if (from == NULL)
        check_skip("no instruction set with fused multiply-add here");
    else {
        locus_model *model = first.model;
        end(&first);
        locus_model_free(model);
    }
    remove_model(path);
}

/* With its weights in place a model gives the bits of packed ones; threads change none. */
static void test_bits(const test_model *m)
{
    static step s, other;
    locus_error error = {""};
    if (!check_begin("gradients/%s/bits", m->name)) return;
    const char *path = test_folder("gradients");
    write_model(path, m, NULL);
    locus_model *model = open_model(path, 1, 1), *packed = open_model(path, 1, 0);
    if (model == NULL || packed == NULL || !begin(&s, model, 0, SEQUENCES) || !both_ways(&s) ||
        !begin(&other, packed, 0, SEQUENCES))
        return;
    CHECK(forward(&other, 0, &error) == LOCUS_OK, "%s", error.text);
    CHECK(memcmp(s.hidden, other.hidden, sizeof s.hidden) == 0 &&
              memcmp(s.decoder_hidden, other.decoder_hidden, sizeof s.hidden) == 0 &&
              memcmp(s.embedding, other.embedding, sizeof s.embedding) == 0 &&
              memcmp(s.out, other.out, (size_t)s.logits * sizeof(float)) == 0,
          "the results are not those of packed weights");
    end(&other);
    locus_model_free(packed);
    for (uint32_t threads = 2; threads <= 3; threads++) {
        locus_model *more = open_model(path, threads, 1);
        if (more == NULL || !begin(&other, more, 0, SEQUENCES) || !both_ways(&other)) return;
        CHECK(memcmp(s.gradients, other.gradients, (size_t)s.floats * sizeof(float)) == 0 &&
                  memcmp(s.input, other.input, sizeof s.input) == 0,
              "%u threads give other bits", threads);
        end(&other);
        locus_model_free(more);
    }
    end(&s);
    locus_model_free(model);
    remove_model(path);
}

/* ---- ragged batches ---- */

/* The gradient of a batch is the sum of those of its sequences, but for rounding; `input` has those of
 * each token; a table of words that nothing else reads has the sum of its tokens'. */
static void test_sums(const test_model *m)
{
    static step s, alone;
    static float input[TOKENS * WIDTH];
    locus_error error = {""};
    if (!check_begin("gradients/%s/sums", m->name)) return;
    const char *path = test_folder("gradients");
    write_model(path, m, NULL);
    locus_model *model = open_model(path, 1, 1);
    if (model == NULL || !begin(&s, model, 0, SEQUENCES) || !both_ways(&s)) return;
    float *sum = calloc((size_t)s.floats + 1, sizeof *sum);
    if (sum == NULL) exit(2);
    const int64_t width = input_width(model);
    double worst = 0.0, worst_input = 0.0;
    for (int64_t q = 0; q < SEQUENCES; q++) {
        if (!begin(&alone, model, q, 1)) return;
        CHECK(forward(&alone, 1, &error) == LOCUS_OK, "%s", error.text);
        memcpy(alone.gradients, sum, (size_t)s.floats * sizeof *sum);
        memset(alone.input, 0, sizeof alone.input);
        CHECK(backward(&alone, LOCUS_ACCUMULATE, &error) == LOCUS_OK, "%s", error.text);
        memcpy(sum, alone.gradients, (size_t)s.floats * sizeof *sum);
        memcpy(input + alone.first * width, alone.input,
               (size_t)(alone.tokens * width) * sizeof *input);
        end(&alone);
    }
    for (int64_t i = 0; i < s.floats; i++)
        worst = fmax(worst, fabs((double)sum[i] - (double)s.gradients[i]));
    for (int64_t i = 0; i < s.tokens * width; i++)
        worst_input = fmax(worst_input, fabs((double)input[i] - (double)s.input[i]));
    CHECK(worst <= 1e-5 * largest_of(s.gradients, s.floats), "sums differ by %g", worst);
    CHECK(worst_input <= 1e-5 * largest_of(s.input, s.tokens * width) &&
              largest_of(s.input, s.tokens * width) > 0.0,
          "gradients of the input differ by %g", worst_input);
    free(sum);
    end(&s);
    locus_model_free(model);
    remove_model(path);
}

/* A word table that nothing else reads gets the gradients of the tokens that looked it up. */
static void test_words(void)
{
    static step s;
    if (!check_begin("gradients/words")) return;
    const char *path = test_folder("gradients");
    write_model(path, &test_models[0], NULL);
    locus_model *model = open_model(path, 1, 1);
    if (model == NULL || !begin(&s, model, 0, SEQUENCES) || !both_ways(&s)) return;
    float *table = s.gradients; /* the first that is read */
    for (int64_t i = 0; i < s.tokens; i++)
        for (int64_t c = 0; c < WIDTH; c++) table[s.ids[i] * WIDTH + c] -= s.input[i * WIDTH + c];
    const double left = largest_of(table, s.info.vocabulary * WIDTH);
    CHECK(left <= 1e-5, "%g is left of the gradient of the words", left);
    end(&s);
    locus_model_free(model);
    remove_model(path);
}

/* ---- training ---- */

/* Steps against the gradient of the cross entropy of a decoder make it smaller. */
static void test_training(void)
{
    static step s;
    static float dlogits[TOKENS * LOGITS], each[TOKENS];
    locus_error error = {""};
    double loss = 0.0, first = 0.0;
    size_t which = 0;
    if (!check_begin("gradients/training")) return;
    while (strcmp(test_models[which].name, "gpt2") != 0) which++;
    const char *path = test_folder("gradients");
    write_model(path, &test_models[which], NULL);
    locus_model *model = open_model(path, 1, 1);
    if (model == NULL || !begin(&s, model, 0, SEQUENCES)) return;
    for (int round = 0; round < 16; round++) {
        CHECK(forward(&s, 1, &error) == LOCUS_OK, "%s", error.text);
        CHECK(locus_model_cross_entropy(model, s.out, s.ids, s.tokens, s.info.vocabulary, each,
                                        dlogits, &loss, &error) == LOCUS_OK,
              "%s", error.text);
        if (round == 0) first = loss;
        const locus_model_gradients gradients = {.size = sizeof gradients,
                                                 .logits = dlogits,
                                                 .parameters = s.gradients};
        CHECK(locus_model_backward(s.pass, &gradients, s.kept, locus_model_kept(s.pass),
                                   s.workspace, s.workspace_bytes, &error) == LOCUS_OK,
              "%s", error.text);
        for (int64_t i = 0; i < locus_model_parameter_count(model); i++) {
            locus_model_parameter p = {.size = sizeof p};
            CHECK(locus_model_parameter_at(model, i, &p, &error) == LOCUS_OK, "%s", error.text);
            for (int64_t k = 0; k < locus_tensor_elements(&p.value); k++)
                ((float *)p.value.data)[k] -= 1.0f * s.gradients[p.at + k];
        }
        CHECK(locus_model_update(model, &error) == LOCUS_OK, "%s", error.text);
    }
    CHECK(loss < 0.8 * first, "the loss went from %g to %g", first, loss);
    end(&s);
    locus_model_free(model);
    remove_model(path);
}

/* ---- refusals ---- */

static void expect(locus_status found, locus_status status, const char *text,
                   const locus_error *error)
{
    CHECK(found == status && strstr(error->text, text) != NULL && strchr(error->text, '\n') == NULL,
          "found %d \"%s\", expected %d \"%s\"", (int)found, error->text, (int)status, text);
}

static void test_packed_refused(const char *path)
{
    locus_error error = {""};
    const int64_t offsets[2] = {0, 3};
    locus_model_pass *pass = NULL;
    locus_model_parameter p = {.size = sizeof p};
    const locus_model_batch batch = {.size = sizeof batch};
    const locus_model_results results = {.size = sizeof results};
    const locus_model_gradients gradients = {.size = sizeof gradients};
    locus_model *model = open_model(path, 1, 0);
    if (model == NULL) return;
    CHECK(locus_model_pass_new(&pass, model, offsets, 1, &error) == LOCUS_OK, "%s", error.text);
    CHECK(locus_model_parameter_count(model) == 0 && locus_model_parameter_floats(model) == 0 &&
              locus_model_kept(pass) == 0 && locus_model_backward_workspace(pass) == 0,
          "a packed model has parameters");
    expect(locus_model_update(model, &error), LOCUS_ERR_ARGUMENT, "not opened to be trained",
           &error);
    expect(locus_model_parameter_at(model, 0, &p, &error), LOCUS_ERR_ARGUMENT,
           "parameter: found 0, the model has 0", &error);
    expect(locus_model_forward_kept(pass, &batch, &results, NULL, 0, NULL, 0, &error),
           LOCUS_ERR_ARGUMENT, "not opened to be trained", &error);
    expect(locus_model_backward(pass, &gradients, NULL, 0, NULL, 0, &error), LOCUS_ERR_ARGUMENT,
           "not opened to be trained", &error);
    locus_model_pass_free(pass);
    locus_model_free(model);
}

static void test_calls_refused(step *s)
{
    locus_error error = {""};
    const size_t kept = locus_model_kept(s->pass), bytes = s->workspace_bytes;
    const locus_model_batch batch = {.size = sizeof batch, .ids = s->ids};
    locus_model_results results = {.size = sizeof results};
    locus_model_gradients g = {.size = sizeof g, .parameters = s->gradients};
    locus_model_pass *both = NULL;
    expect(locus_model_forward_kept(s->pass, &batch, &results, s->kept, kept - 1, s->workspace,
                                    bytes, &error),
           LOCUS_ERR_WORKSPACE, "kept: ", &error);
    expect(locus_model_forward_kept(s->pass, &batch, &results, s->kept, kept,
                                    (char *)s->workspace + 1, bytes, &error),
           LOCUS_ERR_ARGUMENT, "workspace: ", &error);
    results.next = s->out;
    expect(locus_model_forward_kept(s->pass, &batch, &results, s->kept, kept, s->workspace, bytes,
                                    &error),
           LOCUS_ERR_ARGUMENT, "next: ", &error);
    results.next = NULL;
    expect(locus_model_backward(s->pass, &g, s->kept, kept, s->workspace, bytes, &error),
           LOCUS_ERR_ARGUMENT, "kept: no forward pass", &error);
    CHECK(locus_model_forward_kept(s->pass, &batch, &results, s->kept, kept, s->workspace, bytes,
                                   &error) == LOCUS_OK,
          "%s", error.text);
    expect(locus_model_backward(s->pass, &g, s->kept, kept, s->workspace, 64, &error),
           LOCUS_ERR_WORKSPACE, "workspace: ", &error);
    g.logits = s->out;
    expect(locus_model_backward(s->pass, &g, s->kept, kept, s->workspace, bytes, &error),
           LOCUS_ERR_ARGUMENT, "logits: ", &error);
    g.logits = NULL;
    g.embedding = s->embedding;
    expect(locus_model_backward(s->pass, &g, s->kept, kept, s->workspace, bytes, &error),
           LOCUS_ERR_ARGUMENT, "embedding: ", &error);
    g.embedding = NULL;
    g.flags = 6;
    expect(locus_model_backward(s->pass, &g, s->kept, kept, s->workspace, bytes, &error),
           LOCUS_ERR_ARGUMENT, "flags: found 6", &error);
    g.flags = 0;
    g.parameters = NULL;
    expect(locus_model_backward(s->pass, &g, s->kept, kept, s->workspace, bytes, &error),
           LOCUS_ERR_ARGUMENT, "parameters: ", &error);
    expect(locus_model_pass_both(&both, s->model, mixed, mixed, SEQUENCES, &error),
           LOCUS_ERR_ARGUMENT, "no decoder behind an encoder", &error);
}

static void test_refused(void)
{
    static step s;
    locus_error error = {""};
    if (!check_begin("gradients/refused")) return;
    const int32_t classes[2] = {1, 50};
    float each[2];
    double loss;
    locus_model_parameter p = {.size = sizeof p};
    const char *path = test_folder("gradients");
    write_model(path, &test_models[0], NULL);
    test_packed_refused(path);
    locus_model *model = open_model(path, 1, 1);
    if (model == NULL || !begin(&s, model, 0, SEQUENCES)) return;
    test_calls_refused(&s);
    expect(locus_model_parameter_at(model, -1, &p, &error), LOCUS_ERR_ARGUMENT,
           "parameter: found -1", &error);
    expect(locus_model_cross_entropy(model, s.out, classes, 2, 50, each, NULL, &loss, &error),
           LOCUS_ERR_RANGE, "classes[1]: found 50, expected at most 49", &error);
    expect(locus_model_cross_entropy(model, s.out, classes, 2, 50, NULL, NULL, &loss, &error),
           LOCUS_ERR_ARGUMENT, "cross entropy: ", &error);
    end(&s);
    locus_model_free(model);
    remove_model(path);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for (size_t i = 0; i < test_model_count; i++) {
        test_differences(&test_models[i]);
        test_bits(&test_models[i]);
        test_isas(&test_models[i]);
        test_sums(&test_models[i]);
    }
    test_words();
    test_training();
    test_refused();
    return check_finish("model/gradients");
}

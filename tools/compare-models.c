/* SPDX-License-Identifier: Apache-2.0 */
/* compare-models FOLDER OUT: everything that a model gives and its gradients, as records of
 *     name, newline, count, newline, count float32
 * so that two builds of the library can be compared bit by bit. See tools/compare-models. */

#include <inttypes.h>
#include <locus/generate.h>
#include <locus/model.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEQUENCES = 4, MOST = 23 };
static const int64_t offsets[SEQUENCES + 1] = {0, 7, 7, 8, MOST - 3};
static const int64_t decoder_offsets[SEQUENCES + 1] = {0, 3, 3, 9, 14};

static FILE *out;
static locus_error error;

static void die(const char *what)
{
    printf("%s: %s\n", what, error.text);
    exit(2);
}

static void *take(size_t bytes)
{
    void *memory = malloc(bytes + 64);
    if (memory == NULL) die("memory");
    memset(memory, 0x5A, bytes + 64);
    return memory;
}

static uint32_t state = 12345;
static uint32_t next(void) { return (state = state * 1664525u + 1013904223u) >> 8; }
static float uniform(void) { return (float)((int)(next() & 0xFFFF) - 32768) / 32768.0f; }

static float *random_floats(int64_t count)
{
    float *x = take((size_t)count * sizeof *x);
    for (int64_t i = 0; i < count; i++) x[i] = uniform();
    return x;
}

static void put(const char *name, int64_t index, const float *x, int64_t count)
{
    fprintf(out, "%s.%" PRId64 "\n%" PRId64 "\n", name, index, count);
    fwrite(x, sizeof *x, (size_t)count, out);
}

/* Everything of one pass. */
typedef struct step {
    locus_model *model;
    locus_model_info info;
    locus_model_pass *pass;
    int both;
    int64_t layers, tokens, decoder_tokens, logits;
    int32_t *ids, *types, *decoder_ids;
    float *features, **hidden, **qkv, **decoder_hidden, **decoder_qkv, **cross_q, **cross_kv;
    float *out, *embedding;
    const float **memory;
} step;

static float **arrays(int64_t count, int64_t floats)
{
    float **a = take((size_t)(count + 1) * sizeof *a);
    for (int64_t i = 0; i <= count; i++) {
        a[i] = take((size_t)floats * sizeof **a);
        memset(a[i], 0, (size_t)floats * sizeof **a);
    }
    return a;
}

static int32_t *random_ids(int64_t count, int64_t below)
{
    int32_t *ids = take((size_t)count * sizeof *ids);
    for (int64_t i = 0; i < count; i++)
        ids[i] = (int32_t)(next() % (uint32_t)(below > 0 ? below : 1));
    return ids;
}

static void begin(step *s)
{
    const locus_model_info *i = &s->info;
    const int64_t widest = i->width > i->last_width ? i->width : i->last_width;
    s->tokens = offsets[SEQUENCES];
    s->decoder_tokens = decoder_offsets[SEQUENCES];
    s->layers = i->layers;
    s->both = i->decoder_layers > 0;
    const locus_status status =
        s->both
            ? locus_model_pass_both(&s->pass, s->model, offsets, decoder_offsets, SEQUENCES, &error)
            : locus_model_pass_new(&s->pass, s->model, offsets, SEQUENCES, &error);
    if (status != LOCUS_OK) die("pass");
    s->ids = random_ids(s->tokens, i->vocabulary);
    s->types = random_ids(s->tokens, i->types > 1 ? 2 : 1);
    s->decoder_ids = random_ids(s->decoder_tokens, i->vocabulary);
    s->features = random_floats(s->tokens * i->features);
    s->hidden = arrays(s->layers, s->tokens * widest);
    s->qkv = arrays(s->layers, s->tokens * i->qkv_width);
    s->decoder_hidden = arrays(i->decoder_layers, s->decoder_tokens * widest);
    s->decoder_qkv = arrays(i->decoder_layers, s->decoder_tokens * i->qkv_width);
    s->cross_q = arrays(i->decoder_layers, s->decoder_tokens * i->qkv_width);
    s->cross_kv = arrays(i->decoder_layers, s->tokens * i->qkv_width);
    const int64_t labels = i->labels > 0 ? i->labels : 1;
    const int64_t width = i->vocabulary > labels ? i->vocabulary : labels;
    s->logits = s->tokens * width;
    s->out = arrays(0, s->logits)[0];
    s->embedding = arrays(0, SEQUENCES * widest)[0];
    s->memory = take((size_t)(s->layers + 1) * sizeof *s->memory);
    for (int64_t l = 0; l <= s->layers; l++)
        s->memory[l] = random_floats(SEQUENCES * i->memory * i->width);
}

static void give(const step *s)
{
    const locus_model_info *i = &s->info;
    for (int64_t l = 0; l <= s->layers; l++)
        put("hidden", l, s->hidden[l], s->tokens * (l == s->layers ? i->last_width : i->width));
    for (int64_t l = 0; l < s->layers; l++) put("qkv", l, s->qkv[l], s->tokens * i->qkv_width);
    for (int64_t l = 0; l <= i->decoder_layers && s->both; l++)
        put("decoder_hidden", l, s->decoder_hidden[l], s->decoder_tokens * i->width);
    for (int64_t l = 0; l < i->decoder_layers; l++) {
        put("decoder_qkv", l, s->decoder_qkv[l], s->decoder_tokens * i->qkv_width);
        put("cross_q", l, s->cross_q[l], s->decoder_tokens * i->qkv_width);
        put("cross_kv", l, s->cross_kv[l], s->tokens * i->qkv_width);
    }
    put("logits", 0, s->out, s->logits);
    put("embedding", 0, s->embedding, SEQUENCES * i->last_width);
}

static void forward(step *s, void *kept, int with_memory, int with_rows)
{
    static const int32_t rows[] = {3, 0, 9};
    const int has_head = s->info.head != LOCUS_MODEL_NO_HEAD;
    const size_t bytes = locus_model_workspace(s->pass);
    void *workspace = take(bytes);
    const locus_model_batch batch = {.size = sizeof batch,
                                     .ids = s->ids,
                                     .types = s->info.types > 1 ? s->types : NULL,
                                     .rows = with_rows ? rows : NULL,
                                     .row_count = 3,
                                     .memory = with_memory ? s->memory : NULL,
                                     .features = s->features,
                                     .decoder_ids = s->decoder_ids};
    const locus_model_results results = {.size = sizeof results,
                                         .hidden = s->hidden,
                                         .logits = has_head ? s->out : NULL,
                                         .embedding = s->embedding,
                                         .qkv = s->qkv,
                                         .decoder_hidden = s->both ? s->decoder_hidden : NULL,
                                         .decoder_qkv = s->both ? s->decoder_qkv : NULL,
                                         .cross_q = s->both ? s->cross_q : NULL,
                                         .cross_kv = s->both ? s->cross_kv : NULL};
    const locus_status status =
        kept != NULL ? locus_model_forward_kept(s->pass, &batch, &results, kept,
                                                locus_model_kept(s->pass), workspace, bytes, &error)
                     : locus_model_forward(s->pass, &batch, &results, workspace, bytes, &error);
    if (status != LOCUS_OK) die("forward");
    free(workspace);
}

static void put_gradients(const step *s, const float *gradients, int64_t round)
{
    for (int64_t p = 0; p < locus_model_parameter_count(s->model); p++) {
        locus_model_parameter q = {.size = sizeof q};
        if (locus_model_parameter_at(s->model, p, &q, &error) != LOCUS_OK) die("parameter");
        put(q.name, round, gradients + q.at, locus_tensor_elements(&q.value));
    }
}

/* what: 1 logits, 2 the embedding, 4 the last states and those of a middle layer. */
static void backward(step *s, int what, int with_memory, int with_rows)
{
    const locus_model_info *i = &s->info;
    const int64_t floats = locus_model_parameter_floats(s->model), widest = s->tokens * 4096;
    void *kept = take(locus_model_kept(s->pass));
    const size_t bytes = locus_model_backward_workspace(s->pass);
    void *workspace = take(bytes);
    float *gradients = arrays(0, floats)[0], *given = random_floats(widest);
    float *input = arrays(0, widest)[0], *logits = random_floats(s->logits);
    const float **hidden = take((size_t)(s->layers + 1) * sizeof *hidden);
    const float **decoder = take((size_t)(i->decoder_layers + 1) * sizeof *decoder);
    memset(hidden, 0, (size_t)(s->layers + 1) * sizeof *hidden);
    memset(decoder, 0, (size_t)(i->decoder_layers + 1) * sizeof *decoder);
    if (what & 4) hidden[s->layers] = hidden[s->layers / 2] = decoder[i->decoder_layers] = given;
    forward(s, kept, with_memory, with_rows);
    const locus_model_gradients g = {.size = sizeof g,
                                     .hidden = hidden,
                                     .logits = (what & 1) && i->head != LOCUS_MODEL_NO_HEAD ? logits
                                                                                            : NULL,
                                     .embedding = (what & 2) ? given : NULL,
                                     .parameters = gradients,
                                     .input = input,
                                     .decoder_hidden = s->both ? decoder : NULL};
    if (locus_model_backward(s->pass, &g, kept, locus_model_kept(s->pass), workspace, bytes,
                             &error) != LOCUS_OK)
        die("backward");
    put_gradients(s, gradients, 100 * what + 10 * with_memory + with_rows);
    put("input", what, input, s->tokens * i->width);
    free(kept);
    free(workspace);
    free(gradients);
}

/* ---- tokens one by one ---- */

static void generate(locus_model *model, const locus_model_info *info, int64_t beams)
{
    const int32_t ids[] = {5, 9, 2, 7, 11, 3};
    const int64_t texts[] = {0, 4, 6};
    locus_generation how = {.size = sizeof how};
    locus_generated *made = NULL;
    if (info->next_tokens == 0) return;
    locus_generation_init(&how, model);
    how.beams = beams;
    how.max_new_tokens = 12;
    how.sample = 0;
    if (locus_generate(&made, model, &how, ids, texts, 2, &error) != LOCUS_OK) {
        fprintf(out, "generate %s.0\n0\n", error.text);
        return;
    }
    for (int64_t t = 0; t < 2; t++) {
        int64_t count = 0;
        const int32_t *found = locus_generated_ids(made, t, &count);
        float *as = take((size_t)count * sizeof *as);
        for (int64_t k = 0; k < count; k++) as[k] = (float)found[k];
        put(beams > 1 ? "beams" : "greedy", t, as, count);
    }
    locus_generated_free(made);
}

static locus_model *open_model(const char *folder, uint32_t trainable, locus_model_info *info)
{
    locus_model *model = NULL;
    const char *threads = getenv("THREADS");
    const locus_model_config config = {.size = sizeof config,
                                       .threads = threads != NULL
                                                      ? (uint32_t)strtoul(threads, NULL, 10)
                                                      : 1,
                                       .trainable = trainable};
    if (locus_model_open(&model, folder, &config, &error) != LOCUS_OK) die("open");
    *info = (locus_model_info){.size = sizeof *info};
    locus_model_describe(model, info);
    return model;
}

int main(int argc, char **argv)
{
    step s = {.model = NULL};
    if (argc != 3 || (out = fopen(argv[2], "wb")) == NULL) return 2;
    s.model = open_model(argv[1], 0, &s.info);
    begin(&s);
    forward(&s, NULL, 0, 0);
    give(&s);
    if (s.info.memory > 0 || s.info.head == LOCUS_MODEL_FILL) {
        forward(&s, NULL, s.info.memory > 0, s.info.head == LOCUS_MODEL_FILL);
        give(&s);
    }
    generate(s.model, &s.info, 1);
    generate(s.model, &s.info, 3);
    printf("workspace %zu", locus_model_workspace(s.pass));
    locus_model_pass_free(s.pass);
    locus_model_free(s.model);
    s = (step){.model = open_model(argv[1], 1, &s.info), .info = s.info};
    begin(&s);
    for (int what = 1; what <= 7; what++) backward(&s, what, 0, 0);
    if (s.info.memory > 0) backward(&s, 5, 1, 0);
    if (s.info.head == LOCUS_MODEL_FILL) backward(&s, 5, 0, 1);
    give(&s);
    printf(" kept %zu back %zu workspace %zu\n", locus_model_kept(s.pass),
           locus_model_backward_workspace(s.pass), locus_model_workspace(s.pass));
    locus_model_pass_free(s.pass);
    locus_model_free(s.model);
    return fclose(out) == 0 ? 0 : 2;
}

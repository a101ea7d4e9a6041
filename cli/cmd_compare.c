/* SPDX-License-Identifier: Apache-2.0 */
/* locus compare: a model in integers beside itself in float32, text by text, layer by layer. */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "inputs.h"
#include "json.h"
#include "precision.h"
#include "run.h"
#include "text.h"

typedef struct compare_values {
    const char *model, *precision, *pair, *file;
    cli_words texts;
    uint32_t truncate, threads;
    int json;
} compare_values;

enum { EXACT, ROUNDED, SIDES };

typedef struct difference {
    double error, size, most; /* sums of squares of differences and of exact numbers; largest */
} difference;

typedef struct comparison {
    const compare_values *values;
    locus_model *model[SIDES];
    locus_texts *texts[SIDES];
    locus_model_info info[SIDES];
    locus_tokenizer *tokenizer;
    difference *layer;                    /* [layers + 1] */
    difference answer;                    /* logits */
    int64_t count, tokens, rows, changed; /* rows of logits; those whose largest is another one */
    double least_cosine, cosines;
} comparison;

/* ---- one text ---- */

typedef struct outputs {
    float **hidden; /* [layers + 1] */
    float *embedding, *logits;
} outputs;

static void add(difference *d, const float *exact, const float *rounded, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const double off = (double)rounded[i] - (double)exact[i];
        d->error += off * off;
        d->size += (double)exact[i] * (double)exact[i];
        if (!(fabs(off) <= d->most)) d->most = fabs(off); /* NaN stays */
    }
}

/* Logits are of the labels, else of the token that comes next; of neither: 0. */
static int64_t logit_width(const locus_model_info *info)
{
    if (info->labels > 0) return info->labels;
    return info->decoder_layers == 0 ? info->next_tokens : 0;
}

static int64_t logit_rows(const locus_model_info *info, int64_t tokens)
{
    return info->labels > 0 && info->head != LOCUS_MODEL_CLASSIFY ? tokens : 1;
}

static void add_cosine(comparison *c, const float *a, const float *b, int64_t width)
{
    double dot = 0.0, aa = 0.0, bb = 0.0;
    for (int64_t i = 0; i < width; i++) {
        dot += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
    }
    const double cosine = dot / sqrt(aa * bb);
    c->cosines += cosine;
    if (!(cosine >= c->least_cosine)) c->least_cosine = cosine;
}

static int64_t largest(const float *x, int64_t width)
{
    int64_t best = 0;
    for (int64_t i = 1; i < width; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

static void add_text(comparison *c, const outputs o[SIDES], int64_t tokens)
{
    const locus_model_info *info = &c->info[EXACT];
    const int64_t width = logit_width(info), rows = logit_rows(info, tokens);
    for (int64_t l = 0; l <= info->layers; l++)
        add(&c->layer[l], o[EXACT].hidden[l], o[ROUNDED].hidden[l],
            tokens * (l < info->layers ? info->width : info->last_width));
    add_cosine(c, o[EXACT].embedding, o[ROUNDED].embedding, info->embedding_width);
    for (int64_t r = 0; width > 0 && r < rows; r++) {
        const float *a = o[EXACT].logits + r * width, *b = o[ROUNDED].logits + r * width;
        add(&c->answer, a, b, width);
        c->changed += largest(a, width) != largest(b, width);
    }
    c->rows += width > 0 ? rows : 0;
    c->tokens += tokens;
    c->count++;
}

static locus_status forward(comparison *c, int side, const locus_text_input *input, outputs *o,
                            int64_t *tokens, locus_error *error)
{
    const locus_model_info *info = &c->info[EXACT];
    locus_texts_clear(c->texts[side]);
    locus_status status = locus_texts_add(c->texts[side], input, error);
    if (status != LOCUS_OK) return status;
    *tokens = locus_texts_offsets(c->texts[side])[1];
    const int64_t widest = info->last_width > info->width ? info->last_width : info->width;
    const int64_t logits = logit_rows(info, *tokens) * logit_width(info);
    o->hidden = run_arrays_new(info->layers + 1, *tokens * widest);
    o->embedding = calloc((size_t)info->embedding_width + 1, sizeof *o->embedding);
    o->logits = calloc((size_t)logits + 1, sizeof *o->logits);
    if (o->hidden == NULL || o->embedding == NULL || o->logits == NULL) return LOCUS_ERR_MEMORY;
    const locus_model_results results = {.size = sizeof results,
                                         .hidden = o->hidden,
                                         .embedding = o->embedding,
                                         .logits = info->labels > 0 ? o->logits : NULL,
                                         .next =
                                             info->labels == 0 && logits > 0 ? o->logits : NULL};
    return locus_texts_forward(c->texts[side], &results, error);
}

static int take(void *to, const locus_text_input *input, double progress)
{
    comparison *c = to;
    outputs o[SIDES] = {{.hidden = NULL}};
    locus_error error = {""};
    locus_status status = LOCUS_OK;
    int64_t tokens = 0;
    (void)progress;
    for (int side = 0; status == LOCUS_OK && side < SIDES; side++)
        status = forward(c, side, input, &o[side], &tokens, &error);
    if (status == LOCUS_OK && tokens > 0) add_text(c, o, tokens);
    for (int side = 0; side < SIDES; side++) {
        run_arrays_free(o[side].hidden);
        free(o[side].embedding);
        free(o[side].logits);
    }
    return status == LOCUS_OK ? CLI_DONE : cli_report("compare", status, NULL, &error);
}

/* ---- the results ---- */

static double relative(const difference *d) { return sqrt(d->error / d->size); }

static void print_plain(const comparison *c)
{
    const int64_t layers = c->info[EXACT].layers;
    printf("%" PRId64 " texts, %" PRId64 " tokens, %s beside exact\n\n", c->count, c->tokens,
           c->values->precision);
    printf("%-12s  %12s  %12s\n", "states", "rms error", "largest");
    for (int64_t l = 0; l <= layers; l++) {
        char name[32];
        snprintf(name, sizeof name, l == 0 ? "embeddings" : "layer %" PRId64, l);
        printf("%-12s  %12.2e  %12.2e\n", name, relative(&c->layer[l]), c->layer[l].most);
    }
    if (c->rows > 0)
        printf("%-12s  %12.2e  %12.2e\n", "logits", relative(&c->answer), c->answer.most);
    printf("\ncosine of embeddings: least %.6f, mean %.6f\n", c->least_cosine,
           c->cosines / (double)c->count);
    if (c->rows > 0) printf("changed answers: %" PRId64 " of %" PRId64 "\n", c->changed, c->rows);
    printf("memory: %.3f of exact\n",
           (double)c->info[ROUNDED].bytes / (double)c->info[EXACT].bytes);
}

static void json_difference(json *j, const char *key, const difference *d)
{
    json_inline_object(j, key);
    json_real(j, "rms_error", relative(d));
    json_real(j, "largest", d->most);
    json_end(j);
}

static void print_json(const comparison *c)
{
    json j = {.out = stdout};
    json_object(&j, NULL);
    json_text(&j, "model", c->values->model);
    json_text(&j, "precision", c->values->precision);
    json_integer(&j, "texts", c->count);
    json_integer(&j, "tokens", c->tokens);
    json_array(&j, "states");
    for (int64_t l = 0; l <= c->info[EXACT].layers; l++) json_difference(&j, NULL, &c->layer[l]);
    json_end(&j);
    if (c->rows > 0) json_difference(&j, "logits", &c->answer);
    json_real(&j, "least_cosine", c->least_cosine);
    json_real(&j, "mean_cosine", c->cosines / (double)c->count);
    json_integer(&j, "answers", c->rows);
    json_integer(&j, "changed", c->changed);
    json_size(&j, "bytes", c->info[ROUNDED].bytes);
    json_size(&j, "exact_bytes", c->info[EXACT].bytes);
    json_end(&j);
}

/* ---- the command ---- */

static int open_sides(comparison *c, uint32_t precision)
{
    locus_error error = {""};
    const compare_values *v = c->values;
    locus_status status = locus_tokenizer_open(&c->tokenizer, v->model, NULL, &error);
    for (int side = 0; status == LOCUS_OK && side < SIDES; side++) {
        const locus_model_config config = {.size = sizeof config,
                                           .threads = v->threads,
                                           .precision = side == EXACT ? LOCUS_EXACT : precision};
        c->info[side].size = sizeof c->info[side];
        status = locus_model_open(&c->model[side], v->model, &config, &error);
        if (status != LOCUS_OK) break;
        locus_model_describe(c->model[side], &c->info[side]);
        status = locus_texts_new(&c->texts[side], c->model[side], c->tokenizer, NULL, &error);
    }
    if (status != LOCUS_OK) return cli_report("compare", status, v->model, &error);
    const int exit_code = precision_check("compare", v->model, locus_precision_name(LOCUS_EXACT),
                                          c->info[EXACT].precision);
    if (exit_code != CLI_DONE) return exit_code;
    c->layer = calloc((size_t)c->info[EXACT].layers + 1, sizeof *c->layer);
    return c->layer != NULL ? CLI_DONE : cli_complain("compare", CLI_RESOURCES, "out of memory");
}

static int compare_all(comparison *c, uint32_t precision)
{
    const compare_values *v = c->values;
    const text_source source = {.command = "compare",
                                .texts = &v->texts,
                                .pair = v->pair,
                                .file = v->file,
                                .truncate = v->truncate,
                                .take = take,
                                .to = c};
    int exit_code = open_sides(c, precision);
    if (exit_code == CLI_DONE) exit_code = inputs_walk(&source);
    if (exit_code == CLI_DONE && c->count == 0)
        exit_code = cli_complain("compare", CLI_REFUSED, "there is no text with tokens");
    if (exit_code == CLI_DONE && v->json) print_json(c);
    if (exit_code == CLI_DONE && !v->json) print_plain(c);
    for (int side = 0; side < SIDES; side++) {
        locus_texts_free(c->texts[side]);
        locus_model_free(c->model[side]);
    }
    locus_tokenizer_close(c->tokenizer);
    free(c->layer);
    return exit_code;
}

static int compare_run(int argc, char **argv)
{
    compare_values v = {.precision = "i16"};
    comparison c = {.values = &v, .least_cosine = 1.0};
    uint32_t precision = LOCUS_EXACT;
    int exit_code = CLI_DONE;
    if (!cli_parse(&cmd_compare, argc, argv, &v, &exit_code)) return exit_code;
    exit_code = precision_read("compare", v.precision, &precision);
    if (exit_code != CLI_DONE) return exit_code;
    if ((v.texts.count > 0) == (v.file != NULL))
        return cli_complain("compare", CLI_USAGE, "give TEXT or --file, one of them");
    return compare_all(&c, precision);
}

static const cli_example compare_examples[] = {
    {"locus compare all-MiniLM-L6-v2 --precision int8 --file lines.txt",
     "what int8 changes on your own texts"},
    {NULL, NULL},
};

#define FIELD(name) .offset = offsetof(compare_values, name)

static const cli_option compare_options[] = {
    PRECISION_OPTION(FIELD(precision)),
    {.name = "pair",
     .argument = "TEXT",
     .help = "second segment; also a tab in a line of --file",
     .kind = CLI_TEXT,
     FIELD(pair)},
    {.name = "file",
     .argument = "FILE",
     .help = "one input per line (-: standard input)",
     .kind = CLI_INPUT,
     FIELD(file)},
    {.name = "truncate",
     .argument = "N",
     .help = "cut to N tokens, special ones included",
     .kind = CLI_INTEGER,
     .minimum = 1,
     .maximum = UINT32_MAX,
     FIELD(truncate)},
    {.name = "threads",
     .argument = "N",
     .help = "threads (all processors)",
     .kind = CLI_INTEGER,
     .minimum = 1,
     .maximum = 256,
     FIELD(threads)},
    {.name = "json", .help = "print JSON", .kind = CLI_FLAG, FIELD(json)},
    {.name = NULL},
};

const cli_command cmd_compare = {
    .name = "compare",
    .summary = "a model in integers beside itself in float32",
    .description =
        "Opens a model twice, in float32 and as --precision says (i16), and runs every text "
        "through both: the error of the states behind each layer (root mean square over that of "
        "the exact states, and the largest), of the logits of labels or of the token that comes "
        "next, how many answers changed, and cosines of embeddings.",
    .usage = "MODEL [TEXT ...] [--file FILE] [--pair TEXT] [--precision NAME] [--json]",
    .examples = compare_examples,
    .options = compare_options,
    .operand = {.name = "MODEL",
                .help = "a folder with config.json, model.safetensors, tokenizer files",
                .kind = CLI_INPUT,
                .required = 1,
                FIELD(model)},
    .rest = {.name = "TEXT",
             .help = "one input each, taken as it is",
             .kind = CLI_TEXT,
             FIELD(texts)},
    .run = compare_run,
};

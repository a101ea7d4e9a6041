/* SPDX-License-Identifier: Apache-2.0 */
/* locus explain: a score as the sum of its terms. */
#include <stddef.h>
#include <string.h>

#include "commands.h"
#include "explain.h"
#include "text.h"

/* ---- the three views ---- */

static int show_row(const explain_call *call, const explain_row *row)
{
    const explain_values *v = call->values;
    if (v->output != NULL) {
        const int exit_code = explain_draw_row(call, row);
        if (exit_code != CLI_DONE) return exit_code;
    }
    if (v->json)
        explain_json_row(call, row);
    else if (v->csv)
        explain_csv_row(call, row);
    else if (v->key != EXPLAIN_NONE)
        explain_print_pair(call, row);
    else
        explain_print_row(call, row);
    return CLI_DONE;
}

static int show_summary(const explain_call *call, const explain_summary *summary)
{
    const explain_values *v = call->values;
    if (v->output != NULL) {
        const int exit_code = explain_draw_summary(call, summary);
        if (exit_code != CLI_DONE) return exit_code;
    }
    if (v->json)
        explain_json_summary(call, summary);
    else if (v->csv)
        explain_csv_summary(call, summary);
    else
        explain_print_summary(call, summary);
    return CLI_DONE;
}

static int explain_query(const explain_call *call)
{
    const explain_values *v = call->values;
    const int one = v->key != EXPLAIN_NONE;
    explain_row row;
    locus_error error = {""};
    const locus_status status =
        explain_row_new(&row, call, v->query, one ? v->key : 0, one ? 1 : call->info.keys, &error);
    if (status != LOCUS_OK) return cli_report("explain", status, v->path, &error);
    const int exit_code = show_row(call, &row);
    explain_row_free(&row);
    return exit_code;
}

static int explain_all(const explain_call *call)
{
    explain_summary summary;
    locus_error error = {""};
    const locus_status status = explain_summary_new(&summary, call, &error);
    if (status != LOCUS_OK) return cli_report("explain", status, call->values->path, &error);
    const int exit_code = show_summary(call, &summary);
    explain_summary_free(&summary);
    return exit_code;
}

/* ---- the command ---- */

static int ends_in(const char *name, const char *ending)
{
    const char *dot = name != NULL ? strrchr(name, '.') : NULL;
    return dot != NULL && strcmp(dot, ending) == 0;
}

static const char *model_contradiction(const explain_values *v)
{
    if (v->text == NULL) return "a MODEL needs a --text";
    if (v->scheme != NULL || v->tokens != NULL || v->length != EXPLAIN_NONE || v->causal ||
        v->options.count > 0)
        return "a MODEL brings its scheme, options and tensors: --scheme, --tokens, --length, "
               "--option and --causal are for calls without one";
    if (v->layer == EXPLAIN_NONE && (v->head != EXPLAIN_NONE || v->query != EXPLAIN_NONE))
        return "--head and --query need a --layer of the MODEL";
    if (v->csv && v->query == EXPLAIN_NONE && v->stack != NULL && strcmp(v->stack, "cross") == 0)
        return "--csv sums up by distance, and two texts have none between them: give a --query";
    if (v->layer == EXPLAIN_NONE && (v->csv || (v->output != NULL && !ends_in(v->output, ".html"))))
        return "--csv and --output FILE.svg need a --layer of the MODEL; \"locus plot MODEL --what "
               "share\" draws all of them, and -o FILE.html takes all of them";
    return NULL;
}

static const char *call_contradiction(const explain_values *v)
{
    const int lengths = (v->tokens != NULL) + (v->text != NULL) + (v->length != EXPLAIN_NONE);
    if (v->path == NULL && v->scheme == NULL)
        return "give a MODEL with --text, a CASE, or --scheme with --tokens";
    if (v->layer != EXPLAIN_NONE) return "--layer is for a MODEL";
    if (v->stack != NULL || v->decoder_ids != NULL)
        return "--stack and --decoder-ids are for a MODEL";
    if (v->tokenizer != NULL) return "--tokenizer is for a MODEL";
    if (v->path != NULL && (v->scheme != NULL || lengths > 0 || v->causal || v->options.count > 0))
        return "a CASE brings its scheme, options and tensors: --scheme, --tokens, --text, "
               "--length, --option and --causal are for calls without one";
    if (v->path == NULL && lengths != 1)
        return "--scheme needs one of --tokens, --text and --length";
    return NULL;
}

static const char *contradiction(const explain_values *v)
{
    const char *wrong =
        model_call_is_folder(v->path) ? model_contradiction(v) : call_contradiction(v);
    if (wrong != NULL) return wrong;
    if (v->json && v->csv) return "--json and --csv exclude each other";
    if (v->key != EXPLAIN_NONE && v->query == EXPLAIN_NONE) return "--key needs a --query";
    if (v->output != NULL && !ends_in(v->output, ".svg") && !ends_in(v->output, ".html"))
        return "--output: expected a name that ends in .svg or .html";
    return NULL;
}

static int explain_run(int argc, char **argv)
{
    explain_values values = {.length = EXPLAIN_NONE,
                             .layer = EXPLAIN_NONE,
                             .seed = 2017,
                             .batch = EXPLAIN_NONE,
                             .head = EXPLAIN_NONE,
                             .query = EXPLAIN_NONE,
                             .key = EXPLAIN_NONE};
    explain_call call;
    int exit_code = CLI_DONE;
    if (!cli_parse(&cmd_explain, argc, argv, &values, &exit_code)) return exit_code;
    const char *wrong = contradiction(&values);
    if (wrong != NULL) return cli_complain("explain", CLI_USAGE, "%s", wrong);
    if (ends_in(values.output, ".html")) return explain_page(&values);
    if (model_call_is_folder(values.path) && values.layer == EXPLAIN_NONE)
        return explain_shares(&values);
    exit_code = explain_open(&call, &values);
    if (exit_code != CLI_DONE) return exit_code;
    if (call.model.model != NULL) exit_code = explain_split(&call);
    if (exit_code == CLI_DONE)
        exit_code = values.query != EXPLAIN_NONE ? explain_query(&call) : explain_all(&call);
    explain_close(&call);
    return exit_code;
}

static const cli_example explain_examples[] = {
    {"locus explain deberta-v3-xsmall --text \"The keys to the cabinet are here.\"",
     "which terms the heads of a trained model live on, layer by layer"},
    {"locus explain deberta-v3-xsmall --text \"Hello world\" --layer 3 --head 2 -o terms.svg",
     "one head: the terms of its scores, by distance and for the strongest pairs"},
    {"locus explain deberta-v3-xsmall --text \"The keys to the cabinet are here.\" -o page.html",
     "where every head looks without and with positions: one page with a switch"},
    {"locus explain opus-mt-en-fr --text \"My name is Sarah.\" --stack cross --layer 3 --head 2",
     "which words of the text a head of the decoder asks while it translates"},
    {"locus explain --scheme t5 --tokens \"the cat sat on the mat\"",
     "how much each term contributes, by distance; seeded weights"},
    {"locus explain --scheme transformer_xl --tokens \"the cat sat\" --query 2",
     "one query: every key, term by term"},
    {"locus explain --scheme deberta --tokens \"the cat sat\" --query 2 --key 0",
     "one score as an equation"},
    {"locus explain case.safetensors --head 1 -o terms.svg", "heatmaps of a case's terms"},
    {"locus explain case.safetensors --query 5 --json", "one query for a program"},
    {NULL, NULL},
};

/* clang-format off */
#define FIELD(name) .offset = offsetof(explain_values, name)
#define INDEX(name) .kind = CLI_INTEGER, .maximum = EXPLAIN_NONE - 1, FIELD(name)
static const cli_option explain_options[] = {
    {.name = "query", .letter = 'q', .argument = "M", .help = "query row M, with all its keys",
     INDEX(query)},
    {.name = "key", .letter = 'k', .argument = "N", .help = "this key alone", INDEX(key)},
    {.name = "layer", .argument = "L", .help = "of a MODEL", INDEX(layer)},
    {.name = "tokenizer",
     .argument = "PATH",
     .help = "the tokenizer, where it is not in MODEL: a folder or a file",
     .kind = CLI_INPUT,
     FIELD(tokenizer)},
    {.name = "stack", .argument = "NAME", .kind = CLI_LIST, .value = model_stack_at,
     .help = "of a MODEL with a decoder behind an encoder: encoder, decoder, or cross, where the "
             "decoder asks the encoder (encoder)", FIELD(stack)},
    {.name = "decoder-ids", .argument = "LIST", .kind = CLI_LIST,
     .help = "what the decoder has said, start first (what the model answers)", FIELD(decoder_ids)},
    {.name = "head", .argument = "H", .help = "attention head (0)", INDEX(head)},
    {.name = "batch", .argument = "B", .help = "entry of the batch (0)", INDEX(batch)},
    {.name = "scheme", .letter = 's', .argument = "NAME",
     .help = "without a CASE: this scheme, with 4 heads of 16 and seeded weights",
     .kind = CLI_SCHEME, FIELD(scheme)},
    {.name = "tokens", .letter = 't', .argument = "TEXT",
     .help = "words with blanks between; equal words get equal rows", .kind = CLI_LIST,
     FIELD(tokens)},
    {.name = "text", .argument = "TEXT",
     .help = "of a MODEL: the text itself; with --scheme: a file of words, - for standard input",
     .kind = CLI_TEXT, FIELD(text)},
    {.name = "length", .letter = 'n', .argument = "N", .help = "instead: N tokens without names",
     .kind = CLI_INTEGER, .minimum = 1, .maximum = EXPLAIN_TOKENS, FIELD(length)},
    {.name = "option", .argument = "NAME=VALUE",
     .help = "of the scheme (\"locus schemes NAME\"); may be repeated", .kind = CLI_PAIRS,
     FIELD(options)},
    {.name = "causal", .help = "queries do not see later keys", .kind = CLI_FLAG, FIELD(causal)},
    {.name = "seed", .argument = "S", .help = "of the weights (2017)", .kind = CLI_INTEGER,
     .maximum = UINT32_MAX, FIELD(seed)},
    {.name = "output", .letter = 'o', .argument = "FILE",
     .help = "also write a picture: stacked bars of a query, heatmaps of all pairs; instead, as FILE.html, a page "
             "whose switch takes position out of the score and puts it back, for every head",
     .kind = CLI_OUTPUT, FIELD(output)},
    {.name = "json", .help = "print JSON", .kind = CLI_FLAG, FIELD(json)},
    {.name = "csv", .help = "print CSV", .kind = CLI_FLAG, FIELD(csv)},
    {.name = NULL},
};
/* clang-format on */

const cli_command cmd_explain = {
    .name = "explain",
    .summary = "a score split into its terms",
    .description =
        "Splits the scores of an attention call into the terms they are sums of: content, "
        "content-position, position-content, position-position, bias, Transformer-XL's u.k and "
        "w.r; a rotation is one term, of a model those of its bands of frequency, and a layer that adds positions to its input has the four "
        "of (Wq x_m + Wq p_m) . (Wk x_n + Wk p_n). Every term carries its scale, so they add up to "
        "the logit. In double precision, for one head. The call is one layer of a trained model on "
        "a text, that of a case file, or made up from a scheme, tokens and a seed. Without --query "
        "all pairs are summarised, in bounded memory; without --layer all heads of a model are.",
    .usage = "MODEL --text TEXT [--layer L --head H] | CASE | --scheme NAME --tokens TEXT [...]",
    .examples = explain_examples,
    .options = explain_options,
    .operand = {.name = "MODEL|CASE",
                .help = "the folder of a model, or a case file (docs/formats.md)",
                .kind = CLI_INPUT,
                .offset = offsetof(explain_values, path)},
    .run = explain_run,
};

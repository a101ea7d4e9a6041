/* SPDX-License-Identifier: Apache-2.0 */
/* locus plot: the pictures of a scheme. */
#include <stddef.h>
#include <string.h>

#include <locus/picture.h>

#include "cli.h"
#include "commands.h"
#include "model_call.h"
#include "plot.h"
#include "settings.h"
#include "text.h"
#include "tokens.h"

/* ---- refusals ---- */

/* A word of --what that is probably a misspelling of a picture that the scheme has. */
static int check_what(const plot_values *values)
{
    enum { KINDS = 32, WORD = 160 };
    const char *names[KINDS];
    char word[WORD], quoted[WORD];
    size_t count = 0;
    const locus_picture_kind *kind;
    while (count < KINDS && (kind = locus_picture_kind_at(values->scheme, count)) != NULL)
        names[count++] = kind->name;
    for (const char *at = values->what; at != NULL && *at != '\0'; at += *at == ',' ? 1 : 0) {
        const size_t length = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", (int)(length < WORD ? length : WORD - 1), at);
        at += length;
        const char *near = locus_nearest(word, names, count);
        if (near != NULL && strcmp(near, word) != 0)
            return cli_complain("plot", CLI_USAGE,
                                "--what: unknown picture \"%s\"; did you mean \"%s\"?",
                                text_quote(quoted, sizeof quoted, word), near);
    }
    return CLI_DONE;
}

/* A field that the library refuses has the name of its option: "head: found 9, ...". */
static int names_option(const char *text)
{
    const size_t length = strcspn(text, ":");
    for (const cli_option *o = cmd_plot.options; o->name != NULL; o++)
        if (strlen(o->name) == length && strncmp(o->name, text, length) == 0) return 1;
    return 0;
}

/* A call that was made up and is refused was described by the command line. */
static int refuse(const plot_values *values, locus_status status, const locus_error *error)
{
    if (status == LOCUS_ERR_ARGUMENT || (values->path == NULL && status != LOCUS_ERR_MEMORY))
        return cli_complain("plot", CLI_USAGE, "%s%s", names_option(error->text) ? "--" : "",
                            error->text);
    return cli_report("plot", status, values->path, error);
}

/* ---- the command ---- */

static const char *theme_at(size_t index)
{
    static const char *const themes[] = {"auto", "light", "dark"};
    return index < sizeof themes / sizeof *themes ? themes[index] : NULL;
}

static const char *picture_at(size_t index)
{
    const locus_picture_kind *kind = locus_picture_kind_at(NULL, index);
    return kind != NULL ? kind->name : NULL;
}

static int check_values(const plot_values *v)
{
    char quoted[160];
    int known = v->theme == NULL;
    for (size_t i = 0; theme_at(i) != NULL && !known; i++)
        known = strcmp(v->theme, theme_at(i)) == 0;
    if (!known)
        return cli_complain("plot", CLI_USAGE, "--theme: expected light, dark or auto, got \"%s\"",
                            text_quote(quoted, sizeof quoted, v->theme));
    if (v->csv && v->json)
        return cli_complain("plot", CLI_USAGE, "--csv and --json exclude each other");
    if ((v->tokens != NULL) + (v->text != NULL) + (v->length != 0) > 1)
        return cli_complain("plot", CLI_USAGE, "--tokens, --text and --length exclude each other");
    if (v->scheme == NULL && v->path == NULL)
        return cli_complain("plot", CLI_USAGE, "SCHEME is missing; see \"locus plot --help\"");
    if (v->path == NULL && locus_scheme_find(v->scheme) == NULL)
        return cli_unknown_scheme("plot", v->scheme);
    return check_what(v);
}

static int take_tokens(token_list *tokens, const plot_values *v)
{
    if (v->text != NULL) return tokens_read(tokens, "plot", v->text, LOCUS_PICTURE_TOKENS);
    if (v->tokens == NULL) return CLI_DONE;
    return tokens_cut(tokens, "plot", v->tokens, LOCUS_PICTURE_TOKENS);
}

static int draw(const plot_values *v, const token_list *tokens)
{
    settings s;
    locus_error error = {""};
    locus_picture *picture = NULL;
    locus_picture_request request;
    settings_split(&s, &v->options);
    locus_picture_request_init(&request, v->scheme);
    request.what = v->what;
    request.tokens = tokens->names;
    request.token_count = tokens->count;
    request.length = v->length;
    request.heads = v->heads;
    request.dim = v->dim;
    request.head = v->head != PLOT_NONE ? (int64_t)v->head : -1;
    request.window = v->window != PLOT_NONE ? (int64_t)v->window : -1;
    request.causal = v->causal ? 1 : 0;
    request.seed = v->seed;
    request.settings = s.list;
    request.path = v->path;
    const locus_status status = locus_picture_new(&picture, &request, &error);
    if (status != LOCUS_OK) return refuse(v, status, &error);
    const int exit_code = plot_write(v, locus_picture_figure(picture));
    locus_picture_free(picture);
    return exit_code;
}

/* A folder that no scheme is called like. */
static int is_model(const plot_values *v)
{
    return v->scheme != NULL && locus_scheme_find(v->scheme) == NULL &&
           model_call_is_folder(v->scheme);
}

static int plot_run(int argc, char **argv)
{
    plot_values values = {.head = PLOT_NONE, .layer = PLOT_NONE, .window = PLOT_NONE, .seed = 2017};
    token_list tokens = {.count = 0};
    int exit_code = CLI_DONE;
    if (!cli_parse(&cmd_plot, argc, argv, &values, &exit_code)) return exit_code;
    if (is_model(&values)) return plot_model(&values);
    if (values.layer != PLOT_NONE || values.stack != NULL || values.decoder_ids != NULL)
        return cli_complain("plot", CLI_USAGE,
                            "--layer, --stack and --decoder-ids are for a MODEL");
    exit_code = check_values(&values);
    if (exit_code == CLI_DONE) exit_code = take_tokens(&tokens, &values);
    if (exit_code == CLI_DONE) exit_code = draw(&values, &tokens);
    tokens_free(&tokens);
    return exit_code;
}

static const cli_example plot_examples[] = {
    {"locus plot ./deberta-v3-xsmall --what share -o share.svg",
     "a trained model: which term every head lives on"},
    {"locus plot ./all-mpnet-base-v2 --what bias", "a trained model: its bias by distance"},
    {"locus plot ./deberta-v3-xsmall --what terms --text \"Hello world\" --layer 3 --head 2",
     "one head of it: the terms of its scores side by side"},
    {"locus plot ./flan-t5-small --what bias --stack decoder", "the bias of its decoder"},
    {"locus plot t5", "buckets and biases, in the terminal"},
    {"locus plot sinusoidal -o sinusoidal.svg",
     "a picture for a page, light or dark as it is read"},
    {"locus plot shaw --what distance --tokens \"the cat sat\"", "clip(m - n) among three tokens"},
    {"locus plot alibi --what attention --causal -o a.png", "the attention maps that result"},
    {"locus plot --case tests/golden/t5/encoder.safetensors", "from given q, k and tables"},
    {"locus plot rope --what decay --csv", "the numbers of the curve"},
    {NULL, NULL},
};

/* clang-format off */
static const cli_option plot_options[] = {
    {.name = "what", .letter = 'w', .argument = "LIST", .kind = CLI_LIST, .value = picture_at,
     .help = "encoding, layouts, similarity, distance, rows, bias, angles, decay, position, "
             "attention, terms, variants; of a MODEL: share, terms or bias",
     .offset = offsetof(plot_values, what)},
    {.name = "tokens", .letter = 't', .argument = "TEXT", .kind = CLI_LIST,
     .help = "a sentence, cut at blanks; its words name rows and columns",
     .offset = offsetof(plot_values, tokens)},
    {.name = "text", .argument = "FILE", .kind = CLI_TEXT,
     .help = "the same from a file, \"-\": standard input; of a MODEL: the text itself", .offset = offsetof(plot_values, text)},
    {.name = "length", .letter = 'n', .argument = "N", .kind = CLI_INTEGER,
     .help = "positions, or the farthest distance", .minimum = 1, .maximum = LOCUS_PICTURE_LENGTH,
     .offset = offsetof(plot_values, length)},
    {.name = "heads", .argument = "N", .kind = CLI_INTEGER, .help = "heads of the made-up call",
     .minimum = 1, .maximum = LOCUS_PICTURE_HEADS, .offset = offsetof(plot_values, heads)},
    {.name = "layer", .argument = "N", .kind = CLI_INTEGER, .help = "of a MODEL (0)",
     .maximum = 4096, .offset = offsetof(plot_values, layer)},
    {.name = "tokenizer",
     .argument = "PATH",
     .help = "the tokenizer, where it is not in MODEL: a folder or a file",
     .kind = CLI_INPUT,
     .offset = offsetof(plot_values, tokenizer)},
    {.name = "stack", .argument = "NAME", .kind = CLI_LIST, .value = model_stack_at,
     .help = "of a MODEL with a decoder behind an encoder: encoder, decoder or cross (encoder)",
     .offset = offsetof(plot_values, stack)},
    {.name = "decoder-ids", .argument = "LIST", .kind = CLI_LIST,
     .help = "what its decoder has said, start first (what the model answers)",
     .offset = offsetof(plot_values, decoder_ids)},
    {.name = "head", .argument = "N", .kind = CLI_INTEGER, .help = "show this head only",
     .maximum = 4096, .offset = offsetof(plot_values, head)},
    {.name = "dim", .letter = 'd', .argument = "N", .kind = CLI_INTEGER, .help = "width of a head",
     .minimum = 2, .maximum = LOCUS_PICTURE_DIM, .offset = offsetof(plot_values, dim)},
    {.name = "option", .argument = "NAME=VALUE", .kind = CLI_PAIRS,
     .help = "an option of the scheme, as locus schemes SCHEME lists them; may be repeated",
     .offset = offsetof(plot_values, options)},
    {.name = "causal", .kind = CLI_FLAG, .help = "a query sees no keys after it",
     .offset = offsetof(plot_values, causal)},
    {.name = "window", .argument = "N", .kind = CLI_INTEGER,
     .help = "a query sees keys at most this far away", .maximum = LOCUS_PICTURE_LENGTH,
     .offset = offsetof(plot_values, window)},
    {.name = "seed", .argument = "N", .kind = CLI_INTEGER, .help = "of the made-up numbers",
     .maximum = UINT32_MAX, .offset = offsetof(plot_values, seed)},
    {.name = "case", .argument = "FILE", .kind = CLI_INPUT,
     .help = "take q, k and tables from a case file", .offset = offsetof(plot_values, path)},
    {.name = "output", .letter = 'o', .argument = "FILE", .kind = CLI_OUTPUT,
     .help = "write FILE.svg, .png, .csv, .json or .txt instead of drawing here",
     .offset = offsetof(plot_values, output)},
    {.name = "theme", .argument = "NAME", .kind = CLI_LIST, .value = theme_at,
     .help = "light, dark or auto (as the reader's screen)",
     .offset = offsetof(plot_values, theme)},
    {.name = "width", .argument = "PIXELS", .kind = CLI_INTEGER, .help = "of an .svg or .png",
     .minimum = 200, .maximum = 10000, .offset = offsetof(plot_values, width)},
    {.name = "csv", .kind = CLI_FLAG, .help = "print the numbers as CSV",
     .offset = offsetof(plot_values, csv)},
    {.name = "json", .kind = CLI_FLAG, .help = "print the numbers as JSON",
     .offset = offsetof(plot_values, json)},
    {.name = NULL},
};
/* clang-format on */

const cli_command cmd_plot = {
    .name = "plot",
    .summary = "pictures of what a scheme does to attention",
    .description =
        "Draws a scheme from its own rules and, in double precision, from the score they lead to: "
        "what is added to the input, which table row serves which pair, biases and rotations by "
        "distance, the terms of the score, the attention that results. Queries run down, keys "
        "across. Without --output the picture is drawn in letters, in colour on a terminal. "
        "Without --what a scheme gets the pictures that show best what it is about. Of a trained "
        "model: the share of each term of the score in all layers and heads, the terms of one head "
        "on a text, the learned bias by distance.",
    .usage = "SCHEME | MODEL [--what LIST] [--tokens TEXT | --text FILE | --length N] [-o FILE]",
    .examples = plot_examples,
    .options = plot_options,
    .operand = {.name = "SCHEME",
                .help =
                    "one of the names that locus schemes lists, or the folder of a model; may be "
                    "left out beside --case",
                .kind = CLI_SCHEME,
                .offset = offsetof(plot_values, scheme)},
    .run = plot_run,
};

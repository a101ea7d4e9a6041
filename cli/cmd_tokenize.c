/* SPDX-License-Identifier: Apache-2.0 */
/* locus tokenize: text to ids, tokens and byte offsets, and ids back to text. */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "inputs.h"
#include "json.h"
#include "pieces.h"
#include "text.h"

typedef struct tokenize_values {
    const char *model, *pair, *file, *ids;
    cli_words texts;
    int json, plain;
    uint32_t truncate;
} tokenize_values;

typedef struct session {
    const tokenize_values *values;
    locus_tokenizer *tokenizer;
    locus_encoding *encoding;
    locus_tokenizer_info info;
    size_t printed; /* results so far */
} session;

static int report(const session *s, locus_status status, const locus_error *error)
{
    return cli_report("tokenize", status, s->values->model, error);
}

/* ---- printing ---- */

static void print_json(const session *s)
{
    json j = {.out = stdout};
    const locus_encoding *e = s->encoding;
    const size_t count = locus_encoding_count(e);
    const locus_offset *offsets = locus_encoding_offsets(e);
    const uint32_t *types = locus_encoding_types(e);
    json_inline_object(&j, NULL);
    pieces_json(&j, s->tokenizer, locus_encoding_ids(e), count);
    json_inline_array(&j, "offsets");
    for (size_t i = 0; i < count; i++) {
        json_inline_array(&j, NULL);
        json_size(&j, NULL, offsets[i].begin);
        json_size(&j, NULL, offsets[i].end);
        json_end(&j);
    }
    json_end(&j);
    if (s->info.has_types) {
        json_inline_array(&j, "type_ids");
        for (size_t i = 0; i < count; i++) json_size(&j, NULL, types[i]);
        json_end(&j);
    }
    json_end(&j);
}

static void print_plain(session *s)
{
    static const char *const segments[] = {"first", "second", "added"};
    const locus_encoding *e = s->encoding;
    const size_t count = locus_encoding_count(e);
    const int pair = s->values->pair != NULL || s->values->file != NULL;
    if (s->printed > 0) putchar('\n');
    printf("%s%8s  %9s%s%s  token%s\n", text_bold(), "id", "bytes",
           s->info.has_types ? "  type" : "", pair ? "  segment" : "", text_plain());
    for (size_t i = 0; i < count; i++) {
        const locus_offset o = locus_encoding_offsets(e)[i];
        char range[48];
        snprintf(range, sizeof range, "%" PRIu64 "-%" PRIu64, o.begin, o.end);
        printf("%8" PRIu32 "  %9s", locus_encoding_ids(e)[i],
               locus_encoding_segments(e)[i] == 2 ? "-" : range);
        if (s->info.has_types) printf("  %4" PRIu32, locus_encoding_types(e)[i]);
        if (pair) printf("  %-7s", segments[locus_encoding_segments(e)[i]]);
        printf("  ");
        pieces_print(stdout, s->tokenizer, locus_encoding_ids(e)[i]);
        putchar('\n');
    }
}

/* ---- one input ---- */

static int encode(void *to, const locus_text_input *input, double progress)
{
    session *s = to;
    locus_error error = {""};
    (void)progress;
    const locus_status status = locus_tokenizer_encode(s->tokenizer, input, s->encoding, &error);
    if (status != LOCUS_OK) return report(s, status, &error);
    if (s->values->json)
        print_json(s);
    else
        print_plain(s);
    s->printed++;
    return CLI_DONE;
}

static int flush(void *to)
{
    (void)to;
    fflush(stdout);
    return CLI_DONE;
}

static int encode_all(session *s)
{
    const tokenize_values *v = s->values;
    const text_source source = {.command = "tokenize",
                                .texts = &v->texts,
                                .pair = v->pair,
                                .file = v->file,
                                .plain = v->plain,
                                .truncate = v->truncate,
                                .take = encode,
                                .idle = flush,
                                .to = s};
    return inputs_walk(&source);
}

/* ---- ids to text ---- */

static int print_decoded(const session *s, const uint32_t *ids, size_t count)
{
    locus_error error = {""};
    size_t bytes = 0, capacity = 0;
    char *text = NULL;
    locus_status status =
        locus_tokenizer_decode(s->tokenizer, ids, count, 1, NULL, 0, &bytes, &error);
    if (status == LOCUS_OK) {
        capacity = bytes;
        text = calloc(capacity + 1, 1);
        if (text == NULL) return cli_complain("tokenize", CLI_RESOURCES, "out of memory");
        status =
            locus_tokenizer_decode(s->tokenizer, ids, count, 1, text, capacity, &bytes, &error);
    }
    if (status == LOCUS_OK && s->values->json) {
        json j = {.out = stdout};
        json_inline_object(&j, NULL);
        pieces_json(&j, s->tokenizer, ids, count);
        json_bytes(&j, "text", text, bytes);
        json_end(&j);
    } else if (status == LOCUS_OK) {
        text_show(text, bytes);
        putchar('\n');
    }
    free(text);
    return status == LOCUS_OK ? CLI_DONE : report(s, status, &error);
}

static int decode(const session *s)
{
    char quoted[160];
    const char *text = s->values->ids;
    uint32_t *ids = calloc(strlen(text) / 2 + 2, sizeof *ids);
    size_t count = 0;
    if (ids == NULL) return cli_complain("tokenize", CLI_RESOURCES, "out of memory");
    const int exit_code =
        pieces_read_ids(text, ids, &count)
            ? print_decoded(s, ids, count)
            : cli_complain("tokenize", CLI_USAGE,
                           "--ids: expected whole numbers with commas between, got \"%s\"",
                           text_quote(quoted, sizeof quoted, text));
    free(ids);
    return exit_code;
}

/* ---- the command ---- */

static int check_usage(const tokenize_values *values)
{
    const int given = (values->texts.count > 0) + (values->file != NULL) + (values->ids != NULL);
    if (given == 0)
        return cli_complain("tokenize", CLI_USAGE,
                            "TEXT, --file or --ids is missing; see \"locus tokenize --help\"");
    if (given > 1)
        return cli_complain("tokenize", CLI_USAGE, "TEXT, --file and --ids exclude each other");
    return CLI_DONE;
}

static int run_session(session *s)
{
    if (s->values->ids != NULL) return decode(s);
    return encode_all(s);
}

static int tokenize_run(int argc, char **argv)
{
    tokenize_values values = {.model = NULL};
    session s = {.values = &values, .info = {.size = sizeof s.info}};
    locus_error error = {""};
    int exit_code = CLI_DONE;
    if (!cli_parse(&cmd_tokenize, argc, argv, &values, &exit_code)) return exit_code;
    exit_code = check_usage(&values);
    if (exit_code != CLI_DONE) return exit_code;
    locus_status status = locus_tokenizer_open(&s.tokenizer, values.model, NULL, &error);
    if (status == LOCUS_OK) status = locus_tokenizer_describe(s.tokenizer, &s.info, &error);
    if (status == LOCUS_OK) status = locus_encoding_new(&s.encoding, NULL, &error);
    exit_code = status == LOCUS_OK ? run_session(&s) : report(&s, status, &error);
    locus_encoding_free(s.encoding);
    locus_tokenizer_close(s.tokenizer);
    return exit_code;
}

static const cli_example tokenize_examples[] = {
    {"locus tokenize MODEL \"Hello world\"", "ids, tokens and byte offsets of a text"},
    {"locus tokenize MODEL \"a question\" --pair \"an answer\" --json", "two segments, as JSON"},
    {"locus tokenize MODEL --file lines.txt --json", "every line of a file"},
    {"locus tokenize MODEL --ids 101,7592,102", "ids back to text"},
    {NULL, NULL},
};

static const cli_option tokenize_options[] = {
    {.name = "pair",
     .argument = "TEXT",
     .help = "second segment; also a tab in a line of --file",
     .kind = CLI_TEXT,
     .offset = offsetof(tokenize_values, pair)},
    {.name = "file",
     .argument = "FILE",
     .help = "one input per line (-: standard input)",
     .kind = CLI_INPUT,
     .offset = offsetof(tokenize_values, file)},
    {.name = "ids",
     .argument = "LIST",
     .help = "print the text of these ids, without special tokens",
     .kind = CLI_LIST,
     .offset = offsetof(tokenize_values, ids)},
    {.name = "truncate",
     .argument = "N",
     .help = "at most N ids, special tokens included",
     .kind = CLI_INTEGER,
     .minimum = 1,
     .maximum = UINT32_MAX,
     .offset = offsetof(tokenize_values, truncate)},
    {.name = "plain",
     .help = "add no special tokens",
     .kind = CLI_FLAG,
     .offset = offsetof(tokenize_values, plain)},
    {.name = "json",
     .help = "one object per input: ids, tokens, offsets, type_ids",
     .kind = CLI_FLAG,
     .offset = offsetof(tokenize_values, json)},
    {.name = NULL},
};

const cli_command cmd_tokenize = {
    .name = "tokenize",
    .summary = "text to ids, tokens and byte offsets, and back",
    .description =
        "Reads the tokenizer of a model folder (tokenizer.json; else vocab.txt, vocab.json with "
        "merges.txt, SentencePiece models; no weights are needed) and prints what it makes of each "
        "TEXT. Ids are those of the tokenizers library. Offsets count bytes of the segment; what "
        "is not UTF-8 counts as U+FFFD. Special tokens inside a text are recognised.",
    .usage = "MODEL [TEXT ...] [--pair TEXT] [--file FILE] [--ids LIST] [--truncate N] [--json]",
    .examples = tokenize_examples,
    .options = tokenize_options,
    .operand = {.name = "MODEL",
                .help = "a folder with tokenizer files, or one such file",
                .kind = CLI_INPUT,
                .required = 1,
                .offset = offsetof(tokenize_values, model)},
    .rest = {.name = "TEXT",
             .help = "one input each, taken as it is",
             .kind = CLI_TEXT,
             .offset = offsetof(tokenize_values, texts)},
    .run = tokenize_run,
};

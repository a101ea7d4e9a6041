/* SPDX-License-Identifier: Apache-2.0 */
/* locus serve: trained models behind HTTP. */
#define _POSIX_C_SOURCE 200809L
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "commands.h"
#include "precision.h"
#include "serve/serve.h"

typedef struct serve_values {
    serve_options options;
    const char *precision;
    const char *first;
    cli_words others;
} serve_values;

/* Threads that wait sleep at once: one that spins takes the core on which the next request is read. The
 * OpenMP runtime reads its variables before main, so the program begins anew with them. */
static void begin_anew(int argc, char **argv)
{
    char **words = calloc((size_t)argc + 3, sizeof *words);
    char name[] = "locus", command[] = "serve";
    if (words == NULL || getenv("OMP_WAIT_POLICY") != NULL || getenv("GOMP_SPINCOUNT") != NULL) {
        free(words);
        return;
    }
    words[0] = name;
    words[1] = command;
    for (int i = 0; i < argc; i++) words[i + 2] = argv[i];
    if (setenv("OMP_WAIT_POLICY", "passive", 1) == 0) execv("/proc/self/exe", words);
    free(words); /* slower, but not wrong */
}

static int serve_command(int argc, char **argv)
{
    serve_values v = {.options = {.host = "127.0.0.1",
                                  .port = 8080,
                                  .tokens_per_batch = 512,
                                  .rows = 16,
                                  .max_body = 2048,
                                  .max_texts = 1024,
                                  .max_new_tokens = 4096,
                                  .max_queue = 4096,
                                  .max_connections = 512,
                                  .max_memory = 256,
                                  .timeout = 30}};
    const char *models[sizeof v.others.text / sizeof *v.others.text + 1];
    int exit_code = CLI_DONE;
    if (!cli_parse(&cmd_serve, argc, argv, &v, &exit_code)) return exit_code;
    exit_code = precision_read("serve", v.precision, &v.options.precision);
    if (exit_code != CLI_DONE) return exit_code;
    begin_anew(argc, argv);
    models[v.options.model_count++] = v.first;
    for (size_t i = 0; i < v.others.count; i++) models[v.options.model_count++] = v.others.text[i];
    v.options.models = models;
    return serve_run(&v.options);
}

/* ---- the command ---- */

static const cli_example serve_examples[] = {
    {"locus serve all-MiniLM-L6-v2", "embeddings on http://127.0.0.1:8080/v1/embeddings"},
    {"locus serve embed=all-MiniLM-L6-v2 rank=reranker --port 9000", "two models, by their names"},
    {"locus serve stories260K --host 0.0.0.0 --api-key-file key.txt",
     "for everybody who has the key"},
    {NULL, NULL},
};

#define FIELD(name) .offset = offsetof(serve_values, options.name)
#define LIMIT(long_name, unit, most, text, field)                                                  \
    {                                                                                              \
        .name = long_name, .argument = unit, .help = text, .kind = CLI_INTEGER, .minimum = 1,      \
        .maximum = most, FIELD(field)                                                              \
    }

static const cli_option serve_options_table[] = {
    {.name = "host",
     .argument = "NAME",
     .help = "address or name to listen on (127.0.0.1)",
     .kind = CLI_TEXT,
     FIELD(host)},
    {.name = "port",
     .argument = "N",
     .help = "port to listen on, 0: one that is free (8080)",
     .kind = CLI_INTEGER,
     .maximum = 65535,
     FIELD(port)},
    {.name = "api-key-file",
     .argument = "FILE",
     .help = "its first line is the key that requests have to bring: Authorization: Bearer KEY",
     .kind = CLI_INPUT,
     FIELD(key_file)},
    LIMIT("threads", "N", 256, "threads of a pass (all processors)", threads),
    LIMIT("tokens-per-batch", "N", 1 << 20, "a batch takes no further text beyond so many (512)",
          tokens_per_batch),
    LIMIT("rows", "N", 1024, "texts that a decoder writes at a time (16)", rows),
    {.name = "truncate",
     .help = "cut texts that are too long, where a request does not say",
     .kind = CLI_FLAG,
     FIELD(truncate)},
    LIMIT("max-body", "KIB", 1 << 20, "of one request (2048)", max_body),
    LIMIT("max-texts", "N", 1 << 20, "of one request (1024)", max_texts),
    LIMIT("max-new-tokens", "N", 1 << 20, "of one text that is written (4096)", max_new_tokens),
    LIMIT("max-queue", "N", 1 << 24, "texts that wait for a model; beyond it 429 (4096)",
          max_queue),
    LIMIT("max-connections", "N", 1 << 16, "at a time (512)", max_connections),
    LIMIT("max-memory", "MIB", 1 << 20, "of the bodies of all requests; beyond it 429 (256)",
          max_memory),
    LIMIT("timeout", "SECONDS", 86400, "to send a request, or to take an answer (30)", timeout),
    {.name = "isa",
     .argument = "NAME",
     .help = "ceiling of the instruction set",
     .kind = CLI_ISA,
     FIELD(isa)},
    PRECISION_OPTION(.offset = offsetof(serve_values, precision)),
    {.name = "quiet", .help = "no line on stderr for each request", .kind = CLI_FLAG, FIELD(quiet)},
    {.name = NULL},
};

const cli_command cmd_serve = {
    .name = "serve",
    .summary = "serve trained models over HTTP",
    .description =
        "Answers requests for embeddings, labels, ranks and texts over HTTP until SIGTERM or "
        "SIGINT; requests that are being answered are answered first. Paths and bodies are those of "
        "OpenAI's clients (/v1/embeddings, /v1/completions, /v1/models), of Jina's and Cohere's "
        "(/v1/rerank) and of text-embeddings-inference (/embed, /predict, /rerank, /tokenize, "
        "/decode, /info, /health, /metrics); docs/serve.md has them all. Requests that wait run "
        "together in batches without padding, and a text has the bits that it has alone. SIGHUP "
        "opens the folders anew and takes what opens. One line per request goes to stderr, with "
        "nothing of any text in it.",
    .usage = "MODEL [MODEL ...] [--port N] [--host NAME] [...]",
    .examples = serve_examples,
    .options = serve_options_table,
    .operand = {.name = "MODEL",
                .help = "a folder as for locus run, or NAME=FOLDER",
                .kind = CLI_INPUT,
                .required = 1,
                .offset = offsetof(serve_values, first)},
    .rest = {.name = "MODEL",
             .help = "further ones",
             .kind = CLI_INPUT,
             .offset = offsetof(serve_values, others)},
    .run = serve_command,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* locus run: a trained model from text to answer. */
#include <stddef.h>
#include <string.h>

#include "commands.h"
#include "precision.h"
#include "run.h"
#include "text.h"

enum { MOST_THREADS = 256, MOST_BEAMS = 64, MOST_BATCH = 1 << 20, TOKENS_PER_BATCH = 512 };

static const char *task_name(size_t index)
{
    const run_task *task = run_task_at(index);
    return task != NULL ? task->name : NULL;
}

/* ---- usage ---- */

static int unknown_task(const char *task, const char *const *names, size_t count)
{
    char quoted[160], list[128] = "";
    size_t used = 0;
    const char *near = locus_nearest(task, names, count);
    text_quote(quoted, sizeof quoted, task);
    if (near != NULL)
        return cli_complain("run", CLI_USAGE, "--task: no task \"%s\"; did you mean \"%s\"?",
                            quoted, near);
    for (size_t i = 0; i < count && used + 16 < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                                 i == 0          ? ""
                                 : i + 1 < count ? ", "
                                                 : " or ",
                                 names[i]);
    return cli_complain("run", CLI_USAGE, "--task: expected %s, got \"%s\"", list, quoted);
}

static int check_task(const run_values *v)
{
    const char *names[16];
    size_t count = 0;
    int known = v->task == NULL;
    for (; task_name(count) != NULL && count < 16; count++) {
        names[count] = task_name(count);
        known |= v->task != NULL && strcmp(names[count], v->task) == 0;
    }
    if (!known) return unknown_task(v->task, names, count);
    const int hidden = v->task != NULL && strcmp(v->task, "hidden") == 0;
    if (hidden && v->output == NULL)
        return cli_complain("run", CLI_USAGE, "--task hidden writes tensors: give -o FILE");
    if (!hidden && v->output != NULL)
        return cli_complain("run", CLI_USAGE, "-o goes with --task hidden");
    return CLI_DONE;
}

/* --labels and --rank say what to do with texts. */
static int check_asked(const run_values *v)
{
    const char *option = v->labels != NULL ? "--labels" : "--rank";
    if (v->labels == NULL && (v->hypothesis != NULL || v->multi_label))
        return cli_complain("run", CLI_USAGE, "--hypothesis and --multi-label go with --labels");
    if (v->labels == NULL && v->rank == NULL) return CLI_DONE;
    if (v->labels != NULL && v->rank != NULL)
        return cli_complain("run", CLI_USAGE, "--labels and --rank exclude each other");
    if (v->task != NULL || v->pair != NULL || v->ids != NULL)
        return cli_complain("run", CLI_USAGE, "%s takes texts: no --task, --pair or --ids", option);
    return CLI_DONE;
}

static int check(const run_values *v)
{
    const int given =
        (v->texts.count > 0) + (v->file != NULL) + (v->ids != NULL) + (v->features != NULL);
    if (given == 0)
        return cli_complain("run", CLI_USAGE,
                            "TEXT, --file or --ids is missing; see \"locus run --help\"");
    if (given > 1)
        return cli_complain("run", CLI_USAGE,
                            "TEXT, --file, --ids and --features exclude each other");
    if (v->ids != NULL && (v->pair != NULL || v->truncate > 0))
        return cli_complain("run", CLI_USAGE,
                            "--ids are taken as they are: no --pair, no --truncate");
    if (v->features != NULL && (v->task == NULL || strcmp(v->task, "hidden") != 0))
        return cli_complain("run", CLI_USAGE, "--features goes with --task hidden");
    const int exit_code = check_asked(v);
    return exit_code == CLI_DONE ? check_task(v) : exit_code;
}

static int run_command(int argc, char **argv)
{
    run_values values = {
        .tokens_per_batch = TOKENS_PER_BATCH,
        .generation = {.min_length = RUN_UNSET, .no_repeat_ngram = RUN_UNSET, .top_k = RUN_UNSET}};
    int exit_code = CLI_DONE;
    if (!cli_parse(&cmd_run, argc, argv, &values, &exit_code)) return exit_code;
    exit_code = check(&values);
    if (exit_code == CLI_DONE)
        exit_code = precision_read("run", values.precision, &values.rounding);
    return exit_code == CLI_DONE ? run_all(&values) : exit_code;
}

/* ---- the command ---- */

static const cli_example run_examples[] = {
    {"locus run all-MiniLM-L6-v2 \"The cat sleeps.\"", "the embedding of a text"},
    {"locus run all-MiniLM-L6-v2 --file lines.txt --json", "of every line, as JSON, as they come"},
    {"locus run all-MiniLM-L6-v2 --file lines.txt --precision i16",
     "in half the time, a thousandth off"},
    {"locus run reranker \"a question\" --pair \"an answer\"", "the labels of a pair"},
    {"locus run an-nli-model \"The engine is loud.\" --labels cars,food,sport",
     "which of these a text is about"},
    {"locus run reranker --rank \"a question\" --file answers.txt", "lines, the best answer first"},
    {"locus run bert-base-uncased \"Paris is the [MASK] of France.\"",
     "the best tokens for a mask"},
    {"locus run some-reader \"Where does Ada live?\" --pair \"Ada lives in Paris.\"",
     "the part of a text that answers a question"},
    {"locus run some-tagger \"Ada lives in Paris.\" --task tokens", "a label for every token"},
    {"locus run opus-mt-en-fr \"The cat sleeps.\"", "a translation, by the beams of the model"},
    {"locus run stories260K \"Once upon a time\" --max-length 200", "a text continued"},
    {"locus run stories260K \"Once\" --sample --temperature 0.8 --top-k 40 --seed 7",
     "another one, which the seed decides"},
    {"locus run deberta-v3-xsmall \"Hello\" --task hidden -o h.safetensors",
     "what every layer made of it"},
    {"locus run all-MiniLM-L6-v2 --ids 101,7592,102 --json", "token ids instead of a text"},
    {NULL, NULL},
};

#define FIELD(name) .offset = offsetof(run_values, name)

static const cli_option run_options[] = {
    {.name = "task",
     .argument = "TASK",
     .help = "embed, classify, tokens, answer, fill, generate or hidden (what the model is for)",
     .kind = CLI_LIST,
     .value = task_name,
     FIELD(task)},
    {.name = "pair",
     .argument = "TEXT",
     .help = "second segment; also a tab in a line of --file",
     .kind = CLI_TEXT,
     FIELD(pair)},
    {.name = "labels",
     .argument = "LIST",
     .help = "words with commas between: which of them a text is about, by a model of entailment",
     .kind = CLI_LIST,
     FIELD(labels)},
    {.name = "hypothesis",
     .argument = "TEXT",
     .help = "labels: what is asked of each, {} for the label (This example is {}.)",
     .kind = CLI_TEXT,
     FIELD(hypothesis)},
    {.name = "multi-label",
     .help = "labels: each by itself, several may hold",
     .kind = CLI_FLAG,
     FIELD(multi_label)},
    {.name = "rank",
     .argument = "QUERY",
     .help = "the inputs by how well they answer QUERY, the best first, by a model with one label",
     .kind = CLI_TEXT,
     FIELD(rank)},
    {.name = "file",
     .argument = "FILE",
     .help = "one input per line, results as they come (-: standard input)",
     .kind = CLI_INPUT,
     FIELD(file)},
    {.name = "ids",
     .argument = "LIST",
     .help = "token ids with commas between; nothing is added",
     .kind = CLI_LIST,
     FIELD(ids)},
    {.name = "decoder-ids",
     .argument = "LIST",
     .help = "what the decoder behind an encoder begins with; nothing is added",
     .kind = CLI_LIST,
     FIELD(decoder_ids)},
    {.name = "features",
     .argument = "FILE",
     .help =
         "rows of numbers [T,F] for models of sound: the tensor features of a safetensors file, or .npy",
     .kind = CLI_INPUT,
     FIELD(features)},
    {.name = "tokenizer",
     .argument = "PATH",
     .help = "the tokenizer, where it is not in MODEL: a folder or a file",
     .kind = CLI_INPUT,
     FIELD(tokenizer)},
    {.name = "truncate",
     .argument = "N",
     .help = "cut to N tokens, special ones included",
     .kind = CLI_INTEGER,
     .minimum = 1,
     .maximum = UINT32_MAX,
     FIELD(truncate)},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .help = "hidden: safetensors with hidden.0 to hidden.L, [1,T,E] F32, logits of decoders",
     .kind = CLI_OUTPUT,
     FIELD(output)},
    {.name = "beams",
     .argument = "N",
     .help = "generate: width of the beam search, 1: greedy (the model's)",
     .kind = CLI_INTEGER,
     .minimum = 1,
     .maximum = MOST_BEAMS,
     FIELD(generation.beams)},
    {.name = "max-length",
     .argument = "N",
     .help = "generate: tokens of a whole sequence (the model's)",
     .kind = CLI_INTEGER,
     .minimum = 1,
     .maximum = MOST_BATCH,
     FIELD(generation.max_length)},
    {.name = "min-length",
     .argument = "N",
     .help = "generate: no end before so many tokens (the model's)",
     .kind = CLI_INTEGER,
     .maximum = MOST_BATCH,
     FIELD(generation.min_length)},
    {.name = "length-penalty",
     .argument = "X",
     .help = "generate: scores of beams are divided by their length to this power (the model's)",
     .kind = CLI_LIST,
     FIELD(generation.length_penalty)},
    {.name = "no-repeat-ngram",
     .argument = "N",
     .help = "generate: no N tokens in a row occur twice, 0: they may (the model's)",
     .kind = CLI_INTEGER,
     .maximum = MOST_BATCH,
     FIELD(generation.no_repeat_ngram)},
    {.name = "sample",
     .help = "generate: draw tokens instead of taking the best",
     .kind = CLI_FLAG,
     FIELD(generation.sample)},
    {.name = "temperature",
     .argument = "X",
     .help = "sampling: logits are divided by it (the model's)",
     .kind = CLI_REAL,
     FIELD(generation.temperature)},
    {.name = "top-k",
     .argument = "N",
     .help = "sampling: from the N best tokens, 0: from all (the model's)",
     .kind = CLI_INTEGER,
     .maximum = UINT32_MAX - 1,
     FIELD(generation.top_k)},
    {.name = "top-p",
     .argument = "X",
     .help = "sampling: from the best tokens of this probability together (the model's)",
     .kind = CLI_REAL,
     FIELD(generation.top_p)},
    {.name = "seed",
     .argument = "N",
     .help = "sampling: the same seed draws the same tokens (0)",
     .kind = CLI_INTEGER,
     .maximum = UINT32_MAX,
     FIELD(generation.seed)},
    {.name = "tokens-per-batch",
     .argument = "N",
     .help = "run when so many tokens have come together (512)",
     .kind = CLI_INTEGER,
     .minimum = 1,
     .maximum = MOST_BATCH,
     FIELD(tokens_per_batch)},
    {.name = "threads",
     .argument = "N",
     .help = "threads (all processors)",
     .kind = CLI_INTEGER,
     .minimum = 1,
     .maximum = MOST_THREADS,
     FIELD(threads)},
    {.name = "isa",
     .argument = "NAME",
     .help = "ceiling of the instruction set",
     .kind = CLI_ISA,
     FIELD(isa)},
    PRECISION_OPTION(FIELD(precision)),
    {.name = "json", .help = "print JSON, one object per line", .kind = CLI_FLAG, FIELD(json)},
    {.name = NULL},
};

const cli_command cmd_run = {
    .name = "run",
    .summary = "run a trained model on text",
    .description =
        "Runs a model from a folder in the layout of the Hugging Face hub: config.json, "
        "model.safetensors or pytorch_model.bin or their shards, tokenizer files. The families are those of "
        "docs/models.md; another model_type is refused with their list. A model does what its head "
        "is for, where modules.json lists a pooling it embeds; the embedding is pooled as it says, "
        "else the mean over all tokens. A text longer than the model takes is refused unless "
        "--truncate is given. Hidden states are those of transformers within 2e-5 of the largest "
        "element; a text gives the same bits alone and in any batch.",
    .usage = "MODEL [TEXT ...] [--pair TEXT] [--file FILE] [--task TASK] [--json] [...]",
    .examples = run_examples,
    .options = run_options,
    .operand =
        {.name = "MODEL",
         .help =
             "a folder with config.json, model.safetensors or pytorch_model.bin, tokenizer files; or a .gguf file",
         .kind = CLI_INPUT,
         .required = 1,
         .offset = offsetof(run_values, model)},
    .rest = {.name = "TEXT",
             .help = "one input each, taken as it is",
             .kind = CLI_TEXT,
             .offset = offsetof(run_values, texts)},
    .run = run_command,
};

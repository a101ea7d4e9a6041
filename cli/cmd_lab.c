/* SPDX-License-Identifier: Apache-2.0 */
/* locus lab: train small models with each scheme, compare them. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "lab.h"
#include "ranks.h"

static const char *const actions[] = {"run", "train", "show", "report", "batches", "export"};
enum { ACTIONS = sizeof actions / sizeof *actions };

const lab_crew *lab_ranks;

void lab_work_with(const lab_crew *crew) { lab_ranks = crew; }

static int run_action(const lab_values *values)
{
    int (*const run[ACTIONS])(const lab_values *) = {lab_run_action,     lab_train_action,
                                                     lab_show_action,    lab_report_action,
                                                     lab_batches_action, lab_export_action};
    for (size_t i = 0; i < ACTIONS; i++) {
        if (strcmp(values->action, actions[i]) != 0) continue;
        const int is_shared = run[i] == lab_run_action || run[i] == lab_train_action;
        return is_shared || lab_crew_leads(lab_ranks) ? run[i](values) : CLI_DONE;
    }
    const char *near = locus_nearest(values->action, actions, ACTIONS);
    return cli_complain("lab", CLI_USAGE, "unknown action \"%s\"%s%s%s", values->action,
                        near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
                        near != NULL ? "\"?" : "");
}

static int lab_run(int argc, char **argv)
{
    lab_values values = {
        .steps = LAB_NOT_GIVEN, .clip = LAB_NOT_GIVEN, .seed = 1, .from = 1, .count = 1};
    int exit_code = CLI_DONE, rank = 0;
    if (lab_ranks == NULL && cli_ranks(&rank) > 1) return cli_start_mpi("lab", argc, argv, -1);
    if (!cli_parse(&cmd_lab, argc, argv, &values, &exit_code)) return exit_code;
    return run_action(&values);
}

static const cli_example lab_examples[] = {
    {"locus lab run --profile quick -o comparison", "14 schemes on three tasks, two minutes"},
    {"locus lab show comparison", "what is there, how far, what it said"},
    {"locus lab report comparison", "its page, tables and figures again, without training"},
    {"locus lab run --profile standard --tasks copy,T8 --schemes rope,alibi -o some",
     "two schemes, two tasks"},
    {"locus lab train --task copy --scheme alibi -o runs/alibi", "one run, about half a minute"},
    {"locus lab train --task copy --scheme alibi -o runs/alibi --resume", "go on after a stop"},
    {"mpirun -n 4 locus lab run --profile standard -o comparison", "a run at a time on each rank"},
    {"mpirun -n 2 locus lab train --task text --scheme t5 -o runs/t5",
     "one run, its batches spread over two ranks"},
    {"locus lab batches --task copy --from 1 --count 50 -o batches.safetensors",
     "what the steps 1 to 50 read"},
    {"locus lab export runs/alibi -o alibi", "a model for locus run, explain, plot and inspect"},
    {NULL, NULL},
};

#define NUMBER(field) CLI_INTEGER, .offset = offsetof(lab_values, field)
static const cli_option lab_options[] = {
    {.name = "profile",
     .argument = "NAME",
     .help = "run: quick (2 minutes), standard (an hour) or full (a night)",
     .kind = CLI_TEXT,
     .offset = offsetof(lab_values, profile)},
    {.name = "tasks",
     .argument = "LIST",
     .help = "run: only these",
     .kind = CLI_LIST,
     .offset = offsetof(lab_values, tasks)},
    {.name = "schemes",
     .argument = "LIST",
     .help = "run: these (14; fire and distance when named)",
     .kind = CLI_LIST,
     .offset = offsetof(lab_values, schemes)},
    {.name = "seeds",
     .argument = "N",
     .help = "run: seeds 1 to N for every scheme",
     .kind = CLI_INTEGER,
     .minimum = 1,
     .maximum = 1000,
     .offset = offsetof(lab_values, seeds)},
    {.name = "sweep-rate",
     .help = "run: also with half and with twice the rate",
     .kind = CLI_FLAG,
     .offset = offsetof(lab_values, sweep_rate)},
    {.name = "jobs",
     .argument = "N",
     .help = "run: runs side by side (one per core)",
     .kind = CLI_INTEGER,
     .minimum = 1,
     .maximum = 64,
     .offset = offsetof(lab_values, jobs)},
    {.name = "task",
     .argument = "TASK",
     .help = "copy, copy_unique, reverse, recall, addition, parity, mod5, lookback, text, masked",
     .kind = CLI_TEXT,
     .offset = offsetof(lab_values, task)},
    {.name = "scheme",
     .argument = "SCHEME",
     .help = "position scheme (see \"locus schemes\")",
     .kind = CLI_SCHEME,
     .offset = offsetof(lab_values, scheme)},
    {.name = "layers",
     .argument = "N",
     .help = "blocks (2)",
     .minimum = 1,
     .maximum = 64,
     .kind = NUMBER(layers)},
    {.name = "width",
     .argument = "N",
     .help = "of a token's row (64)",
     .minimum = 1,
     .maximum = 16384,
     .kind = NUMBER(width)},
    {.name = "heads",
     .argument = "N",
     .help = "of attention (4)",
     .minimum = 1,
     .maximum = 16384,
     .kind = NUMBER(heads)},
    {.name = "batch",
     .argument = "N",
     .help = "rows of a step (64)",
     .minimum = 1,
     .maximum = 65536,
     .kind = NUMBER(batch)},
    {.name = "steps",
     .argument = "N",
     .help = "of training (3000)",
     .minimum = 0,
     .maximum = INT32_MAX,
     .kind = NUMBER(steps)},
    {.name = "length",
     .argument = "N",
     .help = "longest x of a task (16), window of text (128)",
     .minimum = 1,
     .maximum = 65536,
     .kind = NUMBER(length)},
    {.name = "seed",
     .argument = "N",
     .help = "of initial values and batches (1)",
     .minimum = 0,
     .maximum = UINT32_MAX,
     .kind = NUMBER(seed)},
    {.name = "rate",
     .argument = "X",
     .help = "learning rate at its peak (2e-3 at width 64)",
     .kind = CLI_REAL,
     .offset = offsetof(lab_values, rate)},
    {.name = "text",
     .argument = "FILE",
     .help = "for text and masked, plain or gzip (novels by Jane Austen)",
     .kind = CLI_INPUT,
     .offset = offsetof(lab_values, text)},
    {.name = "clip",
     .argument = "K",
     .help = "shaw: farthest distance of its own (16)",
     .minimum = 0,
     .maximum = 65536,
     .kind = NUMBER(clip)},
    {.name = "terms",
     .argument = "LIST",
     .help = "deberta: terms beside content: c2p,p2c, c2p, p2c or none",
     .kind = CLI_LIST,
     .offset = offsetof(lab_values, terms)},
    {.name = "memory",
     .argument = "N",
     .help = "transformer_xl on text: rows kept from the step before (0)",
     .minimum = 0,
     .maximum = 65536,
     .kind = NUMBER(memory)},
    {.name = "positions",
     .argument = "HOW",
     .help = "sinusoidal, learned: plain, offset or subset:M",
     .kind = CLI_TEXT,
     .offset = offsetof(lab_values, positions)},
    {.name = "resume",
     .help = "train: go on with the run in DIR",
     .kind = CLI_FLAG,
     .offset = offsetof(lab_values, resume)},
    {.name = "save-every",
     .argument = "N",
     .help = "steps between checkpoints (100)",
     .minimum = 1,
     .maximum = INT32_MAX,
     .kind = NUMBER(save_every)},
    {.name = "stop",
     .argument = "STEP",
     .help = "save after this step and end",
     .minimum = 1,
     .maximum = INT32_MAX,
     .kind = NUMBER(stop)},
    {.name = "threads",
     .argument = "N",
     .help = "of a run (1); does not change a bit",
     .minimum = 1,
     .maximum = 1024,
     .kind = NUMBER(threads)},
    {.name = "from",
     .argument = "STEP",
     .help = "batches: the first step (1)",
     .minimum = 1,
     .maximum = INT32_MAX,
     .kind = NUMBER(from)},
    {.name = "count",
     .argument = "N",
     .help = "batches: how many steps (1)",
     .minimum = 1,
     .maximum = 100000,
     .kind = NUMBER(count)},
    {.name = "dtype",
     .argument = "TYPE",
     .help = "export: f32, or f16 in half the bytes (f32)",
     .kind = CLI_TEXT,
     .offset = offsetof(lab_values, dtype)},
    {.name = "output",
     .letter = 'o',
     .argument = "DIR",
     .help = "folder of the run; batches: the file; export: the model's folder",
     .kind = CLI_OUTPUT,
     .offset = offsetof(lab_values, output)},
    {.name = NULL},
};

const cli_command cmd_lab = {
    .name = "lab",
    .summary = "train small models with each scheme and compare them",
    .description =
        "Trains small transformers from scratch on tasks that show what a position scheme can do. "
        "\"run\" makes a comparison, DIR/runs/TASK/SCHEME/seedN, several runs side by side; Ctrl-C "
        "saves, the same command goes on. \"train\" makes one run: DIR holds run.json, log.jsonl, "
        "checkpoint.safetensors and, at the end, metrics.csv. Initial values and batches depend "
        "on the seed alone, so schemes start from the same weights and read the same rows; a run "
        "that was stopped, killed or moved to more threads ends in the same bits. \"show\" prints "
        "one screen about a comparison, \"report\" writes report.html, results.csv, scoreboard.json "
        "and figures into it again, \"batches\" writes the batches of training. \"export\" makes of "
        "a run the folder of a model, of a comparison one per scheme (of --task, else of text). "
        "Under mpirun every rank makes one run at a time (\"run\") or its part of each batch "
        "(\"train\"), with the same bits for any number of ranks.",
    .usage = "run|train|show|report|batches|export [options] [-o DIR] [DIR]",
    .examples = lab_examples,
    .options = lab_options,
    .operand = {.name = "ACTION",
                .help = "run, train, show, report, batches or export",
                .kind = CLI_TEXT,
                .required = 1,
                .offset = offsetof(lab_values, action)},
    .rest = {.name = "DIR",
             .help = "folder of a comparison; export: or of a run",
             .kind = CLI_INPUT,
             .offset = offsetof(lab_values, folders)},
    .run = lab_run,
};

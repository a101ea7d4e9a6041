/* SPDX-License-Identifier: Apache-2.0 */
/* locus bench: its options, and what it does with them. */
#include <stddef.h>
#include <string.h>

#include "bench/measure.h"

static int verdict(const bench *b)
{
    size_t wrong = 0;
    for (size_t i = 0; i < b->row_count; i++) {
        bench_figures f;
        bench_figure(&f, b, &b->rows[i]);
        wrong += f.exact ? 0 : 1;
    }
    if (wrong == 0) return CLI_DONE;
    return cli_complain("bench", CLI_DIFFERENT, "%zu of %zu lines differ from the oracle", wrong,
                        b->row_count);
}

static int print(const bench *b, const bench_values *values)
{
    if (values->json)
        bench_print_json(b);
    else if (values->markdown)
        bench_print_markdown(b);
    else
        bench_print_text(b);
    const int code = values->svg != NULL ? bench_write_svg(b, values->svg) : CLI_DONE;
    return code == CLI_DONE ? verdict(b) : code;
}

int bench_command(const bench_values *values)
{
    bench b;
    locus_error error = {""};
    memset(&b, 0, sizeof b);
    int exit_code = bench_read_request(&b.request, values);
    if (exit_code != CLI_DONE) return exit_code;
    if (values->operators) return bench_operators(&b.request, values);
    if (values->ragged || values->mask != NULL) return bench_ragged(&b.request, values);
    b.best_isa = locus_isa_pick(NULL);
    locus_status status = bench_build(&b, &error);
    if (status == LOCUS_OK) status = bench_run(&b, &error);
    exit_code = status == LOCUS_OK ? print(&b, values) : cli_report("bench", status, NULL, &error);
    bench_free(&b);
    return exit_code;
}

const cli_example bench_examples[] = {
    {"locus bench", "every scheme, forward and backward, against the limits of this machine"},
    {"locus bench --scheme t5,shaw -n 384,777 -d 128", "some schemes at other sizes"},
    {"locus bench --scheme none --causal --padded", "what masks save"},
    {"locus bench --scheme none --dropout 0.1 --peaked", "what dropout and large logits cost"},
    {"locus bench -n 64 --direction backward --kept",
     "what kept weights save a short backward call"},
    {"locus bench --scheme none,t5 --threads 1,2", "what a second thread gives"},
    {"locus bench --decode", "one query over 16,384 keys, against reading them and the tables"},
    {"locus bench --scheme none,rope --dtype f16,bf16", "half precision, as multiples of F32"},
    {"locus bench --ragged --mask blocks --scheme none,t5", "texts in one row, without padding"},
    {"locus bench --linear", "the linear maps of a layer and their gradients, against sgemm"},
    {"locus bench --operators", "norms, activations, softmax and the like, against plain loops"},
    {"mpirun -n 2 locus bench --mpi", "attention over two ranks, against one"},
    {"locus bench --full --markdown --svg bench.svg", "everything, for a document; takes long"},
    {NULL, NULL},
};

#define FIELD(name) .offset = offsetof(bench_values, name)
#define NUMBER(most, field) .kind = CLI_INTEGER, .minimum = 1, .maximum = most, FIELD(field)

const cli_option bench_options[] = {
    {.name = "scheme",
     .argument = "LIST",
     .help = "schemes with commas between; also none+dense, plain with a dense bias",
     .kind = CLI_SCHEME,
     FIELD(schemes)},
    {.name = "length",
     .letter = 'n',
     .argument = "LIST",
     .help = "sequence lengths (512,2048)",
     .kind = CLI_LIST,
     FIELD(n)},
    {.name = "dim",
     .letter = 'd',
     .argument = "LIST",
     .help = "head dimensions (64)",
     .kind = CLI_LIST,
     FIELD(d)},
    {.name = "direction",
     .argument = "WHICH",
     .help = "forward, backward, both (the default), or all: also in one",
     .kind = CLI_LIST,
     .value = bench_direction_at,
     FIELD(direction)},
    {.name = "isa",
     .argument = "LIST",
     .help = "instruction sets (the best of this CPU)",
     .kind = CLI_ISA,
     FIELD(isas)},
    {.name = "threads",
     .argument = "LIST",
     .help = "numbers of threads (1)",
     .kind = CLI_LIST,
     FIELD(threads)},
    {.name = "dtype",
     .argument = "LIST",
     .help = "also on f16, bf16 or both; such a line is a multiple of the same one on F32",
     .kind = CLI_LIST,
     FIELD(dtypes)},
    {.name = "heads",
     .argument = "N",
     .help = "heads (8192 / n, at least 2; 96 where n is at most 128)",
     NUMBER(1024, heads)},
    {.name = "batch", .argument = "N", .help = "sequences (1)", NUMBER(1024, batch)},
    {.name = "causal", .help = "also with a causal mask", .kind = CLI_FLAG, FIELD(causal)},
    {.name = "padded",
     .help = "also with the second half of the keys masked",
     .kind = CLI_FLAG,
     FIELD(padded)},
    {.name = "dropout",
     .argument = "P",
     .help = "also with dropout of the weights, P below 1",
     .kind = CLI_REAL,
     FIELD(dropout)},
    {.name = "peaked",
     .help = "also with large logits: most weights far below the largest",
     .kind = CLI_FLAG,
     FIELD(peaked)},
    {.name = "kept",
     .help = "also with the weights kept from forward for backward, up to 192 tokens",
     .kind = CLI_FLAG,
     FIELD(kept)},
    {.name = "decode",
     .help = "one query over n keys (16384) that lie in memory, instead",
     .kind = CLI_FLAG,
     FIELD(decode)},
    {.name = "tokens",
     .help =
         "q, k, v and out with heads inside tokens, [B,T,H,D], as models have them; without OpenBLAS",
     .kind = CLI_FLAG,
     FIELD(by_tokens)},
    {.name = "prepared",
     .help = "also with tables packed beforehand, as multiples of the call that packs its own",
     .kind = CLI_FLAG,
     FIELD(prepared)},
    {.name = "linear",
     .help = "linear maps instead: n rows (128,512) from d to d channels (384,768,1024,3072)",
     .kind = CLI_FLAG,
     FIELD(linear)},
    {.name = "operators",
     .help = "norms, activations, softmax and the like instead, against plain loops",
     .kind = CLI_FLAG,
     FIELD(operators)},
    {.name = "mpi",
     .help = "attention over the ranks of mpirun instead: mpirun -n 2 locus bench --mpi --help",
     .kind = CLI_FLAG,
     FIELD(mpi)},
    {.name = "ragged",
     .help = "texts in one row instead: 8 of 128 against a batch, 256 of 8 to 512 one by one",
     .kind = CLI_FLAG,
     FIELD(ragged)},
    {.name = "mask",
     .argument = "blocks",
     .help = "8 texts of 128 in one row under a boolean mask against a batch, instead",
     .kind = CLI_LIST,
     FIELD(mask)},
    {.name = "full",
     .help = "n 64 to 8192, d 64 and 128, every instruction set, 1 and 2 threads, linear maps",
     .kind = CLI_FLAG,
     FIELD(full)},
    {.name = "rounds",
     .argument = "N",
     .help = "rounds over all lines (5, fewer on a slow machine)",
     NUMBER(BENCH_ROUNDS, rounds)},
    {.name = "no-baseline", .help = "leave OpenBLAS alone", .kind = CLI_FLAG, FIELD(no_baseline)},
    {.name = "json", .help = "print JSON", .kind = CLI_FLAG, FIELD(json)},
    {.name = "markdown", .help = "print a Markdown table", .kind = CLI_FLAG, FIELD(markdown)},
    {.name = "svg",
     .argument = "FILE",
     .help = "also write a chart",
     .kind = CLI_OUTPUT,
     FIELD(svg)},
    {.name = NULL},
};

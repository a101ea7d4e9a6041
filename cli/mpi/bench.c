/* SPDX-License-Identifier: Apache-2.0 */
/* locus bench --mpi: time, bytes, waiting and memory of each rank, against one rank that does all
 * of it with as many threads. */
#define _DEFAULT_SOURCE /* getrusage, nanosleep */
#include "cli/mpi/bench.h"

#include <locus/mpi.h>
#include <locus/problem.h>

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

typedef struct mpi_values {
    const char *scheme;
    uint32_t length, heads, width, window, threads, rounds, block;
    int causal, zigzag, backward, no_alone, json;
} mpi_values;

/* One rank's call: of its rows, or, alone, of all. */
typedef struct mpi_side {
    MPI_Comm communicator;
    locus_problem *problem;
    locus_results results, dresults;
    locus_tensors grad;
    locus_mpi_plan *ring; /* NULL: one process, */
    locus_plan *plan;     /* with this          */
    void *workspace;
    size_t bytes;
} mpi_side;

/* What is measured on a rank, in the order in which it is gathered and printed. */
typedef struct mpi_figures {
    double seconds, processor; /* of the slowest rank; of this one, on its core         */
    double waited, packed;     /* of these                                              */
    double sent, messages;     /* bytes, and their number, of a call                    */
    double exchange;           /* seconds that the same messages take with nothing else */
    double peak;               /* bytes that were resident at most                      */
    double workspace;
} mpi_figures;
enum { MPI_FIGURES = sizeof(mpi_figures) / sizeof(double) };

typedef struct mpi_bench {
    const mpi_values *values;
    int rank, ranks;
    mpi_side ring, alone;
    mpi_figures mine, *all;
    double bare;                                       /* bytes before anything was made */
    double alone_seconds, alone_processor, alone_peak; /* rank 0                         */
} mpi_bench;

static double peak_bytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return 1024.0 * (double)usage.ru_maxrss;
}

/* The second number of statm, in pages. */
static double resident_bytes(void)
{
    char line[128] = "";
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL) return 0.0;
    const char *second = fgets(line, sizeof line, file) != NULL ? strchr(line, ' ') : NULL;
    fclose(file);
    return second != NULL ? strtod(second, NULL) * (double)sysconf(_SC_PAGESIZE) : 0.0;
}

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- calls ---- */

static locus_tensor room_for(const locus_tensor *like)
{
    if (like->rank == 0) return *like;
    return locus_view(calloc((size_t)locus_tensor_elements(like) + 1, sizeof(float)), LOCUS_F32,
                      like->rank, like->shape);
}

static locus_status make_problem(mpi_side *side, const mpi_values *v, int64_t rows,
                                 locus_error *error)
{
    const locus_problem_request request = {.size = sizeof request,
                                           .level = LOCUS_ATTEND,
                                           .scheme = v->scheme,
                                           .B = 1,
                                           .H = v->heads,
                                           .T = rows,
                                           .D = v->width,
                                           .causal = v->causal != 0,
                                           .seed = 7};
    const locus_status status = locus_problem_new(&side->problem, &request, error);
    if (status != LOCUS_OK) return status;
    locus_problem *p = side->problem;
    p->config->threads = v->threads;
    if (v->window > 0) p->config->window_left = p->config->window_right = v->window;
    side->results = (locus_results){.size = sizeof side->results,
                                    .out = room_for(&p->out),
                                    .lse = room_for(&p->lse)};
    side->dresults = (locus_results){.size = sizeof side->dresults, .out = p->dout};
    side->grad = (locus_tensors){.size = sizeof side->grad};
    if (!v->backward) return LOCUS_OK;
    side->results.lse_low = room_for(&p->lse);
    const char *const names[] = {"q", "k", "v", "rel_k", "rel_q", "rel_v", "bias"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        *locus_tensor_named(&side->grad, names[i]) = room_for(locus_tensor_named(p->in, names[i]));
    return LOCUS_OK;
}

static locus_status make_plan(mpi_side *side, const mpi_values *v, locus_error *error)
{
    const locus_mpi_options options = {.size = sizeof options,
                                       .layout =
                                           v->zigzag ? LOCUS_MPI_ZIGZAG : LOCUS_MPI_CONTIGUOUS,
                                       .block_rows = v->block};
    locus_problem *p = side->problem;
    locus_status status;
    size_t back = 0;
    if (side->communicator != MPI_COMM_NULL) {
        status =
            locus_mpi_plan_new(&side->ring, side->communicator, p->config, &options, p->in, error);
        if (status != LOCUS_OK) return status;
        side->bytes = locus_mpi_forward_workspace(side->ring);
        if (v->backward) back = locus_mpi_backward_workspace(side->ring);
    } else {
        status = locus_plan_new(&side->plan, p->config, p->in, error);
        if (status != LOCUS_OK) return status;
        side->bytes = locus_forward_workspace(side->plan);
        if (v->backward) back = locus_backward_workspace(side->plan);
    }
    if (back > side->bytes) side->bytes = back;
    side->workspace = malloc(side->bytes);
    return side->workspace != NULL ? LOCUS_OK : LOCUS_ERR_MEMORY;
}

static void free_side(mpi_side *side)
{
    locus_mpi_plan_free(side->ring);
    locus_plan_free(side->plan);
    locus_problem_free(side->problem);
    free(side->workspace);
    free(side->results.out.data);
    free(side->results.lse.data);
    free(side->results.lse_low.data);
    for (size_t i = 0; side->grad.size != 0 && i < LOCUS_TENSOR_COUNT; i++)
        free(locus_tensor_at(&side->grad, i)->data);
    *side = (mpi_side){.communicator = MPI_COMM_NULL};
}

static void add_traffic(const mpi_side *side, mpi_figures *f)
{
    locus_mpi_traffic traffic = {.size = sizeof traffic};
    locus_mpi_last_traffic(side->ring, side->workspace, &traffic);
    f->waited += traffic.seconds_waited;
    f->packed += traffic.seconds_packed;
    f->sent += (double)traffic.bytes_sent;
    f->messages += (double)traffic.messages_sent;
}

static locus_status call_ring(const mpi_side *s, int backward, mpi_figures *f, locus_error *error)
{
    locus_status status =
        locus_mpi_forward(s->ring, s->problem->in, &s->results, s->workspace, s->bytes, error);
    add_traffic(s, f);
    if (status != LOCUS_OK || !backward) return status;
    status = locus_mpi_backward(s->ring, s->problem->in, &s->results, &s->dresults, &s->grad, 0,
                                s->workspace, s->bytes, error);
    add_traffic(s, f);
    return status;
}

static locus_status call_alone(const mpi_side *s, int backward, locus_error *error)
{
    const locus_status status =
        locus_forward(s->plan, s->problem->in, &s->results, s->workspace, s->bytes, error);
    if (status != LOCUS_OK || !backward) return status;
    return locus_backward(s->plan, s->problem->in, &s->results, &s->dresults, &s->grad, 0,
                          s->workspace, s->bytes, error);
}

/* ---- measurements ---- */

/* The messages of the calls, as many and as long, with nothing to do meanwhile. */
static double time_exchange(const mpi_bench *b, const mpi_figures *f)
{
    double best = 0.0;
    if (b->ranks == 1) return best;
    locus_mpi_plan_info info = {.size = sizeof info};
    locus_mpi_plan_describe(b->ring.ring, &info);
    const int bytes = (int)info.piece_bytes,
              count = (int)(f->sent / (double)info.piece_bytes + 0.5);
    char *out = calloc((size_t)bytes, 1), *in = calloc((size_t)bytes, 1);
    for (int round = 0; round < 3 && out != NULL && in != NULL; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double began = MPI_Wtime();
        for (int i = 0; i < count; i++)
            MPI_Sendrecv(out, bytes, MPI_BYTE, (b->rank + 1) % b->ranks, 0, in, bytes, MPI_BYTE,
                         (b->rank + b->ranks - 1) % b->ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        const double took = MPI_Wtime() - began;
        if (round == 0 || took < best) best = took;
    }
    free(out);
    free(in);
    return best;
}

/* A barrier that leaves the core to others: MPI's own would spin. */
static void wait_asleep(void)
{
    MPI_Request request;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    while (!done) {
        const struct timespec nap = {.tv_nsec = 2000000};
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (!done) nanosleep(&nap, NULL);
    }
}

static locus_status round_of_ring(mpi_bench *b, locus_error *error)
{
    mpi_figures now = {.seconds = 0.0};
    wait_asleep();
    const double began = MPI_Wtime(), core = processor_seconds();
    const locus_status status = call_ring(&b->ring, b->values->backward, &now, error);
    const double mine[2] = {MPI_Wtime() - began, processor_seconds() - core};
    double slowest[2] = {mine[0], mine[1]};
    MPI_Allreduce(mine, slowest, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    now.seconds = slowest[0];
    now.processor = slowest[1];
    if (b->mine.seconds == 0.0 || now.processor < b->mine.processor) b->mine = now;
    return status;
}

static locus_status round_alone(mpi_bench *b, locus_error *error)
{
    const double began = MPI_Wtime(), core = processor_seconds();
    const locus_status status = call_alone(&b->alone, b->values->backward, error);
    const double took = MPI_Wtime() - began, processor = processor_seconds() - core;
    if (b->alone_seconds == 0.0 || processor < b->alone_processor) {
        b->alone_seconds = took;
        b->alone_processor = processor;
    }
    return status;
}

static locus_status make_alone(mpi_bench *b, locus_error *error)
{
    b->alone.communicator = MPI_COMM_NULL;
    const locus_status status = make_problem(&b->alone, b->values, b->values->length, error);
    return status == LOCUS_OK ? make_plan(&b->alone, b->values, error) : status;
}

/* Rounds of all ranks and of rank 0 alone, turn by turn. Memory of the ranks is read before that
 * of the whole is there. */
static locus_status measure(mpi_bench *b, locus_error *error)
{
    locus_status status = round_of_ring(b, error);
    const double peak = peak_bytes(), beside = resident_bytes() - b->bare;
    int code = status == LOCUS_OK && b->rank == 0 && !b->values->no_alone
                   ? (int)make_alone(b, error)
                   : (int)status;
    for (uint32_t round = 0; round < b->values->rounds; round++) {
        MPI_Bcast(&code, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (code != LOCUS_OK) return (locus_status)code;
        if (b->rank == 0 && !b->values->no_alone) code = (int)round_alone(b, error);
        if (round > 0) status = round_of_ring(b, error);
        if (status != LOCUS_OK) code = (int)status;
    }
    if (b->rank == 0 && b->alone.plan != NULL) b->alone_peak = peak_bytes() - beside;
    b->mine.peak = peak;
    b->mine.workspace = (double)b->ring.bytes;
    b->mine.exchange = time_exchange(b, &b->mine);
    MPI_Gather(&b->mine, MPI_FIGURES, MPI_DOUBLE, b->all, MPI_FIGURES, MPI_DOUBLE, 0,
               MPI_COMM_WORLD);
    return LOCUS_OK;
}

/* ---- the report ---- */

/* Of the time that the messages take by themselves, what nobody waited for. */
static double hidden(const mpi_figures *f)
{
    if (f->exchange <= 0.0) return 1.0;
    const double share = 1.0 - f->waited / f->exchange;
    return share > 0.0 ? share : 0.0;
}

static void print_text(const mpi_bench *b)
{
    const mpi_values *v = b->values;
    printf("%s, %s, n %u, %u heads of %u, %d ranks x %u threads, %s\n", v->scheme,
           v->backward ? "forward and backward" : "forward", (unsigned)v->length,
           (unsigned)v->heads, (unsigned)v->width, b->ranks, (unsigned)v->threads,
           v->zigzag ? "zigzag" : "contiguous");
    printf(
        "rank  seconds  processor  waited  packed  messages  MB sent  exchange alone  hidden  MB peak  "
        "workspace\n");
    for (int r = 0; r < b->ranks; r++) {
        const mpi_figures *f = &b->all[r];
        printf("%4d  %7.3f  %9.3f  %6.4f  %6.4f  %8.0f  %7.1f  %14.4f  %5.1f%%  %7.1f  %9.1f\n", r,
               f->seconds, f->processor, f->waited, f->packed, f->messages, f->sent / 1e6,
               f->exchange, 100.0 * hidden(f), f->peak / 1e6, f->workspace / 1e6);
    }
    if (b->alone_seconds == 0.0) return;
    printf(
        "one process: %.3f s (%.3f on its cores), %.1f MB peak; with %.2f of its memory each, %d "
        "ranks are %.2f times as fast (by processor time %.2f)\n",
        b->alone_seconds, b->alone_processor, b->alone_peak / 1e6, b->all[0].peak / b->alone_peak,
        b->ranks, b->alone_seconds / b->all[0].seconds, b->alone_processor / b->all[0].processor);
}

static void print_json(const mpi_bench *b)
{
    const mpi_values *v = b->values;
    printf("{\"scheme\": \"%s\", \"length\": %u, \"heads\": %u, \"width\": %u, \"ranks\": %d, "
           "\"threads\": %u, \"layout\": \"%s\", \"backward\": %s, \"rank\": [",
           v->scheme, (unsigned)v->length, (unsigned)v->heads, (unsigned)v->width, b->ranks,
           (unsigned)v->threads, v->zigzag ? "zigzag" : "contiguous",
           v->backward ? "true" : "false");
    for (int r = 0; r < b->ranks; r++) {
        const mpi_figures *f = &b->all[r];
        printf(
            "%s{\"seconds\": %.6g, \"processor_seconds\": %.6g, \"waited\": %.6g, \"packed\": %.6g, \"messages\": %.0f, "
            "\"bytes_sent\": %.0f, \"exchange_alone\": %.6g, \"hidden\": %.6g, "
            "\"peak_bytes\": %.0f, \"workspace_bytes\": %.0f}",
            r > 0 ? ", " : "", f->seconds, f->processor, f->waited, f->packed, f->messages, f->sent,
            f->exchange, hidden(f), f->peak, f->workspace);
    }
    printf("], \"alone_seconds\": %.6g, \"alone_processor_seconds\": %.6g, \"alone_peak_bytes\": "
           "%.0f}\n",
           b->alone_seconds, b->alone_processor, b->alone_peak);
}

/* ---- the command ---- */

static locus_status run(mpi_bench *b, locus_error *error)
{
    const mpi_values *v = b->values;
    locus_mpi_rows held[2];
    b->ring.communicator = MPI_COMM_WORLD;
    b->bare = resident_bytes();
    const int runs = locus_mpi_layout(v->zigzag ? LOCUS_MPI_ZIGZAG : LOCUS_MPI_CONTIGUOUS,
                                      v->length, b->ranks, b->rank, held);
    const int64_t rows = held[0].count + (runs > 1 ? held[1].count : 0);
    locus_status status = make_problem(&b->ring, v, rows, error);
    if (status == LOCUS_OK) status = make_plan(&b->ring, v, error);
    if (status == LOCUS_OK) status = measure(b, error);
    return status;
}

static int bench_command(int argc, char **argv)
{
    mpi_values values = {
        .scheme = "t5", .length = 32768, .heads = 1, .width = 64, .threads = 1, .rounds = 3};
    mpi_bench b = {.values = &values};
    locus_error error = {""};
    int exit_code = CLI_DONE;
    MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &b.ranks);
    if (!cli_parse(&cmd_mpi_bench, argc, argv, &values, &exit_code)) return exit_code;
    b.all = calloc((size_t)b.ranks, sizeof *b.all);
    if (b.all == NULL) return cli_complain("bench", CLI_RESOURCES, "out of memory");
    const locus_status status = run(&b, &error);
    if (status != LOCUS_OK)
        exit_code = cli_report("bench", status, NULL, &error);
    else if (b.rank == 0 && values.json)
        print_json(&b);
    else if (b.rank == 0)
        print_text(&b);
    free_side(&b.ring);
    free_side(&b.alone);
    free(b.all);
    return exit_code;
}

static const cli_example examples[] = {
    {"mpirun -n 2 locus bench --mpi", "T5 at n = 32,768: two ranks against one"},
    {"mpirun -n 4 locus bench --mpi --scheme alibi --causal --zigzag",
     "a causal mask, its work spread evenly"},
    {"mpirun -n 2 locus bench --mpi --scheme deberta -n 131072 --window 4096 --heads 4",
     "memory of a long sequence"},
    {NULL, NULL},
};

#define FIELD(name) .offset = offsetof(mpi_values, name)
#define NUMBER(most, field) .kind = CLI_INTEGER, .minimum = 1, .maximum = most, FIELD(field)
static const cli_option options[] = {
    {.name = "scheme",
     .argument = "NAME",
     .help = "a scheme (t5)",
     .kind = CLI_SCHEME,
     FIELD(scheme)},
    {.name = "length",
     .letter = 'n',
     .argument = "N",
     .help = "rows of all ranks (32768)",
     NUMBER(1 << 24, length)},
    {.name = "heads", .argument = "N", .help = "heads (1)", NUMBER(1024, heads)},
    {.name = "width",
     .letter = 'd',
     .argument = "N",
     .help = "width of a head (64)",
     NUMBER(1024, width)},
    {.name = "window",
     .argument = "N",
     .help = "keys that a query sees on each side (all)",
     NUMBER(1 << 24, window)},
    {.name = "threads", .argument = "N", .help = "threads of a rank (1)", NUMBER(1024, threads)},
    {.name = "rounds",
     .argument = "N",
     .help = "rounds, of which the fastest counts (3)",
     NUMBER(100, rounds)},
    {.name = "block-rows",
     .argument = "N",
     .help = "rows of a message (8192)",
     NUMBER(1 << 20, block)},
    {.name = "causal",
     .help = "a query sees the keys up to its own",
     .kind = CLI_FLAG,
     FIELD(causal)},
    {.name = "zigzag",
     .help = "rows in zigzag order, which balances --causal",
     .kind = CLI_FLAG,
     FIELD(zigzag)},
    {.name = "backward", .help = "backward, too", .kind = CLI_FLAG, FIELD(backward)},
    {.name = "no-alone",
     .help = "leave out the process that does all",
     .kind = CLI_FLAG,
     FIELD(no_alone)},
    {.name = "json", .help = "print JSON", .kind = CLI_FLAG, FIELD(json)},
    {.name = NULL},
};

const cli_command cmd_mpi_bench = {
    .name = "bench",
    .summary = "attention over the ranks of MPI, against one rank",
    .description =
        "Measures one call over the ranks of mpirun: seconds of the slowest rank, on the wall and of "
        "its processor, in the round that took least of the latter; of these, seconds in which a rank waited for a message, and in which it packed, added up and joined; "
        "messages and bytes sent; what the same messages take with nothing to do meanwhile, and the "
        "share of that for which nobody waited; the most memory that was resident, and the workspace. "
        "Then rank 0 does all of it as one process with as many threads, turn by turn with the ranks.",
    .usage = "--mpi [--scheme NAME] [-n N] [--causal] [--zigzag] [...]",
    .examples = examples,
    .options = options,
    .run = bench_command,
};

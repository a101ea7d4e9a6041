/* SPDX-License-Identifier: Apache-2.0 */
/* ring all FILE... | digest | killed
 *
 * Attention over ranks against one process; started by tests/mpi/run.sh under mpirun. Rank 0 speaks
 * for all. */

#include <locus/case.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contract/variants.h"
#include "mpi/whole.h"
#include "support/check.h"

static int rank, ranks;

/* ---- what happens to messages: this stands before MPI's own ---- */

static int messages, cut_message = -1, kill_message = -1, cut_by;

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    const int number = messages++;
    if (number == kill_message) raise(SIGKILL);
    if (number == cut_message) count -= cut_by;
    return PMPI_Isend(data, count, type, to, tag, comm, request);
}

/* ---- calls ---- */

static const whole_spread spreads[] = {
    {"contiguous", LOCUS_MPI_CONTIGUOUS, 0, 0},
    {"uneven", LOCUS_MPI_CONTIGUOUS, 1, 3},
    {"zigzag", LOCUS_MPI_ZIGZAG, 0, 5},
};
enum { SPREADS = sizeof spreads / sizeof *spreads };

/* The largest error of all ranks; the name is that of the rank that has it. */
static double largest(double mine, char name[32])
{
    struct {
        double value;
        int rank;
    } own = {mine, rank}, all;
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    MPI_Bcast(name, 32, MPI_CHAR, all.rank, MPI_COMM_WORLD);
    return all.value;
}

static uint64_t check_spreads(const whole_call *call, const char *kind, const char *label)
{
    uint64_t digest = 1;
    for (size_t i = 0; i < SPREADS; i++) {
        char name[32];
        locus_error error = {""};
        uint64_t again = digest;
        if (!check_begin("mpi/P%d/%s/%s/%s", ranks, kind, label, spreads[i].name)) continue;
        const double worst = largest(whole_compare(call, &spreads[i], name, &digest, &error), name);
        CHECK(worst >= 0.0, "%s", error.text);
        CHECK(worst <= 1.0, "%s: %.3g times its tolerance", name, worst);
        if (i > 0) continue; /* once is enough */
        whole_compare(call, &spreads[i], name, &again, &error);
        int same = digest == again, all_same;
        MPI_Allreduce(&same, &all_same, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        CHECK(all_same, "another call has other bits");
    }
    return digest;
}

static test_problem *new_problem(const test_variant *v, int64_t rows)
{
    return test_variant_problem(v, (test_spec){.B = 2, .H = 2, .Tq = rows, .Tk = rows, .D = 6});
}

/* ---- refusals: one line on all ranks, and nobody waits ---- */

static void expect_refusal(locus_status status, const locus_error *error, locus_status expected,
                           const char *text)
{
    const int mine = status == expected && strcmp(error->text, text) == 0;
    int all;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    CHECK(all, "found \"%s\" (%s) here, expected \"%s\" on all ranks", error->text,
          locus_status_text(status), text);
}

/* ---- variants ---- */

static int brings(const whole_call *call, const char *name)
{
    return locus_tensor_at_const(&call->in, (size_t)locus_tensor_index(name))->data != NULL;
}

/* Gates and decays need the sums of all positions in between, counted positions the keys: one line on
 * every rank. 0: the call is none of those. */
static int check_refused(const whole_call *call, const char *kind, const char *label)
{
    const char *scheme = call->config.scheme;
    const char *tensor = brings(call, "log_gate")    ? "log_gate"
                         : brings(call, "log_decay") ? "log_decay"
                                                     : NULL;
    const int counts = strcmp(scheme, "cope") == 0;
    char text[200];
    whole_part part;
    locus_error error = {""};
    if (tensor == NULL && !counts) return 0;
    if (!check_begin("mpi/P%d/%s/%s/refused", ranks, kind, label)) return 1;
    if (counts)
        snprintf(text, sizeof text,
                 "rank 0: scheme: found cope over ranks, expected one that counts no keys");
    else
        snprintf(text, sizeof text,
                 "rank 0: tensor %s: found over ranks with scheme %s, expected none", tensor,
                 scheme);
    const locus_status status = whole_split(call, &spreads[0], &part, &error);
    expect_refusal(status, &error, LOCUS_ERR_UNSUPPORTED, text);
    whole_part_free(&part);
    return 1;
}

static void check_golden(const char *path)
{
    locus_case *loaded;
    locus_error error = {""};
    const char *label = strstr(path, "golden/") != NULL ? strstr(path, "golden/") + 7 : path;
    whole_call call = {.config = {.size = 0}};
    if (locus_case_load(&loaded, path, NULL, &error) != LOCUS_OK) {
        if (check_begin("mpi/P%d/golden/%s", ranks, label)) CHECK(0, "%s", error.text);
        return;
    }
    call.in = *locus_case_inputs(loaded);
    call.config = *locus_case_config(loaded);
    if (locus_case_level(loaded) == LOCUS_ATTEND && call.in.q.shape[2] >= ranks &&
        call.in.k.shape[2] >= ranks) {
        if (check_refused(&call, "golden", label)) {
            locus_case_free(loaded);
            return;
        }
        const locus_status status = whole_run(&call, &error);
        if (status == LOCUS_OK)
            check_spreads(&call, "golden", label);
        else if (check_begin("mpi/P%d/golden/%s", ranks, label))
            CHECK(status == LOCUS_ERR_UNSUPPORTED, "%s", error.text);
        if (status == LOCUS_OK) whole_free(&call);
    }
    locus_case_free(loaded);
}

static uint64_t check_variants(void)
{
    uint64_t digest = 1;
    for (size_t i = 0; i < TEST_VARIANTS; i++) {
        locus_error error = {""};
        test_problem *p = new_problem(&test_variants[i], 23);
        whole_call call = {.config = p->config, .in = p->in[TEST_FLOAT]};
        if (check_refused(&call, "variants", test_variants[i].name)) {
            test_problem_free(p);
            continue;
        }
        if (whole_run(&call, &error) == LOCUS_OK) {
            digest ^= check_spreads(&call, "variants", test_variants[i].name);
            whole_free(&call);
        } else if (check_begin("mpi/P%d/variants/%s", ranks, test_variants[i].name)) {
            CHECK(0, "%s", error.text);
        }
        test_problem_free(p);
    }
    return digest;
}

/* ---- plans and calls that are refused ---- */

static void refuse_plan(const char *name, const whole_call *call, const whole_spread *spread,
                        locus_status expected, const char *text)
{
    whole_part part;
    locus_error error = {""};
    if (!check_begin("mpi/P%d/refused/%s", ranks, name)) return;
    const locus_status status = whole_split(call, spread, &part, &error);
    expect_refusal(status, &error, expected, text);
    whole_part_free(&part);
}

static void check_plans(const whole_call *call)
{
    const int odd = rank == ranks - 1;
    const char *const last = ranks == 2 ? "rank 1" : ranks == 3 ? "rank 2" : "rank 3";
    char text[200];
    whole_call other = *call;
    if (odd) other.config.window_left = 4;
    snprintf(text, sizeof text, "%s: window_left: found another value than on rank 0", last);
    refuse_plan("window", &other, &spreads[0], LOCUS_ERR_ARGUMENT, text);
    other = *call;
    if (odd) other.config.scheme = "none";
    snprintf(text, sizeof text, "%s: scheme: found another value than on rank 0", last);
    refuse_plan("scheme", &other, &spreads[0], LOCUS_ERR_ARGUMENT, text);
    other = *call;
    if (odd) other.config.scheme = "nonsense";
    snprintf(text, sizeof text, "%s: scheme: found nonsense, expected one of the list", last);
    refuse_plan("unknown scheme", &other, &spreads[0], LOCUS_ERR_SCHEME, text);
    other = *call;
    if (odd) other.in.bias.shape[1] = 1;
    snprintf(text, sizeof text,
             "%s: tensor bias: found another type, shape or content than on rank 0", last);
    refuse_plan("table", &other, &spreads[0], LOCUS_ERR_ARGUMENT, text);
    const whole_spread spread = {"", odd ? LOCUS_MPI_ZIGZAG : LOCUS_MPI_CONTIGUOUS, 0, 0};
    snprintf(text, sizeof text, "%s: layout: found another value than on rank 0", last);
    refuse_plan("layout", call, &spread, LOCUS_ERR_ARGUMENT, text);
    other = *call;
    other.config.options.buckets = 3;
    refuse_plan("bad on all", &other, &spreads[0], LOCUS_ERR_TENSOR,
                "rank 0: tensor bias: found shape [16,2], expected [3,2] (buckets H)");
}

static void check_calls(const whole_call *call)
{
    whole_part part;
    locus_error error = {""};
    char text[200];
    CHECK(whole_split(call, &spreads[0], &part, &error) == LOCUS_OK, "%s", error.text);
    locus_results results = part.results;
    const int odd = rank == ranks - 1;
    if (odd) results.out.shape[3]++;
    if (check_begin("mpi/P%d/refused/out", ranks)) {
        const locus_status status = locus_mpi_forward(part.plan, &part.in, &results, part.workspace,
                                                      part.workspace_bytes, &error);
        snprintf(text, sizeof text,
                 "rank %d: tensor out: found another shape, expected what the plan was made for",
                 ranks - 1);
        expect_refusal(status, &error, LOCUS_ERR_TENSOR, text);
    }
    if (check_begin("mpi/P%d/refused/workspace", ranks)) {
        const locus_status status = locus_mpi_forward(part.plan, &part.in, &part.results,
                                                      part.workspace, odd ? 8 : SIZE_MAX, &error);
        snprintf(text, sizeof text, "rank %d: workspace: found 8 bytes, expected %zu", ranks - 1,
                 locus_mpi_forward_workspace(part.plan));
        MPI_Bcast(text, sizeof text, MPI_CHAR, ranks - 1, MPI_COMM_WORLD);
        expect_refusal(status, &error, LOCUS_ERR_WORKSPACE, text);
    }
    if (check_begin("mpi/P%d/refused/forward and backward", ranks)) {
        const locus_status status =
            odd ? locus_mpi_forward(part.plan, &part.in, &part.results, part.workspace,
                                    part.workspace_bytes, &error)
                : locus_mpi_backward(part.plan, &part.in, &part.results, &part.dresults, &part.grad,
                                     0, part.workspace, part.workspace_bytes, &error);
        expect_refusal(status, &error, LOCUS_ERR_ARGUMENT,
                       "ranks: found forward on some and backward on others");
    }
    if (check_begin("mpi/P%d/refused/and then it works", ranks)) {
        char name[32];
        uint64_t digest = 1;
        const double worst = largest(whole_compare(call, &spreads[0], name, &digest, &error), name);
        CHECK(worst >= 0.0 && worst <= 1.0, "%s: %g", name, worst);
    }
    whole_part_free(&part);
}

/* A message that is too short, too long. */
static void check_truncated(const whole_call *call)
{
    static const int cuts[] = {8, -8};
    for (size_t i = 0; i < 2; i++) {
        whole_part part;
        locus_error error = {""};
        if (!check_begin("mpi/P%d/message/%s", ranks, cuts[i] > 0 ? "short" : "long")) continue;
        CHECK(whole_split(call, &spreads[0], &part, &error) == LOCUS_OK, "%s", error.text);
        cut_by = cuts[i];
        cut_message = rank == 1 ? messages : -1;
        const locus_status status = locus_mpi_forward(part.plan, &part.in, &part.results,
                                                      part.workspace, part.workspace_bytes, &error);
        cut_message = -1;
        int mine = status == LOCUS_ERR_IO && strncmp(error.text, "rank ", 5) == 0, all;
        MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        CHECK(all, "\"%s\" (%s), expected one line on all ranks", error.text,
              locus_status_text(status));
        whole_part_free(&part);
    }
}

/* ---- what is sent, and how much memory it takes ---- */

static locus_mpi_plan_info info_of(const char *settings, uint32_t layout, int64_t rows,
                                   size_t *workspace)
{
    test_problem *p = new_problem(&(test_variant){.scheme = "t5", .settings = settings}, 2);
    locus_tensors shapes = p->in[TEST_FLOAT];
    locus_mpi_rows held[2];
    locus_error error = {""};
    locus_mpi_plan *plan;
    locus_mpi_plan_info info = {.size = sizeof info};
    const int runs = locus_mpi_layout(layout, rows, ranks, rank, held);
    const locus_mpi_options options = {.size = sizeof options,
                                       .layout = layout,
                                       .block_rows = rows <= 4096 ? 16 : 0};
    const int64_t mine = held[0].count + (runs > 1 ? held[1].count : 0);
    shapes.q.shape[2] = shapes.k.shape[2] = shapes.v.shape[2] = mine;
    if (CHECK(locus_mpi_plan_new(&plan, MPI_COMM_WORLD, &p->config, &options, &shapes, &error) ==
                  LOCUS_OK,
              "%s", error.text)) {
        locus_mpi_plan_describe(plan, &info);
        *workspace = locus_mpi_forward_workspace(plan);
        locus_mpi_plan_free(plan);
    }
    test_problem_free(p);
    return info;
}

/* 64 rows on each rank, 16 a message. */
static void check_reach(void)
{
    size_t bytes, twice;
    if (check_begin("mpi/P%d/reach/causal", ranks)) {
        const locus_mpi_plan_info info =
            info_of("causal=1", LOCUS_MPI_CONTIGUOUS, 64 * ranks, &bytes);
        int64_t sum, mine = info.pieces_received - 4 * rank;
        MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        CHECK(sum == 0 && mine == 0, "pieces of later ranks are received");
        CHECK(info.pieces_sent == 4 * (ranks - 1 - rank), "%d sent", (int)info.pieces_sent);
    }
    if (check_begin("mpi/P%d/reach/window", ranks)) {
        const locus_mpi_plan_info info =
            info_of("window_left=16 window_right=0", LOCUS_MPI_CONTIGUOUS, 64 * ranks, &bytes);
        const int64_t wanted = rank > 0, blocks = 4 + 3 + wanted;
        CHECK(info.pieces_received == wanted, "%d received", (int)info.pieces_received);
        CHECK(info.blocks == blocks, "%d blocks, expected %d", (int)info.blocks, (int)blocks);
    }
    if (check_begin("mpi/P%d/reach/zigzag is balanced", ranks)) {
        const locus_mpi_plan_info info = info_of("causal=1", LOCUS_MPI_ZIGZAG, 64 * ranks, &bytes);
        int64_t mine = info.blocks, most, least;
        MPI_Allreduce(&mine, &most, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
        MPI_Allreduce(&mine, &least, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
        CHECK(most == least, "%d to %d blocks", (int)least, (int)most);
    }
    if (check_begin("mpi/P%d/memory", ranks)) {
        info_of(NULL, LOCUS_MPI_CONTIGUOUS, 1 << 17, &bytes);
        info_of(NULL, LOCUS_MPI_CONTIGUOUS, 1 << 18, &twice);
        CHECK(twice <= 2 * bytes, "%zu bytes for 2^17 rows, %zu for 2^18", bytes, twice);
        /* q, k, v and out of a rank */
        const size_t own =
            (size_t)4 * 2 * 2 * 6 * sizeof(float) * ((size_t)1 << 17) / (size_t)ranks;
        CHECK(bytes < own + ((size_t)16 << 20), "%zu bytes beside %zu of tensors", bytes, own);
    }
}

/* Gradients of a table on both sides of REDUCE_FLOATS (2^18), which a message of them holds. */
static void check_tables(void)
{
    static const int64_t reaches[] = {65535, 65536};
    for (size_t i = 0; i < 2; i++) {
        test_problem *p = test_problem_new(&(test_spec){.scheme = "distance",
                                                        .level = LOCUS_ATTEND,
                                                        .B = 1,
                                                        .H = 2,
                                                        .Tq = 9,
                                                        .Tk = 9,
                                                        .D = 4,
                                                        .reach = reaches[i],
                                                        .seed = 3});
        whole_call call = {.config = p->config, .in = p->in[TEST_FLOAT]};
        locus_error error = {""};
        char name[32];
        uint64_t digest = 1;
        if (check_begin("mpi/P%d/tables/%d", ranks, (int)(4 * reaches[i] + 2)) &&
            CHECK(whole_run(&call, &error) == LOCUS_OK, "%s", error.text)) {
            const double worst =
                largest(whole_compare(&call, &spreads[0], name, &digest, &error), name);
            CHECK(worst >= 0.0 && worst <= 1.0, "%s: %g %s", name, worst, error.text);
            whole_free(&call);
        }
        test_problem_free(p);
    }
}

/* Rows of 2^25 bytes: 32 of them make a message of MOST_PIECE_BYTES, not BLOCK_ROWS as usual. */
static void check_long_rows(void)
{
    static const int64_t widths[] = {1024, 1023};
    for (size_t i = 0; i < 2; i++) {
        const int64_t shape[] = {64, 64, 100, widths[i]};
        const locus_tensor view = locus_view(NULL, LOCUS_F32, 4, shape);
        const locus_tensors shapes = {.size = sizeof shapes, .q = view, .k = view, .v = view};
        locus_mpi_plan_info info = {.size = sizeof info};
        locus_mpi_plan *plan;
        locus_config config;
        locus_error error = {""};
        if (!check_begin("mpi/P%d/long rows/%d", ranks, (int)widths[i])) continue;
        CHECK(locus_config_init(&config, "none") == LOCUS_OK, "none");
        if (!CHECK(locus_mpi_plan_new(&plan, MPI_COMM_WORLD, &config, NULL, &shapes, &error) ==
                       LOCUS_OK,
                   "%s", error.text))
            continue;
        locus_mpi_plan_describe(plan, &info);
        CHECK(info.block_rows == 32 && info.piece_bytes <= (uint64_t)1 << 30, "%d rows, %d bytes",
              (int)info.block_rows, (int)info.piece_bytes);
        locus_mpi_plan_free(plan);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *what = argc > 1 ? argv[1] : "";
    if (rank != 0 && freopen("/dev/null", "w", stdout) == NULL) return 2;
    test_problem *p =
        new_problem(&(test_variant){.scheme = "t5", .settings = "buckets=16 max_distance=40"}, 23);
    whole_call call = {.config = p->config, .in = p->in[TEST_FLOAT]};
    locus_error error;
    if (whole_run(&call, &error) != LOCUS_OK) return 2;
    if (strcmp(what, "killed") == 0) {
        whole_part part;
        if (whole_split(&call, &spreads[0], &part, &error) != LOCUS_OK) return 2;
        kill_message = rank == 1 ? messages : -1;
        const locus_status status = locus_mpi_forward(part.plan, &part.in, &part.results,
                                                      part.workspace, part.workspace_bytes, &error);
        printf("killed: %s\n", locus_status_text(status));
        return 0; /* never seen */
    }
    if (strcmp(what, "all") == 0) {
        const uint64_t digest = check_variants();
        for (int i = 2; i < argc; i++) check_golden(argv[i]);
        if (ranks > 1) check_plans(&call);
        if (ranks > 1) check_calls(&call);
        if (ranks > 1) check_truncated(&call);
        check_reach();
        check_tables();
        check_long_rows();
        printf("digest %016llx\n", (unsigned long long)digest);
    } else if (strcmp(what, "digest") == 0) {
        printf("digest %016llx\n", (unsigned long long)check_variants());
    }
    whole_free(&call);
    test_problem_free(p);
    const int code = check_finish("mpi");
    MPI_Finalize();
    return rank == 0 ? code : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

/* What places of position have in common: gates that are constant, two axes with one row, a position
 * query that is the query, positions that nobody can count apart. Asked of the oracle and of the
 * float path. */

#include "property/ways.h"

enum { T = 70, D = 6 };
static const char *const path_names[] = {"oracle", "float"};

static test_problem *problem(const char *scheme, int64_t length, const char *settings,
                             const char *with, const char *without)
{
    return test_problem_new(&(test_spec){.scheme = scheme,
                                         .level = LOCUS_ATTEND,
                                         .B = 2,
                                         .H = 2,
                                         .Tq = length,
                                         .Tk = length,
                                         .D = D,
                                         .settings = settings,
                                         .with = with,
                                         .without = without});
}

/* The gradients of what both have in common, too. */
static void agree_runs(test_problem *a, test_problem *b, int path)
{
    test_problem_sync(a);
    test_problem_sync(b);
    if (!run(a, path, 1) || !run(b, path, 1)) return;
    agree(&a->results[path].out, &b->results[path].out, gradient_tolerance[path], "out");
    agree(&a->grad[path].q, &b->grad[path].q, gradient_tolerance[path], "grad.q");
    agree(&a->grad[path].k, &b->grad[path].k, gradient_tolerance[path], "grad.k");
    agree(&a->grad[path].v, &b->grad[path].v, gradient_tolerance[path], "grad.v");
}

/* A gate of -slope at every position is ALiBi, and of 0 nothing. */
static void constant_gates(const char *scheme, double slope, int path)
{
    test_problem *gated = problem("none", T, "causal=1", "log_gate", NULL);
    test_problem *other = problem(scheme, T, "causal=1", NULL, NULL);
    const locus_tensor *gates = &gated->in[0].log_gate, *slopes = &other->in[0].slopes;
    for (int64_t i = 0; i < locus_tensor_elements(gates); i++) test_set_value(gates, i, -slope);
    for (int64_t h = 0; h < locus_tensor_elements(slopes); h++) test_set_value(slopes, h, slope);
    agree_runs(gated, other, path);
    test_problem_free(gated);
    test_problem_free(other);
}

/* Pixels of one row: a bias by x alone. */
static void one_row(int path)
{
    test_problem *grid = problem("swin", T, "", NULL, "cls");
    test_problem *line = problem("distance", T, "", NULL, NULL);
    const locus_tensor *by_grid = &grid->in[0].bias, *by_line = &line->in[0].bias;
    const int64_t Ry = by_grid->shape[0], Rx = by_grid->shape[1], R = by_line->shape[1];
    locus_tensor *const given[] = {&grid->in[0].q_positions, &grid->in[0].k_positions};
    for (int side = 0; side < 2; side++)
        for (int64_t i = 0; i < T; i++) {
            int64_t *at = (int64_t *)given[side]->data + 2 * i;
            at[0] = 7;
            at[1] = i % ((Rx + 1) / 2); /* as far as the table reaches */
        }
    const int64_t width = (Rx + 1) / 2;
    for (int64_t h = 0; h < 2; h++)
        for (int64_t r = 0; r < R; r++) test_set_value(by_line, h * R + r, 0.0);
    for (int64_t h = 0; h < 2; h++)
        for (int64_t x = 1 - width; x < width; x++)
            test_set_value(by_line, h * R + x - line->config.options.delta_min,
                           test_value(by_grid, ((Ry / 2) * Rx + x + Rx / 2) * 2 + h));
    /* the line has the same x, as a position */
    int64_t numbers[T];
    for (int64_t i = 0; i < T; i++) numbers[i] = i % width;
    for (int side = 0; side < TEST_PATHS; side++)
        line->in[side].q_positions = line->in[side].k_positions =
            locus_view(numbers, LOCUS_I64, 1, (const int64_t[]){T});
    agree_runs(grid, line, path);
    test_problem_free(grid);
    test_problem_free(line);
}

/* F = D and r = c q: the position query is the query. */
static void own_query(int path)
{
    test_problem *own = problem("table", T, "scale=0.5", "pos_query", "rel_q rel_v bias");
    test_problem *plain = problem("relative_key", T, "scale=0.5", NULL, NULL);
    locus_tensors *in = &own->in[0];
    const int64_t F = in->pos_query.shape[3], rows = plain->in[0].rel_k.shape[0];
    const int64_t *map = in->rows.data;
    const double scale = 0.5; /* exact in float */
    for (int64_t i = 0; i < locus_tensor_elements(&in->pos_query); i++)
        test_set_value(&in->pos_query, i,
                       i % F < D ? scale * test_value(&in->q, i / F * D + i % F) : 0.0);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t d = 0; d < D; d++)
            test_set_value(&plain->in[0].rel_k, r * D + d,
                           d < F ? test_value(&in->rel_k, map[r] * F + d) : 0.0);
    test_problem_sync(own);
    test_problem_sync(plain);
    if (run(own, path, 0) && run(plain, path, 0))
        agree(&own->results[path].out, &plain->results[path].out, gradient_tolerance[path], "out");
    test_problem_free(own);
    test_problem_free(plain);
}

/* A table of one row adds the same to all scores of a query. */
static void one_place(int path)
{
    test_problem *counted = problem("cope", 4, "", NULL, NULL);
    test_problem *plain = problem("none", 4, "causal=1", NULL, NULL);
    if (CHECK(counted->in[0].rel_k.shape[0] == 1, "one row is wanted"))
        agree_runs(counted, plain, path);
    test_problem_free(counted);
    test_problem_free(plain);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for (int path = 0; path < TEST_PATHS; path++) {
        const char *name = path_names[path];
        if (check_begin("property/places/%s/gates of 0", name)) constant_gates("none", 0.0, path);
        if (check_begin("property/places/%s/gates of a slope", name))
            constant_gates("alibi", 0.125, path);
        if (check_begin("property/places/%s/one row", name)) one_row(path);
        if (check_begin("property/places/%s/own query", name)) own_query(path);
        if (check_begin("property/places/%s/one place", name)) one_place(path);
    }
    return check_finish("property/places");
}

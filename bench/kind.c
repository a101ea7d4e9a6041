/* SPDX-License-Identifier: Apache-2.0 */
/* locus bench: how the schemes are set, and what their arithmetic is worth. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/measure.h"
#include "cli/terms.h"

/* ---- the kinds ---- */

static void add_kind(bench_kind *kinds, size_t *count, const locus_scheme_info *scheme, int dense)
{
    bench_kind *kind = &kinds[(*count)++];
    *kind = (bench_kind){.scheme = scheme, .dense = dense};
    snprintf(kind->name, sizeof kind->name, "%s%s", scheme->name, dense ? "+dense" : "");
}

size_t bench_list_kinds(bench_kind *kinds, size_t capacity)
{
    size_t count = 0;
    for (size_t i = 0; i < locus_scheme_count() && count + 2 <= capacity; i++) {
        const locus_scheme_info *scheme = locus_scheme_at(i);
        if (scheme_level(scheme) != LOCUS_ATTEND) continue;
        add_kind(kinds, &count, scheme, 0);
        if (strcmp(scheme->name, "none") == 0) add_kind(kinds, &count, scheme, 1);
    }
    return count;
}

/* ---- settings ---- */

/* As in the papers and the checkpoints that people run. */
static const struct {
    const char *scheme, *option, *value;
} usual[] = {
    {"shaw", "clip_left", "128"},
    {"shaw", "clip_right", "128"},
    {"t5", "buckets", "32"},
    {"t5", "max_distance", "128"},
    {"tupe", "buckets", "32"},
    {"tupe", "max_distance", "128"},
    {"deberta", "span", "256"},
    {"deberta", "buckets", "256"},
    {"deberta", "max_distance", "512"},
};

locus_status bench_build_problem(locus_problem **p, const bench_group *group,
                                 const bench_kind *kind, locus_error *error)
{
    locus_problem_setting settings[8] = {{NULL, NULL}};
    char scale_base[24];
    size_t count = 0;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (strcmp(usual[i].scheme, kind->scheme->name) == 0)
            settings[count++] = (locus_problem_setting){usual[i].option, usual[i].value};
    /* Without a causal mask xPos grows exponentially with the distance to later keys; the
     * base grows along, so that the logits stay those of a model. */
    snprintf(scale_base, sizeof scale_base, "%" PRId64, group->n > 512 ? group->n : 512);
    settings[count++] = (locus_problem_setting){"scale_base", scale_base};
    const locus_problem_request request = {
        .size = sizeof request,
        .scheme = kind->scheme->name,
        .level = LOCUS_ATTEND,
        .B = group->batch,
        .H = group->heads,
        .T = group->n,
        .D = group->d,
        .seed = 2017,
        .settings = settings,
        .with = kind->dense ? "bias_dense" : NULL,
        .without = "cls",
        .given = &group->in,
    };
    const locus_status status = locus_problem_new(p, &request, error);
    if (status != LOCUS_OK) return status;
    /* T5 models fold 1/sqrt(D) into the weights of q; ours have none. */
    if (strcmp(kind->scheme->name, "t5") == 0) (*p)->config->scale = 1.0 / sqrt((double)group->d);
    return LOCUS_OK;
}

/* ---- useful flops ---- */

/* Distances delta = m - n that occur, and the pairs behind them. */
typedef struct reach {
    int64_t least, most;
    double queries, pairs;
} reach;

static reach reach_of(const bench_row *row)
{
    const int64_t n = row->input->group->n, half = (n + 1) / 2;
    const double whole = (double)n;
    switch (row->view) {
    case BENCH_CAUSAL: return (reach){0, n - 1, whole, whole * (whole + 1) / 2};
    case BENCH_PADDED: return (reach){1 - half, n - 1, whole, whole * (double)half};
    case BENCH_DECODE: return (reach){0, n - 1, 1, whole};
    default: return (reach){1 - n, n - 1, whole, whole * whole};
    }
}

static int64_t bounded(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* Row of a table with fewer rows than distances. */
static int64_t table_row(const locus_options *o, int clipped, int64_t delta)
{
    if (clipped) return bounded(-delta, -o->clip_left, o->clip_right);
    return bounded(locus_deberta_beta(delta, o->buckets, o->max_distance), -o->span, o->span - 1);
}

/* The rules are monotonous: a row is new where it differs from the one before. */
static double reachable_rows(const locus_options *o, int clipped, const reach *r)
{
    double rows = 1;
    for (int64_t delta = r->least + 1; delta <= r->most; delta++)
        rows += table_row(o, clipped, delta) != table_row(o, clipped, delta - 1);
    return rows;
}

static int has_option(const locus_scheme_info *scheme, const char *name)
{
    const locus_option_info *o;
    for (size_t i = 0; (o = locus_scheme_option(scheme, i)) != NULL; i++)
        if (strcmp(o->name, name) == 0) return 1;
    return 0;
}

/* Per head: 4 V d for the two products of plain attention, 10 V d backward (five). A
 * position product costs 2 forward and 6 backward (once more for the scores, one for each
 * factor's gradient), a value table 2 and 4; times V d, or times n R d where the table has
 * R reachable rows that are multiplied once per query or key. Backward with kept weights
 * multiplies nothing for the scores. A position query of F numbers costs F / d of its product. */
double bench_flops(const bench_row *row)
{
    const locus_scheme_info *scheme = row->input->kind->scheme;
    const int clipped = has_option(scheme, "clip_left");
    const reach r = reach_of(row);
    const uint32_t terms = scheme->terms;
    const locus_tensor *own = &row->in.pos_query;
    const double own_share =
        own->rank != 0 ? (double)own->shape[3] / (double)row->input->group->d : 1;
    const double products = ((terms & LOCUS_TERM_CONTENT_POSITION) != 0 ? own_share : 0) +
                            ((terms & LOCUS_TERM_POSITION_CONTENT) != 0) +
                            ((terms & LOCUS_TERM_POSITION_POSITION) != 0);
    const double values = (terms & LOCUS_TERM_VALUE) != 0;
    const double each = clipped || has_option(scheme, "span")
                            ? r.queries * reachable_rows(&row->config.options, clipped, &r)
                            : r.pairs;
    const double forward = 4 * r.pairs + (2 * products + 2 * values) * each;
    const double scores = row->view == BENCH_KEPT ? 0 : 2 * r.pairs + 2 * products * each;
    const double backward = scores + 8 * r.pairs + (4 * products + 4 * values) * each;
    const double flops = row->direction == BENCH_FORWARD    ? forward
                         : row->direction == BENCH_BACKWARD ? backward
                                                            : forward + backward;
    const bench_group *group = row->input->group;
    return flops * (double)(group->d * group->heads * group->batch);
}

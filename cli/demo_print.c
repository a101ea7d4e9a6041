/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "demo.h"
#include "json.h"
#include "machine.h"
#include "terms.h"
#include "text.h"

/* ---- the table ---- */

static void print_head(const demo *d)
{
    char machine[256];
    const locus_problem_request *s = &d->small, *l = &d->large;
    text_print(stdout, machine_text(machine, sizeof machine));
    printf(", instruction set %s, one thread\n", locus_isa_pick(NULL));
    printf("problems: \"");
    for (size_t i = 0; i < d->words; i++) printf("%s%s", i > 0 ? " " : "", d->sentence[i]);
    printf("\", %" PRId64 " heads of %" PRId64 "; random numbers, T = %" PRId64 ", %" PRId64
           " heads of %" PRId64 "\n",
           s->H, s->D, l->T, l->H, l->D);
    printf("errors: the worst of both against the oracle in double; learned numbers, time and "
           "memory: of T = %" PRId64 "\n\n",
           l->T);
    printf("%s%-20s  12345678  %7s  %9s  %9s  %7s  %7s  %9s  formula%s\n", text_bold(), "scheme",
           "learned", "out error", "gradients", "forward", "both", "extra KB", text_plain());
}

static void print_outcome(const demo *d, const demo_outcome *o)
{
    char marks[TERM_COUNT + 1];
    const char *colour = demo_exact(d, o) ? text_good() : text_bad();
    const demo_errors worst = demo_worst(o);
    const double extra = ((double)o->bytes - (double)o->plain_bytes) / 1e3;
    printf("%-20s  %s  %7" PRId64 "  %s%9.1e  %9.1e%s", o->scheme->name,
           terms_marks(marks, o->scheme->terms), o->parameters, colour, worst.outputs,
           worst.gradients, text_plain());
    if (demo_is_plain(o))
        printf("  %7s  %7s  %9s", "plain", "plain", "plain");
    else
        printf("  %6.2fx  %6.2fx  %+9.0f", o->pace.forward_ratio, o->pace.both_ratio, extra);
    printf("  %s%s\n", o->scheme->formula, o->level == LOCUS_LAYER ? "  (layer)" : "");
}

void demo_print_table(const demo *d, const char *page)
{
    print_head(d);
    for (size_t i = 0; i < d->count; i++) print_outcome(d, &d->outcomes[i]);
    const demo_outcome *plain = demo_find(d, "none");
    printf("\nforward, both (forward and backward): time as a multiple of plain attention\n"
           "extra KB: plan, workspace and kept results beyond the %.0f of plain attention; all "
           "scores at once would be %.0f\n"
           "(layer): the scheme acts on x; a whole layer is run, against a plain one\n",
           (double)plain->bytes / 1e3, (double)demo_score_bytes(d) / 1e3);
    terms_print_legend();
    if (page == NULL) return;
    printf("\npage: ");
    text_print(stdout, page);
    printf("\n");
}

/* ---- JSON ---- */

static void json_outcome(json *j, const demo *d, const demo_outcome *o)
{
    json_object(j, NULL);
    json_text(j, "name", o->scheme->name);
    json_text(j, "level", level_text(o->level));
    json_text(j, "formula", o->scheme->formula);
    terms_json(j, "terms", o->scheme->terms);
    json_integer(j, "parameters", o->parameters);
    json_real(j, "output_error", o->small.outputs);
    json_real(j, "gradient_error", o->small.gradients);
    json_real(j, "large_output_error", o->large.outputs);
    json_real(j, "large_gradient_error", o->large.gradients);
    json_boolean(j, "passed", demo_exact(d, o));
    json_real(j, "forward_seconds", o->pace.forward);
    json_real(j, "both_seconds", o->pace.both);
    if (demo_is_plain(o)) {
        json_null(j, "forward_against_plain");
        json_null(j, "both_against_plain");
    } else {
        json_real(j, "forward_against_plain", o->pace.forward_ratio);
        json_real(j, "both_against_plain", o->pace.both_ratio);
    }
    json_size(j, "bytes", o->bytes);
    json_size(j, "plain_bytes", o->plain_bytes);
    json_end(j);
}

static void json_request(json *j, const char *key, const locus_problem_request *r)
{
    json_inline_object(j, key);
    json_integer(j, "B", r->B);
    json_integer(j, "H", r->H);
    json_integer(j, "T", r->T);
    json_integer(j, "D", r->D);
    json_integer(j, "E", r->E);
    json_end(j);
}

void demo_print_json(const demo *d, const char *page)
{
    char machine[256];
    json j = {.out = stdout};
    json_object(&j, NULL);
    json_inline_array(&j, "sentence");
    for (size_t i = 0; i < d->words; i++) json_text(&j, NULL, d->sentence[i]);
    json_end(&j);
    json_request(&j, "judged_at", &d->small);
    json_request(&j, "timed_at", &d->large);
    json_text(&j, "machine", machine_text(machine, sizeof machine));
    json_text(&j, "isa", locus_isa_pick(NULL));
    json_size(&j, "threads", 1);
    json_real(&j, "output_tolerance", d->small_limit.outputs);
    json_real(&j, "gradient_tolerance", d->small_limit.gradients);
    json_real(&j, "large_output_tolerance", d->large_limit.outputs);
    json_real(&j, "large_gradient_tolerance", d->large_limit.gradients);
    json_text(&j, "page", page);
    json_array(&j, "schemes");
    for (size_t i = 0; i < d->count; i++) json_outcome(&j, d, &d->outcomes[i]);
    json_end(&j);
    json_end(&j);
}

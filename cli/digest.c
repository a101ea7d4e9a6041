/* SPDX-License-Identifier: Apache-2.0 */
#include "digest.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli.h"
#include "json.h"
#include "lab/digest.h"
#include "terms.h"
#include "trial.h"

/* Stored by tools/digests.py, for instruction sets with fused multiply-add and for portable C. */
typedef struct stored {
    const char *name;
    uint64_t fused, portable;
} stored;

static const stored stored_list[] = {
#define LOCUS_DIGEST(name, fused, portable) {name, fused, portable},
#include "digests.inc"
#undef LOCUS_DIGEST
};

/* Few rows over keys in place, edges of every tile, more keys than a panel; linear maps of more than one
 * chain of products. */
typedef struct shape {
    const char *name;
    uint32_t level;
    int64_t B, T, D, E;
    uint32_t causal;
} shape;

static const shape shapes[] = {
    {"attend", LOCUS_ATTEND, 2, 6, 40, 0, 0},
    {"attend", LOCUS_ATTEND, 2, 70, 24, 0, 0},
    {"attend", LOCUS_ATTEND, 1, 300, 64, 0, 1},
    {"layer", LOCUS_LAYER, 1, 70, 160, 320, 0},
};

typedef struct digest {
    uint64_t hash;
} digest;

typedef struct digest_state {
    int fused;
    size_t count, wrong;
    json j;
    int as_json;
} digest_state;

/* FNV-1a over words of 32 bits; a NaN counts as any other, for processors differ in their bits. */
static void add_numbers(void *context, const float *numbers, int64_t count)
{
    digest *d = context;
    for (int64_t i = 0; i < count; i++) {
        uint32_t word = 0x7FC00000u;
        if (!isnan(numbers[i])) memcpy(&word, &numbers[i], sizeof word);
        d->hash = (d->hash ^ word) * 0x100000001B3u;
    }
}

static const digest digest_begin = {0xCBF29CE484222325u};

static void add_tensor(digest *d, const locus_tensor *t)
{
    if (t->rank != 0 && t->dtype == LOCUS_F32) add_numbers(d, t->data, locus_tensor_elements(t));
}

static void say(digest_state *s, const char *name, digest d)
{
    const char *verdict = "not stored";
    for (size_t i = 0; i < sizeof stored_list / sizeof *stored_list; i++)
        if (strcmp(stored_list[i].name, name) == 0)
            verdict = d.hash == (s->fused ? stored_list[i].fused : stored_list[i].portable)
                          ? "as stored"
                          : "differs";
    s->count++;
    s->wrong += strcmp(verdict, "as stored") != 0;
    if (!s->as_json) {
        printf("%-32s %016" PRIx64 "  %s\n", name, d.hash, verdict);
        return;
    }
    char text[24];
    snprintf(text, sizeof text, "%016" PRIx64, d.hash);
    json_inline_object(&s->j, NULL);
    json_text(&s->j, "name", name);
    json_text(&s->j, "digest", text);
    json_text(&s->j, "verdict", verdict);
    json_end(&s->j);
}

/* Results and gradients of one scheme at one shape. */
static locus_status digest_shape(digest_state *s, const char *scheme, const shape *at,
                                 locus_error *error)
{
    static trial t;
    locus_problem *problem = NULL;
    const locus_problem_request request = {.size = sizeof request,
                                           .level = at->level,
                                           .scheme = scheme,
                                           .B = at->B,
                                           .H = 2,
                                           .T = at->T,
                                           .D = at->D,
                                           .E = at->E,
                                           .causal = at->causal,
                                           .seed = 2026};
    locus_status status = locus_problem_new(&problem, &request, error);
    if (status != LOCUS_OK) return status;
    status = trial_new(&t, problem, error);
    if (status == LOCUS_OK) {
        status = trial_forward(&t, error);
        if (status == LOCUS_OK) status = trial_backward(&t, error);
        digest d = digest_begin;
        add_tensor(&d, &t.results.out);
        add_tensor(&d, &t.results.lse);
        for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++)
            add_tensor(&d, locus_tensor_at_const(&t.grad, i));
        char name[64];
        snprintf(name, sizeof name, "%s/%s/%" PRId64, at->name, scheme, at->T);
        if (status == LOCUS_OK) say(s, name, d);
        trial_free(&t);
    }
    locus_problem_free(problem);
    return status;
}

static locus_status digest_training(digest_state *s, const char *scheme, locus_error *error)
{
    digest d = digest_begin;
    char name[64];
    snprintf(name, sizeof name, "training/%s", scheme);
    const locus_status status = lab_digest(scheme, add_numbers, &d, error);
    if (status == LOCUS_OK) say(s, name, d);
    return status;
}

static int digest_all(digest_state *s)
{
    static const char *const trained[] = {"none", "t5", "shaw", "deberta", "rope"};
    for (size_t i = 0; i < locus_scheme_count(); i++) {
        const locus_scheme_info *scheme = locus_scheme_at(i);
        for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
            locus_error error = {""};
            if (shapes[k].level < scheme_level(scheme)) continue;
            const locus_status status = digest_shape(s, scheme->name, &shapes[k], &error);
            if (status != LOCUS_OK) return cli_report("demo", status, scheme->name, &error);
        }
    }
    for (size_t i = 0; i < sizeof trained / sizeof *trained; i++) {
        locus_error error = {""};
        const locus_status status = digest_training(s, trained[i], &error);
        if (status != LOCUS_OK) return cli_report("demo", status, trained[i], &error);
    }
    return CLI_DONE;
}

int digest_run(int as_json)
{
    const char *isa = locus_isa_pick(NULL);
    digest_state s = {.fused = strcmp(isa, "generic") != 0,
                      .j = {.out = stdout},
                      .as_json = as_json};
    if (as_json) {
        json_object(&s.j, NULL);
        json_text(&s.j, "isa", isa);
        json_array(&s.j, "digests");
    }
    const int exit_code = digest_all(&s);
    if (as_json) {
        json_end(&s.j);
        json_end(&s.j);
    }
    if (exit_code != CLI_DONE) return exit_code;
    if (!as_json)
        printf("%zu digests on instruction set %s: %zu as stored\n", s.count, isa,
               s.count - s.wrong);
    if (s.wrong == 0) return CLI_DONE;
    return cli_complain("demo", CLI_DIFFERENT, "%zu of %zu digests are not those stored", s.wrong,
                        s.count);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* locus attend: run the call that a case file describes. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "attend.h"
#include "commands.h"
#include "text.h"

/* ---- gathering ---- */

static double value_at(const locus_tensor *tensor, int64_t index)
{
    int64_t offset = 0;
    for (uint32_t axis = tensor->rank; axis-- > 0; index /= tensor->shape[axis])
        offset += index % tensor->shape[axis] * tensor->stride[axis];
    if (tensor->dtype == LOCUS_F64) return ((const double *)tensor->data)[offset];
    return (double)((const float *)tensor->data)[offset];
}

static void summarise(attend_summary *s, const char *name, const locus_tensor *tensor)
{
    s->name = name;
    s->rank = tensor->rank;
    for (size_t i = 0; i < s->rank; i++) s->shape[i] = (uint64_t)tensor->shape[i];
    s->minimum = HUGE_VAL;
    s->maximum = -HUGE_VAL;
    const int64_t elements = locus_tensor_elements(tensor);
    for (int64_t i = 0; i < elements; i++) {
        const double value = value_at(tensor, i);
        s->nan += isnan(value) ? 1 : 0;
        if (value < s->minimum) s->minimum = value;
        if (value > s->maximum) s->maximum = value;
    }
    s->values = (uint64_t)elements;
    s->bytes = s->values * (tensor->dtype == LOCUS_F64 ? sizeof(double) : sizeof(float));
    if (s->values == s->nan) s->minimum = s->maximum = NAN;
}

static locus_status compare(attend_report *r, size_t index, locus_error *error)
{
    locus_case_difference *d = &r->results[index].difference;
    d->size = sizeof *d;
    const locus_status status = locus_case_compare(r->loaded, index, d, error);
    if (status != LOCUS_OK || !d->expected) return status;
    if (r->values->tolerance > 0) {
        d->tolerance = r->values->tolerance;
        d->passed = d->worst <= d->tolerance; /* not so for NaN */
    }
    r->expected++;
    r->failed += d->passed ? 0 : 1;
    return LOCUS_OK;
}

static locus_status gather(attend_report *r, locus_error *error)
{
    r->count = locus_case_result_count(r->loaded);
    r->results = calloc(r->count > 0 ? r->count : 1, sizeof *r->results);
    if (r->results == NULL) return LOCUS_ERR_MEMORY;
    for (size_t i = 0; i < r->count; i++) {
        summarise(&r->results[i], locus_case_result_name(r->loaded, i),
                  locus_case_result(r->loaded, i));
        if (!r->values->check) continue;
        const locus_status status = compare(r, i, error);
        if (status != LOCUS_OK) return status;
    }
    return LOCUS_OK;
}

/* ---- the command ---- */

static int verdict(const attend_report *r)
{
    char quoted[512];
    text_quote(quoted, sizeof quoted, r->values->path);
    if (!r->values->check) return CLI_DONE;
    if (r->expected == 0)
        return cli_complain("attend", CLI_DIFFERENT,
                            "%s: nothing to check: the file holds no \"want.\" tensor", quoted);
    if (r->failed > 0)
        return cli_complain("attend", CLI_DIFFERENT, "%s: %zu of %zu tensors differ too much",
                            quoted, r->failed, r->expected);
    return CLI_DONE;
}

static int run_case(const attend_values *values, locus_case *loaded)
{
    attend_report r = {.values = values, .loaded = loaded};
    locus_error error = {""};
    const locus_case_run_options options = {.size = sizeof options,
                                            .oracle = values->oracle ? 1 : 0,
                                            .threads = values->threads,
                                            .isa = values->isa};
    locus_status status = locus_file_open(&r.file, values->path, NULL, &error);
    if (status == LOCUS_OK) status = locus_case_run(loaded, &options, &error);
    if (status == LOCUS_OK) status = gather(&r, &error);
    int exit_code =
        status == LOCUS_OK ? CLI_DONE : cli_report("attend", status, values->path, &error);
    if (status == LOCUS_OK && values->output != NULL) {
        status = locus_case_save(loaded, values->output, &error);
        if (status != LOCUS_OK) exit_code = cli_report("attend", status, values->output, &error);
    }
    if (status == LOCUS_OK) {
        if (values->json)
            attend_print_json(&r);
        else
            attend_print_text(&r);
        exit_code = verdict(&r);
    }
    free(r.results);
    locus_file_close(r.file);
    return exit_code;
}

static int unknown_isa(const char *name)
{
    const char *names[16];
    char quoted[160], known[160] = "";
    size_t count = 0, used = 0;
    for (; locus_isa_name(count) != NULL && count < 16 && used < sizeof known; count++) {
        names[count] = locus_isa_name(count);
        used += (size_t)snprintf(known + used, sizeof known - used, " %s", names[count]);
    }
    const char *near = locus_nearest(name, names, count);
    text_quote(quoted, sizeof quoted, name);
    if (near != NULL)
        return cli_complain("attend", CLI_USAGE,
                            "--isa: unknown instruction set \"%s\"; did you mean \"%s\"?", quoted,
                            near);
    return cli_complain("attend", CLI_USAGE,
                        "--isa: unknown instruction set \"%s\"; this build has:%s", quoted, known);
}

static int check_isa(const char *name)
{
    size_t i = 0;
    while (name != NULL && locus_isa_name(i) != NULL && strcmp(locus_isa_name(i), name) != 0) i++;
    if (name != NULL && locus_isa_name(i) == NULL) return unknown_isa(name);
    if (name != NULL && !locus_isa_available(name))
        return cli_complain("attend", CLI_USAGE, "--isa: this machine has no %s", name);
    if (locus_isa_pick(name) == NULL)
        return cli_complain("attend", CLI_USAGE, "LOCUS_ISA does not name an instruction set");
    return CLI_DONE;
}

static int attend_run(int argc, char **argv)
{
    attend_values values = {.path = NULL};
    locus_case *loaded = NULL;
    locus_error error = {""};
    int exit_code = CLI_DONE;
    if (!cli_parse(&cmd_attend, argc, argv, &values, &exit_code)) return exit_code;
    if (values.tolerance > 0 && !values.check)
        return cli_complain("attend", CLI_USAGE, "--tolerance means nothing without --check");
    exit_code = check_isa(values.isa);
    if (exit_code != CLI_DONE) return exit_code;
    const locus_status status = locus_case_load(&loaded, values.path, NULL, &error);
    if (status != LOCUS_OK) return cli_report("attend", status, values.path, &error);
    exit_code = run_case(&values, loaded);
    locus_case_free(loaded);
    return exit_code;
}

static const cli_example attend_examples[] = {
    {"locus attend case.safetensors", "run a case: what the file holds, what comes of it"},
    {"locus attend case.safetensors -o out.safetensors", "write out, lse and gradients"},
    {"locus attend case.safetensors --check", "compare with the want. tensors in the file"},
    {"locus attend case.safetensors --check --oracle", "the same in double precision"},
    {NULL, NULL},
};

static const cli_option attend_options[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "OUT",
     .help = "write the results there, replacing what was there",
     .kind = CLI_OUTPUT,
     .offset = offsetof(attend_values, output)},
    {.name = "check",
     .help = "compare with the want. tensors of the file; exit 1 if one differs",
     .kind = CLI_FLAG,
     .offset = offsetof(attend_values, check)},
    {.name = "tolerance",
     .argument = "X",
     .help = "with --check: allow this instead of 5e-6 (out, lse) and 2e-5 (gradients)",
     .kind = CLI_REAL,
     .offset = offsetof(attend_values, tolerance)},
    {.name = "oracle",
     .help = "take the slow path in double precision; results are F64",
     .kind = CLI_FLAG,
     .offset = offsetof(attend_values, oracle)},
    {.name = "isa",
     .argument = "NAME",
     .help = "use at most this instruction set; \"locus --version\" lists them",
     .kind = CLI_ISA,
     .offset = offsetof(attend_values, isa)},
    {.name = "threads",
     .argument = "N",
     .help = "use N threads, 1 to 1024",
     .kind = CLI_INTEGER,
     .minimum = 1,
     .maximum = 1024,
     .offset = offsetof(attend_values, threads)},
    {.name = "json",
     .help = "print the summary as JSON",
     .kind = CLI_FLAG,
     .offset = offsetof(attend_values, json)},
    {.name = NULL},
};

const cli_command cmd_attend = {
    .name = "attend",
    .summary = "run the attention call of a case file",
    .description =
        "Reads one attention call (docs/formats.md) from a safetensors file, runs it and sums up "
        "its results: out, lse and, where the case asks for them, gradients. Alone it also tells "
        "what the file holds; --output keeps the results, --check compares them. "
        "Errors are relative to the largest expected value of a tensor where that is "
        "above 1.",
    .usage = "CASE [-o OUT] [--check] [options]",
    .examples = attend_examples,
    .options = attend_options,
    .operand = {.name = "CASE",
                .help = "a case file",
                .kind = CLI_INPUT,
                .required = 1,
                .offset = offsetof(attend_values, path)},
    .run = attend_run,
};

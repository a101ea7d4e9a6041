/* SPDX-License-Identifier: Apache-2.0 */
/* locus lab report, show and export: what a comparison says and holds, without training. */
#include <stdio.h>
#include <string.h>

#include "lab.h"
#include "lab/report.h"
#include "page.h"

static int one_folder(const lab_values *values, const char **folder)
{
    if (values->folders.count == 0) return lab_missing("DIR");
    if (values->folders.count > 1)
        return cli_complain("lab", CLI_USAGE, "found %zu folders, expected one",
                            values->folders.count);
    *folder = values->folders.text[0];
    return CLI_DONE;
}

int lab_write_report(const char *folder)
{
    const lab_report_options options = {.style = page_style};
    locus_error error = {""};
    const locus_status status = lab_report(folder, &options, &error);
    if (status != LOCUS_OK) return lab_failed(status, &error);
    printf("report: %s/report.html\nnumbers: %s/results.csv, %s/scoreboard.json, %s/figures\n",
           folder, folder, folder, folder);
    return CLI_DONE;
}

int lab_report_action(const lab_values *values)
{
    const char *folder = NULL;
    const int exit_code = one_folder(values, &folder);
    return exit_code == CLI_DONE ? lab_write_report(folder) : exit_code;
}

int lab_show_action(const lab_values *values)
{
    locus_error error = {""};
    locus_text text = {.data = NULL};
    const char *folder = NULL;
    const int exit_code = one_folder(values, &folder);
    if (exit_code != CLI_DONE) return exit_code;
    const locus_status status = lab_show(folder, &text, &error);
    if (status == LOCUS_OK) fputs(text.data, stdout);
    locus_text_free(&text);
    return status == LOCUS_OK ? CLI_DONE : lab_failed(status, &error);
}

int lab_export_action(const lab_values *values)
{
    locus_error error = {""};
    const char *folder = NULL;
    int count = 0;
    const int half = values->dtype != NULL && strcmp(values->dtype, "f16") == 0;
    const int exit_code = one_folder(values, &folder);
    if (exit_code != CLI_DONE) return exit_code;
    if (values->output == NULL) return lab_missing("-o DIR");
    if (values->dtype != NULL && !half && strcmp(values->dtype, "f32") != 0)
        return cli_complain("lab", CLI_USAGE, "--dtype: expected f32 or f16");
    const locus_status status =
        lab_export(folder, values->task, values->output, half, &count, &error);
    if (status != LOCUS_OK) return lab_failed(status, &error);
    printf("%d %s: %s\n", count, count == 1 ? "model" : "models", values->output);
    return CLI_DONE;
}

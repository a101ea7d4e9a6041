/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/report.h"

#include "core/error.h"
#include "lab/results.h"
#include "lab/scoreboard.h"

static locus_status write_numbers(const lab_results *r, const lab_claim *claims, locus_error *error)
{
    locus_text csv = {0}, json = {0};
    lab_results_csv(r, &csv);
    lab_scoreboard_json(claims, &json);
    locus_status status = lab_file_write(r->folder, "results.csv", &csv, error);
    if (status == LOCUS_OK) status = lab_file_write(r->folder, "scoreboard.json", &json, error);
    locus_text_free(&csv);
    locus_text_free(&json);
    return status;
}

locus_status lab_report(const char *dir, const lab_report_options *options, locus_error *error)
{
    lab_results results;
    lab_claim claims[LAB_CLAIMS];
    (void)options;
    LOCUS_TRY(lab_results_read(&results, dir, error));
    lab_scoreboard(claims, &results);
    const locus_status status = write_numbers(&results, claims, error);
    lab_results_free(&results);
    return status;
}

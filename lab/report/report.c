/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/report.h"

#include "core/error.h"
#include "lab/report/sheet.h"

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

static locus_status write_page(lab_sheet *sheet)
{
    sheet->html.to = &sheet->text;
    sheet_head(sheet);
    sheet_answer(sheet);
    sheet_lengths(sheet);
    sheet_texts(sheet);
    sheet_masked(sheet);
    sheet_lookback(sheet);
    sheet_controls(sheet);
    sheet_learning(sheet);
    sheet_learned(sheet);
    sheet_variants(sheet);
    sheet_cost(sheet);
    sheet_scoreboard(sheet);
    sheet_ranks(sheet);
    sheet_seeds(sheet);
    sheet_machine(sheet);
    sheet_foot(sheet);
    if (sheet->status != LOCUS_OK) return sheet->status;
    if (sheet->html.failed)
        return locus_fail(sheet->error, LOCUS_ERR_MEMORY, "no memory for the page");
    return lab_file_write(sheet->results->folder, "report.html", &sheet->text, sheet->error);
}

locus_status lab_report(const char *dir, const lab_report_options *options, locus_error *error)
{
    lab_results results;
    lab_claim claims[LAB_CLAIMS];
    LOCUS_TRY(lab_results_read(&results, dir, error));
    lab_scoreboard(claims, &results);
    lab_ranks *ranks = lab_ranks_new(&results);
    lab_sheet sheet = {
        .results = &results, .claims = claims, .ranks = ranks, .options = options, .error = error};
    locus_status status = write_numbers(&results, claims, error);
    if (status == LOCUS_OK) status = write_page(&sheet);
    locus_text_free(&sheet.text);
    lab_ranks_free(ranks);
    lab_results_free(&results);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons that are refused, each with one line that names the file. */
#define _XOPEN_SOURCE 700
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lab/report.h"
#include "lab/results.h"
#include "support/check.h"

static char root[] = "/tmp/locus-report-XXXXXX";

/* ---- folders and files below the root ---- */

static int remove_entry(const char *path, const struct stat *found, int kind, struct FTW *walk)
{
    (void)found, (void)kind, (void)walk;
    return remove(path);
}

static void clear(void)
{
    nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    mkdir(root, 0777);
}

static void make_folder(const char *name)
{
    char path[2 * LAB_PATH];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
    if (mkdir(path, 0777) != 0) perror(path);
}

static FILE *make_file(const char *name)
{
    char path[2 * LAB_PATH];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "wb");
    if (file == NULL) abort();
    return file;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = make_file(name);
    fputs(text, file);
    fclose(file);
}

#define RUN "runs/copy/t5/seed1"
#define TABLE "length,metric,value\n"

/* A run with this metrics.csv; the root holds nothing else. */
static void make_run(const char *table)
{
    clear();
    make_folder(RUN);
    write_file(RUN "/run.json", "{\"length\": 16, \"steps\": 3}");
    write_file(RUN "/log.jsonl", "{\"step\":1,\"loss\":3.5,\"seconds\":0.1}\n");
    if (table != NULL) write_file(RUN "/metrics.csv", table);
}

static void refuses(const char *said)
{
    locus_error error = {""};
    CHECK(lab_report(root, NULL, &error) != LOCUS_OK, "taken");
    CHECK(strstr(error.text, said) != NULL, "says \"%s\", expected \"%s\"", error.text, said);
    CHECK(strncmp(error.text, root, strlen(root)) == 0, "does not name the file: %s", error.text);
}

static void takes(void)
{
    locus_error error = {""};
    CHECK(lab_report(root, NULL, &error) == LOCUS_OK, "refused: %s", error.text);
}

/* ---- rules ---- */

static void check_table(const char *name, const char *table, const char *said)
{
    if (!check_begin("report/refused/table/%s", name)) return;
    make_run(table);
    refuses(said);
}

static void check_log(const char *name, const char *log, const char *said)
{
    if (!check_begin("report/log/%s", name)) return;
    make_run(TABLE "16,em,1\n");
    write_file(RUN "/log.jsonl", log);
    if (said != NULL)
        refuses(said);
    else
        takes();
}

static void test_rules(void)
{
    if (check_begin("report/taken")) {
        make_run(TABLE "16,em,0.5\n,steps_to_99,undefined\n");
        takes();
    }
    if (check_begin("report/taken/unfinished")) {
        make_run(NULL);
        takes();
    }
    if (check_begin("report/taken/nothing written yet")) {
        clear();
        make_folder(RUN);
        takes();
    }
    if (check_begin("report/refused/no runs")) {
        clear();
        refuses("found no runs");
    }
    check_table("header", "length;metric;value\n", "line 1: expected");
    check_table("empty", "", "is empty");
    check_table("fields", TABLE "16,em\n", "line 2: expected a length");
    check_table("more fields", TABLE "16,em,1,2\n", "line 2: expected a length");
    check_table("length", TABLE "-4,em,1\n", "line 2: expected a length");
    check_table("metric", TABLE "4,<script>,1\n", "line 2: expected a length");
    check_table("number", TABLE "4,em,nan\n", "line 2: expected a length");
    check_table("twice", TABLE "4,em,1\n4,em,1\n", "found em at length 4 twice");
    check_log("end", "{\"step\":1,\"loss\":3.5}\n{\"step\":2,\"lo", NULL);
    check_log("other keys", "{\"step\": 1, \"note\": \"a, \\\"b\\\"}\", \"ok\": true}\n", NULL);
    check_log("no step", "{\"loss\":3.5}\n", "log.jsonl: line 1");
    check_log("no object", "{\"step\":1}\n[1]\n", "log.jsonl: line 2");
    check_log("infinite", "{\"step\":1,\"loss\":Infinity}\n", "log.jsonl: line 1");
    static const char *const folders[][2] = {{"runs/dance", "not a task"},
                                             {"runs/copy/t6", "not a scheme"},
                                             {"runs/copy/t5+", "not a scheme"},
                                             {"runs/copy/t5/seed01", "not seedN"},
                                             {"runs/copy/t5/seed99999999999", "not seedN"}};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        if (!check_begin("report/refused/%s", folders[i][0])) continue;
        clear();
        make_folder(folders[i][0]);
        refuses(folders[i][1]);
    }
}

/* ---- limits ---- */

/* Runs of `name` from 0 to below `count`, nothing in them. */
static void make_folders(const char *name, int count)
{
    char path[LAB_PATH];
    clear();
    make_folder("runs");
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s%d", name, i);
        make_folder(path);
    }
}

static void test_folders(void)
{
    if (check_begin("report/LAB_FOLDER_ENTRIES")) {
        make_folders("runs/x", LAB_FOLDER_ENTRIES + 1);
        refuses("found more than 4096 entries");
    }
    if (check_begin("report/LAB_RUNS")) {
        make_folders("runs/copy/t5/seed", LAB_RUNS);
        takes();
        make_folder("runs/copy/t5+clip2/seed1");
        refuses("found more than 4096 runs");
    }
    if (check_begin("report/LAB_NAME")) {
        char name[LAB_NAME + 64];
        for (int over = 0; over < 2; over++) { /* t5+000...: LAB_NAME - 1 bytes, then one more */
            snprintf(name, sizeof name, "runs/copy/t5+%0*d/seed1", LAB_NAME - 4 + over, 0);
            clear();
            make_folder(name);
            if (over)
                refuses("not a scheme");
            else
                takes();
        }
    }
    if (check_begin("report/LAB_PATH")) {
        char folder[LAB_PATH + 1];
        locus_error error = {""};
        memset(folder, 'x', LAB_PATH);
        folder[LAB_PATH] = '\0';
        CHECK(lab_report(folder, NULL, &error) == LOCUS_ERR_ARGUMENT, "taken");
        folder[LAB_PATH - 1] = '\0'; /* one byte less and it is the folders in it */
        CHECK(lab_report(folder, NULL, &error) == LOCUS_ERR_ARGUMENT, "taken");
    }
}

static void check_bytes(const char *name, const char *file, long bytes)
{
    char path[LAB_PATH];
    if (!check_begin("report/%s", name)) return;
    make_run(TABLE "16,em,1\n");
    snprintf(path, sizeof path, "%s/%s", root, file);
    if (truncate(path, bytes + 1) != 0)
        check_skip("no room for a file with a hole");
    else
        refuses("bytes, expected at most");
}

static void test_tables(void)
{
    check_bytes("LAB_LOG_BYTES", RUN "/log.jsonl", LAB_LOG_BYTES);
    check_bytes("LAB_TABLE_BYTES", RUN "/metrics.csv", LAB_TABLE_BYTES);
    check_bytes("RECORD_BYTES", RUN "/run.json", 1 << 20);
    for (int over = 0; over < 2; over++) {
        if (check_begin("report/LAB_METRICS/%d", over)) {
            /* Three are derived: bpc_ratio, steps_to_learned, mean_reciprocal_rank. */
            make_run(TABLE);
            FILE *file = make_file(RUN "/metrics.csv");
            fputs(TABLE, file);
            for (int i = 0; i < LAB_METRICS + over; i++) fprintf(file, "16,m%d,1\n", i);
            fclose(file);
            if (over)
                refuses("found more than 8192 metrics");
            else
                takes();
        }
        if (check_begin("report/RECORD_SETTINGS/%d", over)) {
            make_run(NULL);
            FILE *file = make_file(RUN "/run.json");
            for (int i = 0; i < 4096 + over; i++) fprintf(file, "%s\"s%d\": 1", i ? "," : "{", i);
            fputs("}", file);
            fclose(file);
            if (over)
                refuses("found more than 4096 settings");
            else
                takes();
        }
        if (check_begin("report/NAME_TEXT/%d", over)) {
            make_run(NULL);
            FILE *file = make_file(RUN "/run.json");
            fprintf(file, "{\"%0*d\": 1}", 255 + over, 0);
            fclose(file);
            if (over)
                refuses("a name is too long");
            else
                takes();
        }
    }
    if (check_begin("report/LAB_VALUES")) {
        make_run(TABLE);
        FILE *file = make_file(RUN "/metrics.csv");
        fputs(TABLE, file);
        for (int i = 0; i < LAB_VALUES + 1; i++) fprintf(file, "%d,m,1\n", i);
        fclose(file);
        refuses("found more than 1048576 numbers");
    }
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    if (mkdtemp(root) == NULL) return 2;
    test_rules();
    test_folders();
    test_tables();
    nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    return check_finish("report-limits");
}

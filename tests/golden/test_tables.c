/* SPDX-License-Identifier: Apache-2.0 */

/* The bucket rules and sinusoid tables against those of published implementations
 * (tests/data/tables, made by the stock code; PROVENANCE.md says which). */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <locus/scheme.h>
#include <locus/tensorfile.h>

#include "golden/folder.h"
#include "support/check.h"

static locus_file *open_table(const char *name)
{
    char path[GOLDEN_PATH];
    locus_file *file = NULL;
    locus_error error = {""};
    snprintf(path, sizeof path, "%s/%s.safetensors", LOCUS_TEST_SOURCE_DIR "/tests/data/tables",
             name);
    const int opened = locus_file_open(&file, path, NULL, &error) == LOCUS_OK;
    CHECK(opened, "%s: %s", path, error.text);
    return opened ? file : NULL;
}

/* The numbers of one tensor, 8 bytes each; the caller frees them. */
static void *read_numbers(const locus_file *file, const char *name, const char *dtype,
                          uint64_t *count)
{
    const locus_file_tensor *tensor = locus_file_find(file, name);
    locus_error error = {""};
    *count = 0;
    if (!CHECK(tensor != NULL && strcmp(tensor->dtype, dtype) == 0, "no %s tensor %s", dtype, name))
        return NULL;
    size_t index = 0;
    while (locus_file_tensor_at(file, index) != tensor) index++;
    const uint64_t bytes = tensor->end - tensor->begin;
    void *numbers = malloc((size_t)bytes + 1);
    const int good =
        numbers != NULL && locus_file_read(file, index, 0, bytes, numbers, &error) == 0;
    if (CHECK(good, "%s: %s", name, error.text)) {
        *count = bytes / 8;
        return numbers;
    }
    free(numbers);
    return NULL;
}

/* ---- integer tables: one value per entry of `axis` ---- */

typedef int64_t (*integer_rule)(int64_t x, int64_t buckets, int64_t max_distance, int choice);

static int64_t deberta_beta(int64_t x, int64_t buckets, int64_t max_distance, int choice)
{
    const int64_t beta = locus_deberta_beta(x, buckets, max_distance);
    if (choice == 0) return beta;
    const int64_t row = beta + buckets;
    return row < 0 ? 0 : row > 2 * buckets - 1 ? 2 * buckets - 1 : row;
}

static void check_integers(const char *file_name, const char *axis_name, const char *name,
                           integer_rule rule, int64_t buckets, int64_t max_distance, int choice)
{
    if (!check_begin("golden/tables/%s/%s", file_name, name)) return;
    locus_file *file = open_table(file_name);
    if (file == NULL) return;
    uint64_t count, values;
    int64_t *axis = read_numbers(file, axis_name, "I64", &count);
    int64_t *want = read_numbers(file, name, "I64", &values);
    CHECK(count > 0 && values == count, "%" PRIu64 " places, %" PRIu64 " values", count, values);
    for (uint64_t i = 0; i < count && i < values; i++) {
        const int64_t got = rule(axis[i], buckets, max_distance, choice);
        CHECK(got == want[i], "at %" PRId64 ": found %" PRId64 ", expected %" PRId64, axis[i], got,
              want[i]);
    }
    free(axis);
    free(want);
    locus_file_close(file);
}

/* ---- sinusoids ---- */

static void check_sinusoid(const char *file_name, int64_t table, int64_t width)
{
    char name[32];
    if (!check_begin("golden/tables/%s/width_%" PRId64, file_name, width)) return;
    locus_file *file = open_table(file_name);
    if (file == NULL) return;
    uint64_t rows, values;
    snprintf(name, sizeof name, "width_%" PRId64, width);
    int64_t *positions = read_numbers(file, "positions", "I64", &rows);
    double *want = read_numbers(file, name, "F64", &values);
    double *got = malloc((size_t)width * sizeof *got);
    CHECK(rows > 0 && values == rows * (uint64_t)width, "%" PRIu64 " values", values);
    for (uint64_t r = 0; got != NULL && r < rows && values == rows * (uint64_t)width; r++) {
        locus_sinusoid(table, width, positions[r], got);
        for (int64_t e = 0; e < width; e++) {
            const double expected = want[r * (uint64_t)width + (uint64_t)e];
            CHECK(fabs(got[e] - expected) <= 1e-11,
                  "position %" PRId64 " column %" PRId64 ": found %.17g, expected %.17g",
                  positions[r], e, got[e], expected);
        }
    }
    free(got);
    free(want);
    free(positions);
    locus_file_close(file);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    check_integers("t5_buckets", "rho", "buckets_32_128_bidirectional", locus_t5_bucket, 32, 128,
                   1);
    check_integers("t5_buckets", "rho", "buckets_32_128_causal", locus_t5_bucket, 32, 128, 0);
    check_integers("t5_buckets", "rho", "buckets_16_40_bidirectional", locus_t5_bucket, 16, 40, 1);
    check_integers("t5_buckets", "rho", "buckets_320_800_bidirectional", locus_t5_bucket, 320, 800,
                   1);
    check_integers("deberta_buckets", "delta", "beta_256_512", deberta_beta, 256, 512, 0);
    check_integers("deberta_buckets", "delta", "beta_32_128", deberta_beta, 32, 128, 0);
    check_integers("deberta_buckets", "delta", "row_256_512", deberta_beta, 256, 512, 1);
    check_integers("deberta_buckets", "delta", "row_32_128", deberta_beta, 32, 128, 1);
    static const int64_t widths[] = {8, 9, 64, 512};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        check_sinusoid("sinusoid_paper", LOCUS_TABLE_PAPER, widths[i]);
        check_sinusoid("sinusoid_t2t", LOCUS_TABLE_T2T, widths[i]);
        check_sinusoid("sinusoid_half", LOCUS_TABLE_HALF, widths[i]);
    }
    return check_finish("golden/tables");
}

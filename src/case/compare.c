/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "case/case.h"
#include "core/adopt.h"
#include "core/error.h"
#include "core/tensor.h"

/* Where a file does not say; the reasons stand in docs/formats.md. */
static const double value_tolerance = 5e-6, gradient_tolerance = 2e-5;

/* Largest |got - want| so far, NaN once the two were of different kinds, the largest finite
 * |want|, and how many of those are NaN. */
typedef struct comparison {
    double distance, size;
    uint64_t nan;
} comparison;

static void compare_numbers(comparison *c, double got, double want)
{
    if (isfinite(want) && fabs(want) > c->size) c->size = fabs(want);
    c->nan += isnan(want) ? 1 : 0;
    if (got == want || (isnan(got) && isnan(want))) return; /* equal infinities too */
    const double distance = isfinite(got) && isfinite(want) ? fabs(got - want) : (double)NAN;
    if (isnan(distance) || distance > c->distance) /* nothing is above a NaN: it stays */
        c->distance = distance;
}

/* Expected values come from the file in pieces: no memory of the size of a tensor. */
enum { PIECE = 1024 };

static locus_status compare_data(const locus_case *c, const case_result *r, size_t number,
                                 comparison *result, locus_error *error)
{
    const locus_file_tensor *want = locus_file_tensor_at(c->file, number);
    const uint64_t word = want->bits / 8, elements = (uint64_t)locus_tensor_elements(&r->tensor);
    union {
        float f32[PIECE];
        double f64[PIECE];
    } piece;
    for (uint64_t first = 0; first < elements; first += PIECE) {
        const uint64_t count = elements - first < PIECE ? elements - first : PIECE;
        LOCUS_TRY(locus_file_read(c->file, number, first * word, count * word, &piece, error));
        locus_case_to_native(&piece, (size_t)(count * word), (size_t)word);
        for (uint64_t i = 0; i < count; i++) {
            const double got = r->tensor.dtype == LOCUS_F64
                                   ? ((const double *)r->tensor.data)[first + i]
                                   : (double)((const float *)r->tensor.data)[first + i];
            compare_numbers(result, got,
                            word == sizeof(double) ? piece.f64[i] : (double)piece.f32[i]);
        }
    }
    return LOCUS_OK;
}

static locus_status check_shape(const locus_case *c, const case_result *r, size_t number,
                                locus_error *error)
{
    const locus_file_tensor *want = locus_file_tensor_at(c->file, number);
    int64_t shape[LOCUS_MAX_RANK];
    int same = want->rank == r->tensor.rank;
    for (uint32_t i = 0; i < want->rank; i++) {
        shape[i] = (int64_t)want->shape[i];
        same = same && shape[i] == r->tensor.shape[i];
    }
    if (same) return LOCUS_OK;
    char found[CASE_SHAPE_TEXT], expected[CASE_SHAPE_TEXT];
    locus_fail(error, LOCUS_ERR_TENSOR, "tensor want.%s: found shape %s, expected %s", r->name,
               locus_case_shape_text(want->rank, shape, found),
               locus_case_shape_text(r->tensor.rank, r->tensor.shape, expected));
    return locus_case_fail_in(c, LOCUS_ERR_TENSOR, error);
}

static double tolerance_of(const locus_case *c, const case_result *r)
{
    const int value = r->slot < CASE_GRADS;
    const double said = value ? c->tolerance : c->gradient_tolerance;
    const double usual = value ? value_tolerance : gradient_tolerance;
    return said > 0.0 ? said : usual;
}

locus_status locus_case_compare(const locus_case *c, size_t index,
                                locus_case_difference *difference, locus_error *error)
{
    if (c == NULL || difference == NULL || index >= c->results.count)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "compare: no such result");
    locus_case_difference own = {.size = 0};
    LOCUS_TRY(locus_adopt(&own, sizeof own, difference, "difference", error));
    const case_result *r = &c->results.list[index];
    const size_t number = c->want[r->slot];
    locus_case_difference d = {
        .size = sizeof d,
        .expected = number != CASE_ABSENT,
        .worst = (double)NAN,
        .tolerance = tolerance_of(c, r),
    };
    if (d.expected) {
        comparison result = {.distance = 0.0, .size = 1.0, .nan = 0};
        LOCUS_TRY(check_shape(c, r, number, error));
        LOCUS_TRY(compare_data(c, r, number, &result, error));
        d.worst = result.distance / result.size;
        d.passed = d.worst <= d.tolerance;
        d.want_nan = result.nan;
    }
    locus_hand_back(difference, &d, sizeof d);
    return LOCUS_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "values.h"

#include <math.h>
#include <string.h>

/* One number of a type: its value, and whether it is subnormal in that type. */
typedef struct number {
    double value;
    int subnormal;
} number;

static uint64_t little_endian(const unsigned char *bytes, size_t count)
{
    uint64_t bits = 0;
    for (size_t i = count; i-- > 0;) bits = bits << 8 | bytes[i];
    return bits;
}

/* An IEEE-like format with `exponent` and `mantissa` bits, widened to double by hand:
 * the compiler need not know half precision, and signalling NaNs stay quiet. */
static number widen(uint64_t bits, unsigned exponent, unsigned mantissa)
{
    const uint64_t fraction = bits & (((uint64_t)1 << mantissa) - 1);
    const int top = (1 << exponent) - 1, bias = top / 2;
    const int power = (int)(bits >> mantissa) & top;
    const double sign = (bits >> (exponent + mantissa) & 1) != 0 ? -1.0 : 1.0;
    number n = {0.0, power == 0 && fraction != 0};
    if (power == top)
        n.value = fraction != 0 ? NAN : sign * HUGE_VAL;
    else if (power == 0)
        n.value = sign * ldexp((double)fraction, 1 - bias - (int)mantissa);
    else
        n.value = sign *
                  ldexp((double)(fraction | (uint64_t)1 << mantissa), power - bias - (int)mantissa);
    return n;
}

static number read_f64(const unsigned char *b) { return widen(little_endian(b, 8), 11, 52); }
static number read_f32(const unsigned char *b) { return widen(little_endian(b, 4), 8, 23); }
static number read_f16(const unsigned char *b) { return widen(little_endian(b, 2), 5, 10); }
static number read_bf16(const unsigned char *b) { return widen(little_endian(b, 2), 8, 7); }

static number read_unsigned(const unsigned char *bytes, size_t count)
{
    const number n = {(double)little_endian(bytes, count), 0};
    return n;
}

static number read_signed(const unsigned char *bytes, size_t count)
{
    const uint64_t bits = little_endian(bytes, count);
    const uint64_t sign = (uint64_t)1 << (8 * count - 1);
    /* -(2^n - bits) without leaving uint64_t. */
    const uint64_t magnitude = (bits & sign) != 0 ? (sign - (bits & (sign - 1))) : bits;
    const number n = {(bits & sign) != 0 ? -(double)magnitude : (double)magnitude, 0};
    return n;
}

static number read_i8(const unsigned char *b) { return read_signed(b, 1); }
static number read_i16(const unsigned char *b) { return read_signed(b, 2); }
static number read_i32(const unsigned char *b) { return read_signed(b, 4); }
static number read_i64(const unsigned char *b) { return read_signed(b, 8); }
static number read_u8(const unsigned char *b) { return read_unsigned(b, 1); }
static number read_u16(const unsigned char *b) { return read_unsigned(b, 2); }
static number read_u32(const unsigned char *b) { return read_unsigned(b, 4); }
static number read_u64(const unsigned char *b) { return read_unsigned(b, 8); }

/* Any byte but 0 is true. */
static number read_bool(const unsigned char *b)
{
    const number n = {b[0] != 0 ? 1.0 : 0.0, 0};
    return n;
}

typedef struct reader {
    const char *dtype;
    size_t bytes;
    number (*read)(const unsigned char *bytes);
} reader;

static const reader readers[] = {
    {"F64", 8, read_f64},   {"F32", 4, read_f32}, {"F16", 2, read_f16}, {"BF16", 2, read_bf16},
    {"I64", 8, read_i64},   {"I32", 4, read_i32}, {"I16", 2, read_i16}, {"I8", 1, read_i8},
    {"U64", 8, read_u64},   {"U32", 4, read_u32}, {"U16", 2, read_u16}, {"U8", 1, read_u8},
    {"BOOL", 1, read_bool},
};

static const reader *find_reader(const char *dtype)
{
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (strcmp(readers[i].dtype, dtype) == 0) return &readers[i];
    return NULL;
}

int values_known(const char *dtype) { return find_reader(dtype) != NULL; }

static void count_one(value_counts *counts, double *sum, number n)
{
    counts->numbers++;
    counts->subnormal += n.subnormal ? 1 : 0;
    if (isnan(n.value)) {
        counts->nan++;
        return;
    }
    if (n.value < counts->minimum) counts->minimum = n.value;
    if (n.value > counts->maximum) counts->maximum = n.value;
    if (isinf(n.value)) {
        *(n.value > 0 ? &counts->plus_inf : &counts->minus_inf) += 1;
        return;
    }
    if (fpclassify(n.value) == FP_ZERO) counts->zero++;
    *sum += n.value;
}

static void finish(value_counts *counts, double sum)
{
    const uint64_t infinite = counts->plus_inf + counts->minus_inf;
    const uint64_t finite = counts->numbers - counts->nan - infinite;
    if (counts->numbers == counts->nan) counts->minimum = counts->maximum = NAN;
    counts->mean = finite > 0 ? sum / (double)finite : NAN;
}

locus_status values_count(const locus_file *file, size_t index, value_counts *counts,
                          locus_error *error)
{
    unsigned char chunk[32768]; /* a multiple of every element size */
    const locus_file_tensor *tensor = locus_file_tensor_at(file, index);
    const reader *type = find_reader(tensor->dtype);
    const value_counts fresh = {.minimum = HUGE_VAL, .maximum = -HUGE_VAL};
    double sum = 0.0;
    *counts = fresh;
    if (type == NULL) return LOCUS_ERR_ARGUMENT;
    const uint64_t total = tensor->end - tensor->begin;
    for (uint64_t from = 0; from < total; from += sizeof chunk) {
        const uint64_t left = total - from;
        const size_t size = left < sizeof chunk ? (size_t)left : sizeof chunk;
        const locus_status status = locus_file_read(file, index, from, size, chunk, error);
        if (status != LOCUS_OK) return status;
        for (size_t at = 0; at + type->bytes <= size; at += type->bytes)
            count_one(counts, &sum, type->read(chunk + at));
    }
    finish(counts, sum);
    return LOCUS_OK;
}

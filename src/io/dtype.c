/* SPDX-License-Identifier: Apache-2.0 */
#include "io/dtype.h"

#include <inttypes.h>
#include <string.h>

#include <locus/tensorfile.h>

#include "core/error.h"
#include "core/size.h"

/* clang-format off */
static const locus_file_dtype dtypes[] = {
    {"F32", 32, 4},    {"F16", 16, 2},    {"BF16", 16, 2},       {"F64", 64, 8},
    {"I64", 64, 8},    {"I32", 32, 4},    {"I16", 16, 2},        {"I8", 8, 1},
    {"U64", 64, 8},    {"U32", 32, 4},    {"U16", 16, 2},        {"U8", 8, 1},
    {"BOOL", 8, 1},    {"C64", 64, 4},    {"F8_E4M3", 8, 1},     {"F8_E5M2", 8, 1},
    {"F8_E8M0", 8, 1}, {"F4", 4, 1},      {"F8_E4M3FNUZ", 8, 1}, {"F8_E5M2FNUZ", 8, 1},
    {"F6_E2M3", 6, 1}, {"F6_E3M2", 6, 1},
};
/* clang-format on */

const locus_file_dtype *locus_file_dtype_find(const char *name)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(dtypes[i].name, name) == 0) return &dtypes[i];
    return NULL;
}

locus_status locus_file_dtype_bytes(uint64_t *bytes, const locus_file_dtype *dtype, uint32_t rank,
                                    const uint64_t *shape, locus_error *error)
{
    uint64_t elements = 0, bits = 0;
    for (uint32_t i = 0; i < rank; i++)
        if (shape[i] > LOCUS_FILE_MAX_DIM)
            return locus_fail(error, LOCUS_ERR_FORMAT,
                              "found extent %" PRIu64 ", expected less than 2^48 [S16]", shape[i]);
    if (!locus_product_u64(&elements, shape, rank) || !locus_mul_u64(&bits, elements, dtype->bits))
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "found a shape whose size overflows, expected less than 2^64 bits [S17]");
    if (bits % 8 != 0)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "found %" PRIu64 " elements of %" PRIu32 " bits, expected whole bytes "
                          "[S17]",
                          elements, dtype->bits);
    *bytes = bits / 8;
    return LOCUS_OK;
}

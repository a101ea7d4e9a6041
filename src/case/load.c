/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "case/case.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/nearest.h"
#include "core/size.h"
#include "core/tensor.h"

locus_status locus_case_fail_in(const locus_case *c, locus_status status, locus_error *error)
{
    return locus_fail_in(error, status, c->path);
}

const char *locus_case_shape_text(uint32_t rank, const int64_t *shape, char *text)
{
    size_t used = 0;
    for (uint32_t i = 0; i < rank && used < CASE_SHAPE_TEXT; i++)
        used += (size_t)snprintf(text + used, CASE_SHAPE_TEXT - used, "%s%" PRId64,
                                 i == 0 ? "[" : ",", shape[i]);
    if (used < CASE_SHAPE_TEXT) snprintf(text + used, CASE_SHAPE_TEXT - used, "]");
    return text;
}

/* Each word is put together from its bytes: right on any machine, and on a little-endian
 * one the compiler sees that nothing changes. */
void locus_case_to_native(void *data, size_t bytes, size_t word)
{
    unsigned char *at = data;
    for (size_t i = 0; i + word <= bytes; i += word) {
        uint64_t value = 0;
        for (size_t k = word; k-- > 0;) value = value << 8 | at[i + k];
        const uint32_t half = (uint32_t)value;
        const uint16_t quarter = (uint16_t)value;
        if (word == sizeof value) memcpy(at + i, &value, sizeof value);
        if (word == sizeof half) memcpy(at + i, &half, sizeof half);
        if (word == sizeof quarter) memcpy(at + i, &quarter, sizeof quarter);
    }
}

/* ---- which tensors there are ---- */

static locus_status refuse_tensor(const locus_file_tensor *t, const char *found,
                                  const char *expected, locus_error *error)
{
    char name[96];
    return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s: found %s, expected %s",
                      locus_escape(name, sizeof name, t->name, strlen(t->name)), found, expected);
}

/* The types of this library that a case may hold; the others have no number here. */
static int dtype_of(const char *name, locus_dtype *dtype)
{
    for (int i = 0; locus_dtype_name((locus_dtype)i) != NULL; i++) {
        if (strcmp(locus_dtype_name((locus_dtype)i), name) != 0) continue;
        *dtype = (locus_dtype)i;
        return 1;
    }
    return 0;
}

const locus_tensor_info *locus_case_declaration(const locus_case *c, const char *name)
{
    const locus_scheme_info *scheme = locus_scheme_find(c->config.scheme);
    const locus_tensor_info *info;
    for (size_t i = 0; (info = locus_common_tensor(i)) != NULL; i++)
        if (strcmp(info->name, name) == 0) return info;
    for (size_t i = 0; (info = locus_scheme_tensor(scheme, i)) != NULL; i++)
        if (strcmp(info->name, name) == 0) return info;
    return NULL;
}

/* Doubles are for expected values: inputs are F32 or shorter, so that all can be read. */
static locus_status check_dtype(const locus_file_tensor *t, uint32_t allowed, locus_dtype *dtype,
                                locus_error *error)
{
    char expected[64] = "";
    size_t used = 0;
    if (dtype_of(t->dtype, dtype) && (allowed >> *dtype & 1u) != 0) return LOCUS_OK;
    for (int i = 0; locus_dtype_name((locus_dtype)i) != NULL && used < sizeof expected; i++)
        if ((allowed >> i & 1u) != 0)
            used += (size_t)snprintf(expected + used, sizeof expected - used, "%s%s",
                                     used > 0 ? " or " : "", locus_dtype_name((locus_dtype)i));
    return refuse_tensor(t, t->dtype, expected, error);
}

/* A view without data. Extents of zero-size tensors are bounded by nothing in the file,
 * so the product of the others is checked before it becomes strides. */
static locus_status view_of(const locus_file_tensor *t, locus_dtype dtype, locus_tensor *view,
                            locus_error *error)
{
    int64_t shape[LOCUS_MAX_RANK];
    uint64_t strides = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        const uint64_t extent = t->shape[i] == 0 ? 1 : t->shape[i];
        if (!locus_mul_u64(&strides, strides, extent) || strides > (uint64_t)INT64_MAX / 8)
            return refuse_tensor(t, "extents", "a product below 2^60", error);
        shape[i] = (int64_t)t->shape[i];
    }
    *view = locus_view(NULL, dtype, t->rank, shape);
    return LOCUS_OK;
}

/* The slot that "out", "lse" or "grad.q" goes to; CASE_ABSENT: a name of no result. */
static size_t slot_of(const char *name)
{
    if (strcmp(name, "out") == 0) return CASE_OUT;
    if (strcmp(name, "lse") == 0) return CASE_LSE;
    if (strncmp(name, "grad.", 5) != 0) return CASE_ABSENT;
    const int index = locus_tensor_index(name + 5);
    return index < 0 ? CASE_ABSENT : CASE_GRADS + (size_t)index;
}

static const char *input_name(size_t index)
{
    return index == CASE_DOUT ? "dout" : index == CASE_DLSE ? "dlse" : locus_tensor_name(index);
}

static locus_status unknown_tensor(const char *name, locus_error *error)
{
    char escaped[96], suggestion[LOCUS_SUGGESTION];
    return locus_fail(error, LOCUS_ERR_TENSOR, "tensor \"%s\" is unknown%s",
                      locus_escape(escaped, sizeof escaped, name, strlen(name)),
                      locus_suggest_from(suggestion, name, input_name));
}

/* Where input number i goes. */
static locus_tensor *input_at(locus_case *c, size_t i)
{
    return i == CASE_DOUT   ? &c->dresults.out
           : i == CASE_DLSE ? &c->dresults.lse
                            : locus_tensor_at(&c->inputs, i);
}

/* The number of the input called `name`; CASE_ABSENT: none is. */
static size_t input_number(const char *name)
{
    if (strcmp(name, "dout") == 0) return CASE_DOUT;
    if (strcmp(name, "dlse") == 0) return CASE_DLSE;
    const int index = locus_tensor_index(name);
    return index < 0 ? CASE_ABSENT : (size_t)index;
}

static uint32_t allowed_types(const locus_case *c, size_t input, const char *name)
{
    const uint32_t all = 1u << LOCUS_F32 | 1u << LOCUS_F16 | 1u << LOCUS_BF16;
    if (input == CASE_DOUT) return all;
    if (input == CASE_DLSE) return 1u << LOCUS_F32;
    const locus_tensor_info *info = locus_case_declaration(c, name);
    return info != NULL ? info->dtypes & ~(1u << LOCUS_F64) : all;
}

static locus_status list_tensor(locus_case *c, size_t number, locus_error *error)
{
    const locus_file_tensor *t = locus_file_tensor_at(c->file, number);
    const int is_want = strncmp(t->name, "want.", 5) == 0;
    const size_t input = is_want ? CASE_ABSENT : input_number(t->name);
    locus_dtype dtype = LOCUS_F32;
    if (!is_want && input == CASE_ABSENT) return unknown_tensor(t->name, error);
    if (t->rank == 0 || t->rank > LOCUS_MAX_RANK)
        return refuse_tensor(t, t->rank == 0 ? "no axes" : "more than 4 axes", "1 to 4 axes",
                             error);
    if (is_want) {
        const size_t slot = slot_of(t->name + 5);
        if (slot != CASE_ABSENT) c->want[slot] = number;
        return check_dtype(t, 1u << LOCUS_F64 | 1u << LOCUS_F32, &dtype, error);
    }
    LOCUS_TRY(check_dtype(t, allowed_types(c, input, t->name), &dtype, error));
    c->from[input] = number;
    return view_of(t, dtype, input_at(c, input), error);
}

static locus_status list_tensors(locus_case *c, locus_error *error)
{
    for (size_t i = 0; i < CASE_INPUTS; i++) c->from[i] = CASE_ABSENT;
    for (size_t i = 0; i < CASE_SLOTS; i++) c->want[i] = CASE_ABSENT;
    for (size_t i = 0; i < locus_file_count(c->file); i++) LOCUS_TRY(list_tensor(c, i, error));
    const int has_dout = locus_present(&c->dresults.out),
              has_dlse = locus_present(&c->dresults.lse);
    if (c->grad && !has_dout)
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor dout is missing (grad is 1)");
    if (!c->grad && (has_dout || has_dlse))
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor %s: found beside grad = 0, expected grad = 1",
                          has_dout ? "dout" : "dlse");
    return LOCUS_OK;
}

/* ---- the call ---- */

/* What a run would refuse is refused here, before any large data is read. Asking for the rules of
 * no distance at all checks a call and makes nothing. */
static locus_status check_call(const locus_case *c, locus_error *error)
{
    return locus_call_rows(c->level, &c->config, &c->inputs, 0, 0, NULL, NULL, error);
}

/* A result can be larger than any tensor of the file: a zero-size axis may be summed away. */
static locus_status set_shape(locus_tensor *view, uint32_t rank, const int64_t *shape,
                              locus_error *error)
{
    uint64_t extents[LOCUS_MAX_RANK + 1] = {sizeof(double)}, bytes = 0;
    for (uint32_t i = 0; i < rank; i++) extents[i + 1] = (uint64_t)shape[i];
    if (!locus_product_u64(&bytes, extents, rank + 1))
        return locus_fail(error, LOCUS_ERR_MEMORY,
                          "the results need more memory than a machine can address");
    *view = locus_view(NULL, LOCUS_F32, rank, shape);
    return LOCUS_OK;
}

/* The call has been checked. */
static locus_status set_result_shapes(locus_case *c, locus_error *error)
{
    const locus_tensors *in = &c->inputs;
    if (c->level == LOCUS_LAYER) {
        const int64_t B = in->x.shape[0], T = in->x.shape[1];
        const int64_t width = locus_present(&in->w_o) ? in->w_o.shape[0] : in->w_q.shape[0];
        LOCUS_TRY(set_shape(&c->out_shape, 3, (const int64_t[]){B, T, width}, error));
        return set_shape(&c->lse_shape, 3, (const int64_t[]){B, c->config.heads, T}, error);
    }
    const int64_t *q = in->q.shape;
    LOCUS_TRY(
        set_shape(&c->out_shape, 4, (const int64_t[]){q[0], q[1], q[2], in->v.shape[3]}, error));
    return set_shape(&c->lse_shape, 3, q, error);
}

static locus_status check_heads(const locus_case *c, locus_error *error)
{
    const int64_t found = c->config.heads;
    if (c->level == LOCUS_LAYER || found == 0 || found == c->inputs.q.shape[1]) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_OPTION,
                      "metadata key heads: found %" PRId64 ", expected %" PRId64
                      ", the heads of q, or none",
                      found, c->inputs.q.shape[1]);
}

static locus_status check_gradient(const locus_tensor *found, const locus_tensor *wanted,
                                   const char *name, const char *of, locus_error *error)
{
    if (!locus_present(found) || locus_same_shape(found, wanted)) return LOCUS_OK;
    char found_text[CASE_SHAPE_TEXT], wanted_text[CASE_SHAPE_TEXT];
    return locus_fail(error, LOCUS_ERR_TENSOR,
                      "tensor %s: found shape %s, expected %s, the shape of %s", name,
                      locus_case_shape_text(found->rank, found->shape, found_text),
                      locus_case_shape_text(wanted->rank, wanted->shape, wanted_text), of);
}

/* ---- data ---- */

static uint64_t bytes_of(const locus_case *c, size_t number)
{
    const locus_file_tensor *t = locus_file_tensor_at(c->file, number);
    return t->end - t->begin;
}

/* Is input i one of the tensors that say what the others mean (offsets, maps, positions), which
 * are read before the call is checked? 1 or 0, -1 where the file has none. */
static int is_planned(const locus_case *c, size_t i)
{
    if (c->from[i] == CASE_ABSENT) return -1;
    const locus_tensor_info *info =
        i < LOCUS_TENSOR_COUNT ? locus_case_declaration(c, locus_tensor_name(i)) : NULL;
    return info != NULL && (info->uses & LOCUS_USE_PLAN) != 0;
}

/* One block for all of a kind; its size is that of tensors which the file is known to hold. */
static locus_status allocate_inputs(locus_case *c, int planned, locus_error *error)
{
    uint64_t total = 0, padded = 0;
    size_t size = 0;
    int fits = 1;
    for (size_t i = 0; i < CASE_INPUTS; i++)
        if (is_planned(c, i) == planned)
            fits = fits && locus_pad_u64(&padded, bytes_of(c, c->from[i]), LOCUS_ALIGNMENT) &&
                   locus_add_u64(&total, total, padded);
    if (fits && locus_to_size(&size, total))
        c->memory[planned] = locus_allocate(c->allocator, size, 1);
    if (c->memory[planned] == NULL)
        return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for %" PRIu64 " bytes of tensors",
                          total);
    return LOCUS_OK;
}

static locus_status read_inputs(locus_case *c, int planned, locus_error *error)
{
    char *at = c->memory[planned];
    for (size_t i = 0; i < CASE_INPUTS; i++) {
        if (is_planned(c, i) != planned) continue;
        const size_t bytes = (size_t)bytes_of(c, c->from[i]);
        locus_tensor *t = input_at(c, i);
        t->data = at;
        LOCUS_TRY(locus_file_read(c->file, c->from[i], 0, bytes, at, error));
        locus_case_to_native(at, bytes, locus_dtype_bytes(t->dtype));
        at += (bytes + LOCUS_ALIGNMENT - 1) / LOCUS_ALIGNMENT * LOCUS_ALIGNMENT;
    }
    return LOCUS_OK;
}

static locus_status check_mask(const locus_tensor *mask, const char *name, locus_error *error)
{
    const int64_t elements = locus_tensor_elements(mask);
    for (int64_t i = 0; i < elements; i++) {
        const unsigned value = ((const uint8_t *)mask->data)[i];
        if (value <= 1) continue;
        int64_t where[LOCUS_MAX_RANK], rest = i;
        char text[CASE_SHAPE_TEXT];
        for (uint32_t axis = mask->rank; axis-- > 0; rest /= mask->shape[axis])
            where[axis] = rest % mask->shape[axis];
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s: found %u at %s, expected 0 or 1",
                          name, value, locus_case_shape_text(mask->rank, where, text));
    }
    return LOCUS_OK;
}

/* ---- the door ---- */

/* Messages that do not name the file yet. */
static locus_status check_names(locus_case *c, locus_error *error)
{
    LOCUS_TRY(locus_case_read_metadata(c, error));
    LOCUS_TRY(list_tensors(c, error));
    LOCUS_TRY(locus_case_check_options(c, error));
    return allocate_inputs(c, 1, error);
}

static locus_status check_shapes(locus_case *c, locus_error *error)
{
    LOCUS_TRY(check_call(c, error));
    LOCUS_TRY(set_result_shapes(c, error));
    LOCUS_TRY(check_heads(c, error));
    LOCUS_TRY(check_gradient(&c->dresults.out, &c->out_shape, "dout", "out", error));
    LOCUS_TRY(check_gradient(&c->dresults.lse, &c->lse_shape, "dlse", "lse", error));
    return allocate_inputs(c, 0, error);
}

static locus_status check_masks(const locus_case *c, locus_error *error)
{
    LOCUS_TRY(check_mask(&c->inputs.key_mask, "key_mask", error));
    return check_mask(&c->inputs.mask, "mask", error);
}

static locus_status load(locus_case *c, const char *path, locus_error *error)
{
    LOCUS_TRY(locus_file_open(&c->file, path, c->allocator, error));
    locus_status status = check_names(c, error);
    if (status != LOCUS_OK) return locus_case_fail_in(c, status, error);
    LOCUS_TRY(read_inputs(c, 1, error));
    status = check_shapes(c, error);
    if (status != LOCUS_OK) return locus_case_fail_in(c, status, error);
    LOCUS_TRY(read_inputs(c, 0, error));
    status = check_masks(c, error);
    return status == LOCUS_OK ? status : locus_case_fail_in(c, status, error);
}

locus_status locus_case_load(locus_case **loaded, const char *path,
                             const locus_allocator *allocator, locus_error *error)
{
    if (loaded == NULL || path == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "case: NULL argument");
    *loaded = NULL;
    locus_case *c = locus_allocate(allocator, 1, sizeof *c);
    if (c == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "case: out of memory");
    c->allocator = allocator;
    c->inputs.size = sizeof c->inputs;
    c->dresults.size = sizeof c->dresults;
    locus_escape(c->path, sizeof c->path, path, strlen(path));
    const locus_status status = load(c, path, error);
    if (status != LOCUS_OK) {
        locus_case_free(c);
        return status;
    }
    *loaded = c;
    return LOCUS_OK;
}

void locus_case_free(locus_case *c)
{
    if (c == NULL) return;
    locus_file_close(c->file);
    locus_release(c->allocator, c->memory[0]);
    locus_release(c->allocator, c->memory[1]);
    locus_release(c->allocator, c->results.memory);
    locus_release(c->allocator, c);
}

uint32_t locus_case_level(const locus_case *c) { return c->level; }

int locus_case_wants_gradients(const locus_case *c) { return c->grad != 0; }

const locus_config *locus_case_config(const locus_case *c) { return &c->config; }

const locus_tensors *locus_case_inputs(const locus_case *c) { return &c->inputs; }

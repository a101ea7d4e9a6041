/* SPDX-License-Identifier: Apache-2.0 */
#include "model/integers.h"

#include <inttypes.h>
#include <locus/model.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "io/tensorfile.h"
#include "model/ops/ops.h"
#include "model/precision.h"

/* ---- names ---- */

static const op *maker_of(const program *p, value v)
{
    for (int i = 0; i < p->op_count; i++)
        if (p->ops[i].out == v) return &p->ops[i];
    return NULL;
}

static int fits(int bytes, size_t at) { return bytes > 0 && (size_t)bytes < INTEGERS_NAME - at; }

/* T; T.OPERATOR of what is made of T; T[a:b] of its rows; T+n of it and n tensors behind it. 0: made
 * of no tensor, or of one of a module, whose file is not converted. */
static int name_of(const program *p, value v, char *out)
{
    const value_info *i = &p->values[v];
    if (i->parameter != NONE) {
        const model_place *place = &p->tensors[i->parameter].place;
        const int bytes = snprintf(out, INTEGERS_NAME, "%s", place->tensor->name);
        return place->file < p->checkpoint->own_count && bytes < INTEGERS_NAME;
    }
    const op *maker = maker_of(p, v);
    const value of = maker != NULL ? maker->in[0] : i->base != NONE ? i->base : i->part;
    if (of == NONE || !name_of(p, of, out)) return 0;
    const size_t at = strlen(out);
    if (maker != NULL)
        return fits(snprintf(out + at, INTEGERS_NAME - at, ".%s", maker->kind->name), at);
    if (i->base != NONE)
        return fits(snprintf(out + at, INTEGERS_NAME - at, "[%" PRId64 ":%" PRId64 "]",
                             i->first_row, i->first_row + i->count),
                    at);
    int others = 0;
    for (value next = p->values[of].next; next != NONE; next = p->values[next].next) others++;
    return fits(snprintf(out + at, INTEGERS_NAME - at, "+%d", others), at);
}

int integers_describe(const program *p, const op *o, int input, stored_integers *s)
{
    const int words = o->kind == &op_embed;
    const locus_quant_kind kind = precision_of(p, o, input);
    char name[INTEGERS_NAME];
    if (kind == LOCUS_QUANT_KINDS || !name_of(p, o->in[input], name)) return 0;
    const value_info *v = &p->values[o->in[input]];
    const int64_t columns = words ? v->width : locus_quantized_columns(kind, v->width);
    s->kind = kind;
    s->words = words;
    s->dtype = kind == LOCUS_QUANT_I16 ? "I16" : "I8";
    s->rows = (uint64_t)v->count;
    s->columns = (uint64_t)columns;
    s->group = kind == LOCUS_QUANT_I16 ? 128 : kind == LOCUS_QUANT_W8 ? 64 : s->columns;
    s->groups = (s->columns + s->group - 1) / s->group;
    const int a = snprintf(s->integers, INTEGERS_NAME, "%s.%s", name, words ? "words" : "integers");
    const int b =
        snprintf(s->scales, INTEGERS_NAME, "%s.%s", name, words ? "word_scales" : "scales");
    return a < INTEGERS_NAME && b < INTEGERS_NAME;
}

/* ---- what is there ---- */

static size_t find(const program *p, const char *name)
{
    return locus_names_find(&p->checkpoint->files[0]->tensor_names, name);
}

int integers_stored(const program *p, const op *o, int input)
{
    stored_integers s;
    return p->checkpoint->precision != LOCUS_EXACT && integers_describe(p, o, input, &s) &&
           locus_file_tensor_at(p->checkpoint->files[0], find(p, s.integers)) != NULL;
}

static int reads_integers(const program *p, const op *o, int k)
{
    stored_integers s;
    const value_info *v = &p->values[o->in[k]];
    const int held = o->kind == &op_embed ? v->words != NULL : v->quantized != NULL;
    return (held && integers_describe(p, o, k, &s)) || integers_stored(p, o, k);
}

/* Backwards: what makes a constant is asked for before what it is made of. One that no operator
 * reads is read by others. */
void integers_wanted(const program *p, char *wanted)
{
    for (value v = 0; v < p->value_count; v++) wanted[v] = 1;
    for (int i = 0; i < p->op_count; i++)
        for (int k = 0; k < OP_INPUTS; k++)
            if (p->ops[i].in[k] != NONE) wanted[root_of(p, p->ops[i].in[k])] = 0;
    for (int i = p->op_count - 1; i >= 0; i--) {
        const op *o = &p->ops[i];
        if (p->values[o->out].constant && !wanted[root_of(p, o->out)]) continue;
        for (int k = 0; k < OP_INPUTS; k++)
            if (o->in[k] != NONE && p->values[o->in[k]].constant && !reads_integers(p, o, k))
                wanted[root_of(p, o->in[k])] = 1;
    }
}

locus_status integers_begin(program *p, model_checkpoint *c, locus_error *error)
{
    char quoted[80];
    const char *said = locus_file_metadata(c->files[0], INTEGERS_KEY);
    if (said == NULL) return LOCUS_OK;
    for (uint32_t i = LOCUS_I16; locus_precision_name(i) != NULL; i++)
        if (strncmp(said, "1 ", 2) == 0 && strcmp(said + 2, locus_precision_name(i)) == 0)
            c->precision = i;
    if (c->precision == LOCUS_EXACT)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "%s: metadata " INTEGERS_KEY ": found %s, expected 1 i16 or 1 int8",
                          c->names[0], locus_escape(quoted, sizeof quoted, said, strlen(said)));
    if (p->trains)
        return locus_fail(error, LOCUS_ERR_FORMAT, "%s: holds %s: a model that is trained is exact",
                          c->names[0], said + 2);
    if (p->precision != LOCUS_EXACT && p->precision != c->precision)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "%s: holds %s: precision %s is made of the folder in float", c->names[0],
                          said + 2, locus_precision_name(p->precision));
    p->precision = c->precision;
    return LOCUS_OK;
}

/* ---- checks ---- */

static locus_status check_one(const program *p, const char *name, const char *dtype, uint64_t rows,
                              uint64_t columns, locus_error *error)
{
    const model_checkpoint *c = p->checkpoint;
    const locus_file_tensor *t = locus_file_tensor_at(c->files[0], find(p, name));
    if (t == NULL)
        return locus_fail(error, LOCUS_ERR_FORMAT, "%s: tensor %s is missing", c->names[0], name);
    if (strcmp(t->dtype, dtype) != 0)
        return locus_fail(error, LOCUS_ERR_FORMAT, "%s: tensor %s: found %s, expected %s",
                          c->names[0], name, t->dtype, dtype);
    if (t->rank == 2 && t->shape[0] == rows && t->shape[1] == columns) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_FORMAT,
                      "%s: tensor %s: found another shape, expected [%" PRIu64 ",%" PRIu64 "]",
                      c->names[0], name, rows, columns);
}

locus_status integers_check(const program *p, const stored_integers *s, locus_error *error)
{
    LOCUS_TRY(check_one(p, s->integers, s->dtype, s->rows, s->columns, error));
    return check_one(p, s->scales, "F32", s->rows, s->groups, error);
}

static int32_t magnitude(const stored_integers *s, const void *integers, uint64_t i)
{
    return abs(s->kind == LOCUS_QUANT_I16 ? ((const int16_t *)integers)[i]
                                          : ((const int8_t *)integers)[i]);
}

/* Largest and sum of a group, which no product may carry beyond 32 bits, and its scale. */
static locus_status check_group(const program *p, const stored_integers *s, uint64_t row,
                                uint64_t group, const void *integers, float scale,
                                locus_error *error)
{
    const char *file = p->checkpoint->names[0];
    const uint64_t past = (group + 1) * s->group < s->columns ? (group + 1) * s->group : s->columns;
    const int32_t allowed = s->kind == LOCUS_QUANT_I16 ? 32767 : 127;
    const float most_scale = 1e30f;
    int64_t sum = 0;
    int32_t most = 0;
    for (uint64_t k = group * s->group; k < past; k++) {
        const int32_t n = magnitude(s, integers, row * s->columns + k);
        most = n > most ? n : most;
        sum += n;
    }
    if (most > allowed)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "%s: tensor %s: row %" PRIu64 ": found -%d, expected at least -%d", file,
                          s->integers, row, most, allowed);
    if (s->kind == LOCUS_QUANT_I16 && !s->words && sum * LOCUS_QUANT_I16_MOST > INT32_MAX)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "%s: tensor %s: row %" PRIu64 ": found magnitudes of a group that sum to "
                          "%" PRId64 ", expected at most %d",
                          file, s->integers, row, sum, INT32_MAX / LOCUS_QUANT_I16_MOST);
    if (scale >= 0.0f && scale <= most_scale && (scale > 0.0f || most == 0)) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_FORMAT,
                      "%s: tensor %s: row %" PRIu64 ", group %" PRIu64
                      ": found %g, expected a number above 0 and at most 1e30 (0: of zeros alone)",
                      file, s->scales, row, group, (double)scale);
}

locus_status integers_read(const program *p, const stored_integers *s, void *integers,
                           float *scales, locus_error *error)
{
    const locus_file *file = p->checkpoint->files[0];
    const uint64_t bytes = (uint64_t)locus_quantized_stored_bytes(s->kind);
    LOCUS_TRY(locus_file_read(file, find(p, s->integers), 0, s->rows * s->columns * bytes, integers,
                              error));
    LOCUS_TRY(locus_file_read(file, find(p, s->scales), 0, s->rows * s->groups * sizeof *scales,
                              scales, error));
    for (uint64_t row = 0; row < s->rows; row++)
        for (uint64_t g = 0; g < s->groups; g++)
            LOCUS_TRY(check_group(p, s, row, g, integers, scales[row * s->groups + g], error));
    return LOCUS_OK;
}

locus_status integers_floats(const program *p, int tensor, locus_error *error)
{
    const model_place *place = &p->tensors[tensor].place;
    if (p->checkpoint->precision == LOCUS_EXACT || p->tensors[tensor].count == 0 ||
        place->tensor->begin != place->tensor->end)
        return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_FORMAT,
                      "%s: tensor %s: found no numbers, expected them or the integers made of them",
                      p->checkpoint->names[place->file], place->tensor->name);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "case/case.h"
#include "core/error.h"

static locus_status put_metadata(const locus_case *c, locus_file_writer *writer, locus_error *error)
{
    const struct {
        const char *key, *value;
    } entries[] = {
        {"format", "locus.result/1"}, {"kind", c->level == LOCUS_LAYER ? "layer" : "attend"},
        {"scheme", c->config.scheme}, {"isa", c->results.isa},
        {"path", c->results.path},
    };
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        LOCUS_TRY(locus_file_put_metadata(writer, entries[i].key, entries[i].value, error));
    return LOCUS_OK;
}

static locus_status put_results(const locus_case *c, locus_file_writer *writer, locus_error *error)
{
    for (size_t i = 0; i < c->results.count; i++) {
        const case_result *r = &c->results.list[i];
        uint64_t shape[LOCUS_MAX_RANK];
        for (uint32_t axis = 0; axis < r->tensor.rank; axis++)
            shape[axis] = (uint64_t)r->tensor.shape[axis];
        LOCUS_TRY(locus_file_put(writer, r->name, r->tensor.dtype == LOCUS_F64 ? "F64" : "F32",
                                 r->tensor.rank, shape, r->tensor.data, error));
    }
    return LOCUS_OK;
}

locus_status locus_case_save(const locus_case *c, const char *path, locus_error *error)
{
    if (c == NULL || path == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "case: NULL argument");
    if (c->results.count == 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "case: nothing to save before a run");
    locus_file_writer *writer = NULL;
    LOCUS_TRY(locus_file_create(&writer, path, c->allocator, error));
    locus_status status = put_metadata(c, writer, error);
    if (status == LOCUS_OK) status = put_results(c, writer, error);
    if (status == LOCUS_OK) return locus_file_commit(writer, error);
    locus_file_abandon(writer);
    return status;
}

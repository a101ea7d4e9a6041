/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "core/memory.h"
#include "core/size.h"
#include "model/loader.h"

locus_status model_no_memory(locus_error *error)
{
    return locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory for the weights");
}

void *model_keep(locus_model *m, uint64_t bytes)
{
    size_t size = 0;
    if (!locus_to_size(&size, bytes)) return NULL;
    void *block = locus_allocate(m->allocator, 1, size);
    if (block == NULL) return NULL;
    m->blocks[m->block_count++] = block;
    m->bytes += bytes;
    return block;
}

float *model_keep_floats(locus_model *m, int64_t count)
{
    return model_keep(m, (uint64_t)count * sizeof(float));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* model.safetensors of a small model: names, types and shapes of its tensors, and their numbers. */
#include "fuzz/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_put("model.safetensors", data, size);
    fuzz_read_tensors();
    return 0;
}

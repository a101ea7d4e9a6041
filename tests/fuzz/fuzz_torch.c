/* SPDX-License-Identifier: Apache-2.0 */
/* pytorch_model.bin: the directory of the ZIP, the pickle, and the numbers of every view. */
#include "fuzz/tensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)fuzz_read_weights("pytorch_model.bin", data, size);
    return 0;
}

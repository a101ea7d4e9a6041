/* SPDX-License-Identifier: Apache-2.0 */
/* model.safetensors.index.json beside one file of weights. */
#include "fuzz/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char shard[] = "\x50\0\0\0\0\0\0\0"
                                "{\"bert.pooler.dense.bias\":{\"dtype\":\"F32\",\"shape\":[1],"
                                "\"data_offsets\":[0,4]}}     \0\0\0";
    static int there;
    if (!there) fuzz_put("one.safetensors", shard, sizeof shard);
    there = 1;
    fuzz_put("model.safetensors.index.json", data, size);
    fuzz_read_tensors();
    return 0;
}

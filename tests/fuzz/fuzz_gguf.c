/* SPDX-License-Identifier: Apache-2.0 */
/* A GGUF file: values, tensors, blocks, and the configuration that they stand for. */
#include <stdlib.h>
#include <string.h>

#include "fuzz/scratch.h"
#include "fuzz/tensors.h"
#include "model/gguf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    model_settings s;
    locus_error error = {""};
    if (!fuzz_read_weights("model.gguf", data, size)) return 0;
    const locus_status status = model_gguf_settings(&s, fuzz_path("model.gguf"), NULL, &error);
    if ((status == LOCUS_OK) != (error.text[0] == '\0') || strchr(error.text, '\n') != NULL)
        abort();
    if (status == LOCUS_OK) model_settings_free(&s);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Case files: container, metadata, options and shapes of one call. */
#include <locus/case.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    locus_case *loaded = NULL;
    locus_error error = {""};
    fuzz_put("case.safetensors", data, size);
    const locus_status status =
        locus_case_load(&loaded, fuzz_path("case.safetensors"), NULL, &error);
    if ((status == LOCUS_OK) != (loaded != NULL) ||
        (status == LOCUS_OK) != (error.text[0] == '\0') || strchr(error.text, '\n') != NULL)
        abort();
    locus_case_free(loaded);
    return 0;
}

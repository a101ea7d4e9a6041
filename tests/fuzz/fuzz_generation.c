/* SPDX-License-Identifier: Apache-2.0 */
/* generation_config.json of a model folder. */
#include <stdlib.h>
#include <string.h>

#include "fuzz/model.h"
#include "model/generate/generate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    locus_model m = {.description = {.vocabulary = 100}};
    const model_settings config = {.file = "config.json"};
    locus_error error = {""};
    fuzz_put("generation_config.json", data, size);
    const locus_status status = model_read_generation(&m, fuzz_folder(), &config, &error);
    if ((status == LOCUS_OK) != (error.text[0] == '\0') || strchr(error.text, '\n') != NULL)
        abort();
    locus_arena_clear(&m.texts);
    return 0;
}

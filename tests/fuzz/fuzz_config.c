/* SPDX-License-Identifier: Apache-2.0 */
/* config.json of a model folder, up to the description of the model. */
#include <stdlib.h>

#include "fuzz/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const model_family *family;
    model_description d;
    fuzz_put("config.json", data, size);
    if (!fuzz_describe(&family, &d)) return 0;
    for (int slot = 0; slot < SLOT_COUNT; slot++)
        if (model_slot_wanted(&d, (model_slot)slot) &&
            model_slot_elements(&d, (model_slot)slot) < 0)
            abort();
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/tensors.h"

#include <stdlib.h>
#include <string.h>

#include <locus/tensorfile.h>

#include "fuzz/scratch.h"

static void read_all(const locus_file *file)
{
    static unsigned char numbers[1 << 16];
    for (size_t i = 0; i < locus_file_count(file); i++) {
        const locus_file_tensor *t = locus_file_tensor_at(file, i);
        const uint64_t bytes = t->end - t->begin;
        locus_error error = {""};
        if (bytes <= sizeof numbers &&
            locus_file_read(file, i, 0, bytes, numbers, &error) != LOCUS_OK)
            abort(); /* what was opened can be read */
    }
}

int fuzz_read_weights(const char *name, const uint8_t *data, size_t size)
{
    locus_error error = {""};
    locus_file *file = NULL;
    fuzz_put(name, data, size);
    const locus_status status = locus_weights_open(&file, fuzz_path(name), NULL, &error);
    if ((status == LOCUS_OK) != (error.text[0] == '\0') || strchr(error.text, '\n') != NULL)
        abort();
    if (status == LOCUS_OK) read_all(file);
    locus_file_close(file);
    return status == LOCUS_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_GOLDEN_FOLDER_H
#define LOCUS_TESTS_GOLDEN_FOLDER_H

#include <stdlib.h>

enum { GOLDEN_PATH = 4096 };

#ifndef LOCUS_TEST_SOURCE_DIR
#define LOCUS_TEST_SOURCE_DIR "."
#endif

/* Where the golden vectors are: the environment variable LOCUS_GOLDEN, else this folder. */
static inline const char *golden_folder(void)
{
    const char *folder = getenv("LOCUS_GOLDEN");
    return folder != NULL && folder[0] != '\0' ? folder : LOCUS_TEST_SOURCE_DIR "/tests/golden";
}

#endif

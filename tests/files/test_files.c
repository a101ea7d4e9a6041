/* SPDX-License-Identifier: Apache-2.0 */
#include "files/filetest.h"

/* The bad-file set, the scanner and the writer. Compiled a second time, with the
 * sources of src/io, as if the machine were 32-bit and big-endian: rule 12 and F54
 * say that the verdicts and the bytes are the same. */
#ifdef LOCUS_PRETEND_BIG_ENDIAN
#define SUITE "files-pretend"
#else
#define SUITE "files"
#endif

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    folder_make();
    test_scanner();
    test_container();
    test_entries();
    test_layout();
    test_large();
    test_foreign();
    test_torch();
    test_gguf();
    test_writer();
    test_allocations();
    folder_remove();
    return check_finish(SUITE);
}

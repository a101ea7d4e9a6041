/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_TEXTTEST_H
#define LOCUS_TESTS_TEXTTEST_H

/* A folder of tokenizer files under the build folder, made anew for each test. */

#include <stddef.h>

#include <locus/text.h>

#define TEXT_DATA LOCUS_TEST_SOURCE_DIR "/tests/data/tokenizers"

const char *folder_new(void);
const char *folder_path(void); /* of the last one */
void folder_put(const char *name, const char *text, size_t bytes);
void folder_text(const char *name, const char *text);
/* A copy of a file under TEXT_DATA. */
void folder_copy(const char *name, const char *from);

/* A whole file; the caller frees it. */
char *whole_file(const char *path, size_t *bytes);

/* Must be refused with `status`, in one line that holds `words`. */
void check_refused(locus_status status, const char *words);

/* The folder opens, and closes without a leak. */
void check_opens(void);

/* A minimal tokenizer.json with `part` in the place of one member: "model", "normalizer", ... */
void put_json(const char *member, const char *part);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_CORPUS_H
#define LOCUS_LAB_CORPUS_H

/* Text to train on, and text to be judged by.
 *
 *     lab_corpus corpus;
 *     status = lab_corpus_open(&corpus, path, 8 * length, NULL, error);   NULL: Austen
 *     ... corpus.train[0 .. corpus.train_bytes), corpus.validation[...] ...
 *     lab_corpus_close(&corpus);
 *
 * The split: validation begins behind the first form feed (a new work) in the last fifth of the
 * text; where there is none, at the first line that begins in the last tenth; where there is none
 * either, at the last tenth. Before it everything is training. The form feed belongs to neither. */

#include <locus/status.h>

#define LAB_TEXT_BYTES ((uint64_t)1 << 32) /* at most: a text is read whole */

typedef struct lab_corpus {
    const unsigned char *train, *validation;
    size_t train_bytes, validation_bytes;
    uint32_t sum; /* CRC-32 of the whole text: which text it was */
    unsigned char *text;
    const locus_allocator *allocator;
} lab_corpus;

/* `path`: a text file, plain or gzip; NULL: the novels that the program holds. Each part has at
 * least `least` bytes. LOCUS_ERR_FORMAT: too short, or not a text (a control character that no
 * text has). On failure there is nothing to close. */
locus_status lab_corpus_open(lab_corpus *corpus, const char *path, size_t least,
                             const locus_allocator *allocator, locus_error *error);
void lab_corpus_close(lab_corpus *corpus);

/* "Jane Austen, six novels; ..." for reports. */
const char *lab_corpus_builtin_name(void);

#endif

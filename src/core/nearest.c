/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nearest.h"

#include <stdio.h>
#include <string.h>

enum { WORD = 32 };

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Insertions, deletions, replacements and swaps of neighbours between two words of
 * less than WORD letters. */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[WORD][WORD];
    for (size_t i = 0; i <= a_length; i++) rows[i][0] = i;
    for (size_t k = 0; k <= b_length; k++) rows[0][k] = k;
    for (size_t i = 1; i <= a_length; i++) {
        for (size_t k = 1; k <= b_length; k++) {
            const size_t replaced = rows[i - 1][k - 1] + (a[i - 1] != b[k - 1]);
            rows[i][k] = least(replaced, 1 + least(rows[i - 1][k], rows[i][k - 1]));
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                rows[i][k] = least(rows[i][k], rows[i - 2][k - 2] + 1);
        }
    }
    return rows[a_length][b_length];
}

const char *locus_nearest(const char *word, const char *const *names, size_t count)
{
    const char *best = NULL;
    const size_t length = strlen(word);
    size_t best_distance = SIZE_MAX;
    if (length < 2 || length >= WORD) return NULL;
    for (size_t i = 0; i < count; i++) {
        const size_t other = strlen(names[i]);
        if (other >= WORD) continue;
        size_t distance = edit_distance(word, length, names[i], other);
        if (strncmp(word, names[i], length) == 0) distance = least(distance, 1);
        /* One slip in three letters; more is another word. */
        if (distance > least(3, 1 + (length > other ? length : other) / 4)) continue;
        if (distance >= best_distance) continue;
        best = names[i];
        best_distance = distance;
    }
    return best;
}

const char *locus_suggest(char *text, const char *word, const char *const *names, size_t count)
{
    const char *near = locus_nearest(word, names, count);
    text[0] = '\0';
    if (near != NULL) snprintf(text, LOCUS_SUGGESTION, "; did you mean \"%s\"?", near);
    return text;
}

const char *locus_suggest_from(char *text, const char *word, locus_name_at name)
{
    const char *names[128];
    size_t count = 0;
    while (count < sizeof names / sizeof *names && name(count) != NULL) {
        names[count] = name(count);
        count++;
    }
    return locus_suggest(text, word, names, count);
}

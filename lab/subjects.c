/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/results.h"

/* In the order in which a report shows them. */
static const lab_subject subjects[] = {
    {"copy", "Copy", "em", "exact match", 0, 1,
     "Random symbols with repeats, then the same again. It takes exact alignment: content alone does "
     "not say which of two equal symbols comes next."},
    {"copy_unique", "Copy without repeats", "em", "exact match", 0, 1,
     "The same without repeats: content is enough, so a scheme that fails here fails for another "
     "reason than position."},
    {"reverse", "Reverse", "em", "exact match", 0, 1,
     "The symbols backwards: the distance to the right one grows by two at each step."},
    {"recall", "Recall", "em", "exact match", 0, 1,
     "Pairs of key and value, then the keys shuffled: which value belonged to each?"},
    {"addition", "Addition", "em", "exact match", 0, 1,
     "Two numbers and their sum, least digit first: two pointers at a distance that depends on the "
     "length."},
    {"parity", "Parity", "accuracy", "accuracy", 0, 0,
     "A control: no scheme is known to learn it beyond the trained length. Success would be a leak."},
    {"mod5", "Counting modulo 5", "accuracy", "accuracy", 0, 0, "A second control of that kind."},
    {"lookback", "Look back", "accuracy_k1", "accuracy", 0, 0,
     "One layer is asked for the symbol k steps back: which offsets can a scheme address at all?"},
    {"text", "Next byte", "bpc", "bits per byte", 1, 0,
     "A language model of bytes, read in windows of up to eight times the trained context."},
    {"masked", "Masked bytes", "loss", "loss", 1, 0,
     "An encoder fills in hidden spans. Without a causal mask only the scheme tells order."},
    {.name = NULL},
};

const lab_subject *lab_subject_at(size_t index)
{
    return index < sizeof subjects / sizeof *subjects - 1 ? &subjects[index] : NULL;
}

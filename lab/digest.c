/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/digest.h"

#include "core/memory.h"
#include "train/model.h"

enum {
    DIGEST_ROWS = 2,
    DIGEST_TOKENS = 70,
    DIGEST_STEPS = 3,
    DIGEST_WORDS = 41,
    DIGEST_NUMBERS = DIGEST_ROWS * DIGEST_TOKENS,
};

/* Numbers that repeat, so that the loss falls: token t of step s. */
static void set_batch(train_batch *batch, int step)
{
    for (int i = 0; i < DIGEST_NUMBERS; i++) {
        batch->token[i] = (i * i + 3 * step) % DIGEST_WORDS;
        batch->target[i] = ((i + 1) * (i + 1) + 3 * step) % DIGEST_WORDS;
        batch->weight[i] = i % 5 == 4 ? 0.0f : 1.0f;
    }
}

static locus_status take_steps(train_model *m, train_batch *batch, locus_error *error)
{
    const int64_t counted = DIGEST_NUMBERS - DIGEST_NUMBERS / 5;
    locus_status status = train_prepare(m, DIGEST_ROWS, DIGEST_TOKENS, 0, error);
    for (int step = 1; status == LOCUS_OK && step <= DIGEST_STEPS; step++) {
        set_batch(batch, step);
        status = train_forward(m, batch, NULL, error);
        if (status != LOCUS_OK) break;
        train_loss(m);
        status = train_backward(m, batch, NULL, counted, error);
        if (status != LOCUS_OK) break;
        train_adam(m, &(train_update){.step = step, .rate = 1e-2, .decay = 0.01});
    }
    return status;
}

locus_status lab_digest(const char *scheme, lab_digest_add add, void *context, locus_error *error)
{
    const train_shape shape = {.scheme = scheme,
                               .causal = 1,
                               .layers = 2,
                               .width = 48,
                               .heads = 2,
                               .vocabulary = DIGEST_WORDS,
                               .longest = DIGEST_TOKENS,
                               .position_rows = DIGEST_TOKENS,
                               .clip = 8,
                               .c2p = 1,
                               .p2c = 1};
    static int32_t token[DIGEST_NUMBERS], target[DIGEST_NUMBERS];
    static float weight[DIGEST_NUMBERS];
    train_batch batch = {.rows = DIGEST_ROWS,
                         .tokens = DIGEST_TOKENS,
                         .token = token,
                         .target = target,
                         .weight = weight};
    train_model *m = NULL;
    locus_status status = train_model_new(&m, &shape, 2026, 1, error);
    if (status != LOCUS_OK) return status;
    m->gradients = locus_allocate(NULL, m->list.floats, sizeof *m->gradients);
    status = m->gradients == NULL ? LOCUS_ERR_MEMORY : take_steps(m, &batch, error);
    for (size_t i = 0; status == LOCUS_OK && i < m->list.count; i++)
        add(context, m->weights + m->list.items[i].at, (int64_t)m->list.items[i].count);
    locus_release(NULL, m->gradients);
    m->gradients = NULL;
    train_model_free(m);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A body of locus serve: the first byte chooses the path, the rest is read into jobs or refused with
 * one line. No model is opened: what doors ask of one is what it describes. */
#include <stdlib.h>
#include <string.h>

#include "serve/server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MODELS = 3 };
static loaded kinds[MODELS] = {
    {.holders = 1, .info = {.head = LOCUS_MODEL_NO_HEAD, .layers = 2, .last_width = 8}},
    {.holders = 1, .info = {.head = LOCUS_MODEL_CLASSIFY, .layers = 2, .labels = 1}},
    {.holders = 1, .info = {.head = LOCUS_MODEL_GENERATE, .layers = 2}},
};
static served models[MODELS];
static const serve_options options = {
    .max_body = 64, .max_texts = 32, .max_new_tokens = 64, .max_memory = 1, .tokens_per_batch = 64};
static server server_here = {.options = &options, .models = models, .model_count = MODELS};

static void begin(void)
{
    static char names[MODELS][8] = {"embed", "rank", "write"};
    for (int i = 0; models[MODELS - 1].name == NULL && i < MODELS; i++) {
        pthread_mutex_init(&models[i].queue.lock, NULL);
        models[i].server = &server_here;
        models[i].model = &kinds[i];
        models[i].name = names[i];
    }
}

/* Jobs have something to do and lie in the body; a refusal has a status and one line. */
static void judge(const exchange *x)
{
    if (x->refused.status != 0) {
        if (x->refused.status < 400 || x->refused.text[0] == '\0') abort();
        if (strpbrk(x->refused.text, "\n\r\x1b") != NULL) abort();
        return;
    }
    if (x->model == NULL || x->job_count > options.max_texts) abort();
    for (size_t i = 0; i < x->job_count; i++)
        if (x->jobs[i]->ids == NULL && x->jobs[i]->input.text == NULL) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t doors = 0;
    begin();
    while (serve_door_at(doors) != NULL) doors++;
    if (size == 0) return 0;
    exchange *x = calloc(1, sizeof *x);
    x->server = &server_here;
    x->holders = 1;
    x->door = serve_door_at(data[0] % doors);
    x->bytes = size - 1;
    x->body = malloc(size);
    memcpy(x->body, data + 1, size - 1);
    pthread_mutex_init(&x->lock, NULL);
    atomic_fetch_add(&server_here.exchanges, 1);
    serve_exchange_read(x);
    if (x->door->read != NULL) judge(x);
    serve_exchange_release(x);
    return 0;
}

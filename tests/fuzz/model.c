/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/model.h"

#include <stdlib.h>
#include <string.h>

/* A message of one line, or the program ends. */
static void check_message(locus_status status, const locus_error *error)
{
    if ((status == LOCUS_OK) != (error->text[0] == '\0') || strchr(error->text, '\n') != NULL)
        abort();
}

int fuzz_describe(const model_family **family, model_description *d)
{
    model_settings s;
    const char *type = NULL;
    locus_error error = {""};
    locus_status status = model_settings_read(&s, fuzz_folder(), "config.json", NULL, &error);
    check_message(status, &error);
    if (status != LOCUS_OK) return 0;
    static locus_arena arena;
    const char *unread;
    *family = NULL;
    locus_arena_clear(&arena);
    *d = (model_description){.arena = &arena};
    status = model_setting_text(&s, "model_type", NULL, &type, &error);
    if (status == LOCUS_OK && type != NULL) *family = model_family_of(type, &s);
    if (*family != NULL) {
        status = (*family)->describe(&s, d, &error);
        if (status == LOCUS_OK) status = model_read_head(&s, *family, d, &unread, &error);
        check_message(status, &error);
    }
    model_settings_free(&s);
    return *family != NULL && status == LOCUS_OK;
}

static void read_slot(model_checkpoint *c, const model_description *d, model_slot slot)
{
    const int64_t count = model_slot_elements(d, slot);
    float *to = malloc((size_t)count * sizeof *to + 1);
    if (to == NULL) abort();
    for (int64_t l = 0; l < d->layers; l++) {
        locus_error error = {""};
        model_place place;
        locus_status status = model_checkpoint_find(c, slot, l, &place, &error);
        check_message(status, &error);
        if (status != LOCUS_OK) continue;
        status = model_checkpoint_values(c, &place, to, (uint64_t)count, &error);
        check_message(status, &error);
    }
    free(to);
}

void fuzz_read_tensors(void)
{
    static const char config[] =
        "{\"model_type\": \"bert\", \"hidden_size\": 4, \"num_hidden_layers\": 2, "
        "\"num_attention_heads\": 2, \"intermediate_size\": 6, \"vocab_size\": 8, "
        "\"max_position_embeddings\": 5}";
    static const model_family *family;
    static model_description d;
    model_checkpoint c;
    locus_error error = {""};
    if (family == NULL) {
        fuzz_put("config.json", config, sizeof config - 1);
        if (!fuzz_describe(&family, &d)) abort();
    }
    const locus_status status = model_checkpoint_open(&c, fuzz_folder(), family, &d, NULL, &error);
    check_message(status, &error);
    if (status != LOCUS_OK) return;
    for (int slot = 0; slot < SLOT_COUNT; slot++)
        if (model_slot_wanted(&d, (model_slot)slot)) read_slot(&c, &d, (model_slot)slot);
    model_checkpoint_close(&c);
}

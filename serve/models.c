/* SPDX-License-Identifier: Apache-2.0 */
/* Models are opened, described and swapped. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/text.h"
#include "serve/server.h"

int serve_embeds(const loaded *l)
{
    return l->info.modules ||
           (l->info.layers > 0 && l->info.features == 0 && l->info.head != LOCUS_MODEL_CLASSIFY &&
            l->info.head != LOCUS_MODEL_GENERATE);
}

int serve_classifies(const loaded *l) { return l->info.head == LOCUS_MODEL_CLASSIFY; }

int serve_writes(const loaded *l) { return l->info.head == LOCUS_MODEL_GENERATE; }

/* ---- one ---- */

static void unload(loaded *l)
{
    locus_tokenizer_close(l->tokenizer);
    locus_model_free(l->model);
    free(l);
}

static locus_status load(loaded **out, const server *s, const char *folder, locus_error *error)
{
    const locus_model_config config = {.size = sizeof config,
                                       .threads = s->options->threads,
                                       .isa = s->options->isa,
                                       .precision = s->options->precision};
    loaded *l = calloc(1, sizeof *l);
    if (l == NULL) return LOCUS_ERR_MEMORY;
    l->holders = 1;
    l->info.size = sizeof l->info;
    locus_status status = locus_model_open(&l->model, folder, &config, error);
    if (status == LOCUS_OK) status = locus_tokenizer_open(&l->tokenizer, folder, NULL, error);
    if (status != LOCUS_OK) {
        unload(l);
        return status;
    }
    locus_model_describe(l->model, &l->info);
    *out = l;
    return LOCUS_OK;
}

loaded *serve_hold(served *m)
{
    pthread_mutex_lock(&m->queue.lock);
    loaded *l = m->model;
    atomic_fetch_add(&l->holders, 1);
    pthread_mutex_unlock(&m->queue.lock);
    return l;
}

void serve_release(loaded *l)
{
    if (l != NULL && atomic_fetch_sub(&l->holders, 1) == 1) unload(l);
}

/* ---- all ---- */

/* "NAME=FOLDER", or the folder's own name. */
static int set_name(served *m, const char *given)
{
    const char *equal = strchr(given, '='), *slash;
    size_t length;
    if (equal != NULL && equal > given && memchr(given, '/', (size_t)(equal - given)) == NULL) {
        m->folder = equal + 1;
        m->name = strndup(given, (size_t)(equal - given));
        return m->name != NULL;
    }
    m->folder = given;
    for (length = strlen(given); length > 1 && given[length - 1] == '/';) length--;
    for (slash = given + length; slash > given && slash[-1] != '/';) slash--;
    m->name = strndup(slash, (size_t)(given + length - slash));
    return m->name != NULL;
}

static int check_names(const server *s)
{
    char quoted[160];
    for (size_t i = 0; i < s->model_count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(s->models[i].name, s->models[k].name) == 0)
                return cli_complain("serve", CLI_USAGE,
                                    "two models are called \"%s\"; NAME=FOLDER names one",
                                    text_quote(quoted, sizeof quoted, s->models[i].name));
    return CLI_DONE;
}

static int open_one(served *m, const char *given)
{
    locus_error error = {""};
    if (!set_name(m, given)) return cli_complain("serve", CLI_RESOURCES, "out of memory");
    const locus_status status = load(&m->model, m->server, m->folder, &error);
    if (status != LOCUS_OK) return cli_report("serve", status, m->folder, &error);
    if (m->model->info.features == 0) return CLI_DONE;
    return cli_complain("serve", CLI_REFUSED, "%s takes rows of numbers, expected a model of text",
                        given);
}

int serve_models_open(server *s)
{
    s->models = calloc(s->options->model_count, sizeof *s->models);
    if (s->models == NULL) return cli_complain("serve", CLI_RESOURCES, "out of memory");
    for (size_t i = 0; i < s->options->model_count; i++) {
        served *m = &s->models[s->model_count++];
        m->server = s;
        pthread_mutex_init(&m->queue.lock, NULL);
        pthread_cond_init(&m->queue.filled, NULL);
        const int exit_code = open_one(m, s->options->models[i]);
        if (exit_code != CLI_DONE) return exit_code;
    }
    return check_names(s);
}

void serve_models_close(server *s)
{
    for (size_t i = 0; i < s->model_count; i++) {
        served *m = &s->models[i];
        serve_release(m->model);
        serve_release(m->next);
        pthread_cond_destroy(&m->queue.filled);
        pthread_mutex_destroy(&m->queue.lock);
        free(m->name);
    }
    free(s->models);
}

void serve_models_reload(server *s)
{
    for (size_t i = 0; i < s->model_count; i++) {
        served *m = &s->models[i];
        loaded *fresh = NULL, *waited;
        locus_error error = {""};
        const locus_status status = load(&fresh, s, m->folder, &error);
        if (status != LOCUS_OK) {
            cli_report("serve", status, m->folder, &error);
            continue;
        }
        pthread_mutex_lock(&m->queue.lock);
        waited = m->next;
        m->next = fresh;
        pthread_cond_signal(&m->queue.filled);
        pthread_mutex_unlock(&m->queue.lock);
        serve_release(waited);
    }
}

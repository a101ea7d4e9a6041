/* SPDX-License-Identifier: Apache-2.0 */
/* Which path is which door, and the doors that need no job. */
#include <string.h>

#include "serve/server.h"

/* ---- what is here ---- */

static void write_model(json *j, const served *m)
{
    json_inline_object(j, NULL);
    json_text(j, "id", m->name);
    json_text(j, "object", "model");
    json_integer(j, "created", 0);
    json_text(j, "owned_by", "locus");
    json_end(j);
}

static void write_models(exchange *x, FILE *out)
{
    json j = {.out = out};
    json_inline_object(&j, NULL);
    json_text(&j, "object", "list");
    json_inline_array(&j, "data");
    for (size_t i = 0; i < x->server->model_count; i++) write_model(&j, &x->server->models[i]);
    json_end(&j);
    json_end(&j);
}

static void write_kind(json *j, const loaded *l)
{
    static const char *const pooling[] = {"cls",       "mean", "max",
                                          "last_token", "mean_sqrt_len", "weighted_mean"};
    json_inline_object(j, "model_type");
    json_inline_object(j, serve_classifies(l) ? l->info.labels == 1 ? "reranker" : "classifier"
                          : serve_writes(l)   ? "generator"
                                              : "embedding");
    if (serve_embeds(l))
        json_text(j, "pooling", l->info.pooling < sizeof pooling / sizeof *pooling ? pooling[l->info.pooling] : "other");
    if (serve_classifies(l)) {
        char key[24];
        json_inline_object(j, "id2label");
        for (int64_t c = 0; c < l->info.labels; c++) {
            snprintf(key, sizeof key, "%lld", (long long)c);
            json_text(j, key, locus_model_label(l->model, c));
        }
        json_end(j);
    }
    json_end(j);
    json_end(j);
}

/* Of the first model, as text-embeddings-inference serves one. */
static void write_info(exchange *x, FILE *out)
{
    const serve_options *o = x->server->options;
    json j = {.out = out};
    served *m = &x->server->models[0];
    loaded *l = serve_hold(m);
    json_inline_object(&j, NULL);
    json_text(&j, "model_id", m->name);
    json_text(&j, "model_sha", NULL);
    json_text(&j, "model_dtype", "float32");
    write_kind(&j, l);
    json_size(&j, "max_concurrent_requests", o->max_connections);
    json_integer(&j, "max_input_length", l->info.most_tokens);
    json_size(&j, "max_batch_tokens", o->tokens_per_batch);
    json_null(&j, "max_batch_requests");
    json_size(&j, "max_client_batch_size", o->max_texts);
    json_boolean(&j, "auto_truncate", (int)o->truncate);
    json_size(&j, "tokenization_workers", x->server->model_count);
    json_text(&j, "version", locus_version());
    json_null(&j, "sha");
    json_null(&j, "docker_label");
    json_end(&j);
    serve_release(l);
}

static void write_health(exchange *x, FILE *out)
{
    (void)x;
    fputs("{}\n", out);
}

static const door models = {"GET", "/v1/models", 1, NULL, write_models, NULL};
static const door info = {"GET", "/info", 0, NULL, write_info, NULL};
static const door health = {"GET", "/health", 0, NULL, write_health, NULL};
static const door ping = {"GET", "/ping", 0, NULL, write_health, NULL};
static const door metric = {"GET", "/metrics",          0,
                            NULL,  serve_metrics_write, "text/plain; version=0.0.4"};

/* ---- the root: whatever the first model is for ---- */

static void read_root(exchange *x, const json_value *body)
{
    loaded *l = serve_hold(&x->server->models[0]);
    x->door = serve_classifies(l)
                  ? locus_tree_get(body, "query") != NULL ? &serve_door_rerank : &serve_door_predict
                  : &serve_door_embed;
    serve_release(l);
    x->door->read(x, body);
}

static const door root = {"POST", "/", 0, read_root, NULL, NULL};

/* ---- all ---- */

static const door *const all[] = {
    &serve_door_embeddings,
    &serve_door_embeddings_short,
    &serve_door_completions,
    &serve_door_rank_jina,
    &serve_door_rank_cohere,
    &models,
    &serve_door_embed,
    &serve_door_predict,
    &serve_door_rerank,
    &serve_door_tokenize,
    &serve_door_decode,
    &info,
    &health,
    &ping,
    &metric,
    &root,
};

const door *serve_door_at(size_t index)
{
    return index < sizeof all / sizeof *all ? all[index] : NULL;
}

const door *serve_door(const char *method, const char *path, const char **others)
{
    const char *asked = strcmp(method, "HEAD") == 0 ? "GET" : method;
    for (size_t i = 0; serve_door_at(i) != NULL; i++) {
        if (strcmp(all[i]->path, path) != 0) continue;
        if (strcmp(all[i]->method, asked) == 0) return all[i];
        *others = all[i]->method;
    }
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Plans and workspaces outlive a call here, so that a small call stays cheap. A plan depends
 * on the configuration and on shapes alone; both are its key. */
#include <stdlib.h>
#include <string.h>

#include "native.h"

enum { MOST_PLANS = 64, MOST_WORKSPACES = 4, ALIGNMENT = 64 };
static const size_t most_plan_bytes = (size_t)64 << 20;      /* of all plans together  */
static const size_t most_workspace_bytes = (size_t)64 << 20; /* of one that is kept    */

static struct {
    uint64_t hash[MOST_PLANS]; /* beside each other, so that a search does not touch the plans */
    native_plan *plan[MOST_PLANS];
    size_t bytes;
    uint64_t clock, hits, misses;
} cache;

static native_workspace kept[MOST_WORKSPACES];

/* ---- keys ---- */

/* What a plan is made of, without padding that could differ. Tensors follow, each as
 * index, rank, type and shape. */
typedef struct key_head {
    const char *scheme;
    locus_options options;
    int64_t window_left, window_right, query_offset;
    int64_t key_offset, first_query, first_batch;
    double scale, softcap, dropout;
    uint64_t dropout_seed;
    uint64_t digest[2]; /* of the numbers that plans are made from: offsets, positions, maps */
    uint32_t level, heads, causal, threads, isa_given, path_given;
    char path[32], isa[32];
    char ceiling[32]; /* LOCUS_ISA, which every new plan reads */
} key_head;

typedef struct plan_key {
    key_head head;
    int64_t tensors[LOCUS_TENSOR_COUNT * (1 + LOCUS_MAX_RANK)];
    size_t bytes;
} plan_key;

uint32_t native_threads(uint32_t asked) { return asked != 0 ? asked : locus_default_threads(); }

/* 1 for the tensors whose numbers, not only shapes, a plan depends on. */
static int is_planned(const locus_tensor *t, const locus_tensors *shapes)
{
    return t->dtype == LOCUS_I64 || t == &shapes->frequencies;
}

/* Two sums over the bytes, so that 128 bits tell two maps apart. */
static void digest(uint64_t sums[2], const locus_tensor *t)
{
    const size_t words =
        (size_t)locus_tensor_elements(t) * locus_dtype_bytes(t->dtype) / sizeof(uint32_t);
    for (size_t i = 0; i < words && t->data != NULL; i++) {
        uint32_t word;
        memcpy(&word, (const char *)t->data + i * sizeof word, sizeof word);
        sums[0] = (sums[0] ^ word) * 1099511628211u;
        sums[1] = (sums[1] + word + 0x9E3779B97F4A7C15u) * 0xD1342543DE82EF95u;
        sums[1] ^= sums[1] >> 29;
    }
}

/* Every call of a training step has a seed of its own; its plan takes one after the other. */
static int is_reseeded(const native_config *config)
{
    return config->level == LOCUS_ATTEND && config->c.dropout > 0.0;
}

static void make_key(plan_key *key, const native_config *config, const locus_tensors *shapes)
{
    const locus_config *c = &config->c;
    key_head *head = &key->head;
    memset(head, 0, sizeof *head);
    head->scheme = c->scheme; /* the library's own string: one address per name */
    memcpy(&head->options, &c->options, sizeof head->options);
    head->window_left = c->window_left;
    head->window_right = c->window_right;
    head->query_offset = c->query_offset;
    head->key_offset = c->key_offset;
    head->first_query = c->first_query;
    head->first_batch = c->first_batch;
    head->scale = c->scale;
    head->softcap = c->softcap;
    head->dropout = c->dropout;
    head->dropout_seed = is_reseeded(config) ? 0 : c->dropout_seed;
    head->level = config->level;
    head->heads = c->heads;
    head->causal = c->causal;
    head->threads = native_threads(c->threads);
    head->isa_given = c->isa != NULL;
    head->path_given = c->path != NULL;
    memcpy(head->path, config->path, sizeof head->path);
    memcpy(head->isa, config->isa, sizeof head->isa);
    const char *ceiling = getenv("LOCUS_ISA");
    if (ceiling != NULL) strncpy(head->ceiling, ceiling, sizeof head->ceiling - 1);
    size_t used = 0;
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(shapes, i);
        if (t->rank == 0) continue;
        key->tensors[used++] = (int64_t)(i << 8 | (size_t)t->dtype << 3 | t->rank);
        for (uint32_t k = 0; k < t->rank; k++) key->tensors[used++] = t->shape[k];
        /* Numbers with gaps are refused by the library, before any plan is kept. */
        if (is_planned(t, shapes) && native_is_dense(t)) digest(head->digest, t);
    }
    key->bytes = offsetof(plan_key, tensors) + used * sizeof *key->tensors;
}

/* FNV-1a over words: every part of a key is a multiple of 8 bytes. */
_Static_assert(sizeof(key_head) % sizeof(uint64_t) == 0, "whole words");

static uint64_t hash_key(const plan_key *key)
{
    const unsigned char *bytes = (const unsigned char *)key;
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < key->bytes; i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        hash = (hash ^ word) * 1099511628211u;
        hash ^= hash >> 32;
    }
    return hash;
}

static int same_key(const native_plan *plan, const plan_key *key, uint64_t hash)
{
    return plan->hash == hash && plan->key_bytes == key->bytes &&
           memcmp(plan->key, key, key->bytes) == 0;
}

int native_plan_serves(const native_plan *plan, const native_config *config,
                       const locus_tensors *shapes)
{
    plan_key key;
    make_key(&key, config, shapes);
    return same_key(plan, &key, hash_key(&key));
}

/* ---- plans ---- */

static void *count_allocate(void *context, size_t bytes)
{
    size_t *counted = context;
    void *memory = aligned_alloc(ALIGNMENT, bytes);
    if (memory != NULL) *counted += bytes;
    return memory;
}

static void count_release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

void native_plan_drop(native_plan *plan)
{
    if (plan == NULL || --plan->references > 0) return;
    locus_plan_free(plan->attention);
    locus_layer_free(plan->layer);
    free(plan);
}

static native_plan *make_plan(const native_config *config, const locus_tensors *shapes,
                              const plan_key *key, uint64_t hash)
{
    native_plan *plan = calloc(1, sizeof *plan + key->bytes);
    if (plan == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    const locus_allocator allocator = {count_allocate, count_release, &plan->bytes};
    plan->allocator = allocator;
    plan->references = 1;
    plan->hash = hash;
    plan->key_bytes = key->bytes;
    memcpy(plan->key, key, key->bytes);
    locus_config c = config->c;
    c.allocator = &plan->allocator;
    c.threads = key->head.threads;
    locus_error error = {.text = ""};
    locus_status status = LOCUS_OK;
    Py_BEGIN_ALLOW_THREADS if (config->level == LOCUS_LAYER) status =
        locus_layer_new(&plan->layer, &c, shapes, &error);
    else status = locus_plan_new(&plan->attention, &c, shapes, &error);
    Py_END_ALLOW_THREADS if (status == LOCUS_OK) return plan;
    native_raise(status, error.text);
    native_plan_drop(plan);
    return NULL;
}

static void evict(size_t slot)
{
    native_plan *plan = cache.plan[slot];
    cache.plan[slot] = NULL;
    cache.bytes -= plan->bytes;
    native_plan_drop(plan);
}

/* A free slot, at the cost of the plans that were used longest ago. */
static size_t make_room(size_t bytes)
{
    for (;;) {
        size_t empty = MOST_PLANS, oldest = MOST_PLANS;
        for (size_t i = 0; i < MOST_PLANS; i++) {
            if (cache.plan[i] == NULL)
                empty = i;
            else if (oldest == MOST_PLANS || cache.plan[i]->last_use < cache.plan[oldest]->last_use)
                oldest = i;
        }
        if (empty < MOST_PLANS && cache.bytes + bytes <= most_plan_bytes) return empty;
        evict(oldest);
    }
}

native_plan *native_plan_for(const native_config *config, const locus_tensors *shapes)
{
    plan_key key;
    make_key(&key, config, shapes);
    const uint64_t hash = hash_key(&key);
    for (size_t i = 0; i < MOST_PLANS; i++) {
        if (cache.hash[i] != hash) continue;
        native_plan *plan = cache.plan[i];
        if (plan == NULL || !same_key(plan, &key, hash)) continue;
        if (is_reseeded(config)) {
            if (plan->references > 1) continue; /* another thread computes with its seed */
            locus_plan_reseed(plan->attention, config->c.dropout_seed);
        }
        plan->last_use = ++cache.clock;
        plan->references++;
        cache.hits++;
        return plan;
    }
    native_plan *plan = make_plan(config, shapes, &key, hash);
    if (plan == NULL) return NULL;
    cache.misses++;
    if (plan->bytes > most_plan_bytes) return plan; /* used once */
    /* Another thread may have kept its equal meanwhile; the older of the two goes first. */
    const size_t slot = make_room(plan->bytes);
    cache.plan[slot] = plan;
    cache.hash[slot] = hash;
    cache.bytes += plan->bytes;
    plan->last_use = ++cache.clock;
    plan->references++;
    return plan;
}

PyObject *native_cache_info(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    size_t plans = 0, held = 0;
    for (size_t i = 0; i < MOST_PLANS; i++) plans += cache.plan[i] != NULL ? 1 : 0;
    for (size_t i = 0; i < MOST_WORKSPACES; i++) held += kept[i].bytes;
    return Py_BuildValue("{snsnsnsKsK}", "plans", (Py_ssize_t)plans, "plan_bytes",
                         (Py_ssize_t)cache.bytes, "workspace_bytes", (Py_ssize_t)held, "hits",
                         (unsigned long long)cache.hits, "misses",
                         (unsigned long long)cache.misses);
}

PyObject *native_cache_clear(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    for (size_t i = 0; i < MOST_PLANS; i++)
        if (cache.plan[i] != NULL) evict(i);
    for (size_t i = 0; i < MOST_WORKSPACES; i++) {
        free(kept[i].memory);
        kept[i].memory = NULL;
        kept[i].bytes = 0;
    }
    Py_RETURN_NONE;
}

/* ---- workspaces ---- */

int native_take_workspace(native_workspace *workspace, size_t bytes)
{
    for (size_t i = 0; i < MOST_WORKSPACES; i++) {
        if (kept[i].bytes < bytes || kept[i].memory == NULL) continue;
        *workspace = kept[i];
        kept[i].memory = NULL;
        kept[i].bytes = 0;
        return 0;
    }
    const size_t padded = (bytes / ALIGNMENT + 1) * ALIGNMENT;
    workspace->memory = padded > bytes ? aligned_alloc(ALIGNMENT, padded) : NULL;
    workspace->bytes = padded;
    if (workspace->memory != NULL) return 0;
    native_refuse(LOCUS_ERR_MEMORY, "workspace: found no %zu bytes of memory", bytes);
    return -1;
}

void native_give_workspace(native_workspace workspace)
{
    size_t slot = 0;
    for (size_t i = 0; i < MOST_WORKSPACES; i++)
        if (kept[i].bytes < kept[slot].bytes) slot = i;
    if (workspace.bytes > most_workspace_bytes || workspace.bytes <= kept[slot].bytes) {
        free(workspace.memory);
        return;
    }
    free(kept[slot].memory);
    kept[slot] = workspace;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gguf.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/print.h"

/* ---- what is called what ---- */

static const gguf_name decoder_names[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"model.norm.weight", "output_norm.weight"},
    {"lm_head.weight", "output.weight"},
    {"model.layers.#.input_layernorm.weight", "blk.#.attn_norm.weight"},
    {"model.layers.#.self_attn.q_proj.weight", "blk.#.attn_q.weight"},
    {"model.layers.#.self_attn.q_proj.bias", "blk.#.attn_q.bias"},
    {"model.layers.#.self_attn.k_proj.weight", "blk.#.attn_k.weight"},
    {"model.layers.#.self_attn.k_proj.bias", "blk.#.attn_k.bias"},
    {"model.layers.#.self_attn.v_proj.weight", "blk.#.attn_v.weight"},
    {"model.layers.#.self_attn.v_proj.bias", "blk.#.attn_v.bias"},
    {"model.layers.#.self_attn.o_proj.weight", "blk.#.attn_output.weight"},
    {"model.layers.#.self_attn.q_norm.weight", "blk.#.attn_q_norm.weight"},
    {"model.layers.#.self_attn.k_norm.weight", "blk.#.attn_k_norm.weight"},
    {"model.layers.#.post_attention_layernorm.weight", "blk.#.ffn_norm.weight"},
    {"model.layers.#.mlp.gate_proj.weight", "blk.#.ffn_gate.weight"},
    {"model.layers.#.mlp.up_proj.weight", "blk.#.ffn_up.weight"},
    {"model.layers.#.mlp.down_proj.weight", "blk.#.ffn_down.weight"},
    {NULL, NULL},
};

static const gguf_key decoder_keys[] = {
    {"hidden_size", "embedding_length"},
    {"intermediate_size", "feed_forward_length"},
    {"num_hidden_layers", "block_count"},
    {"num_attention_heads", "attention.head_count"},
    {"num_key_value_heads", "?attention.head_count_kv"},
    {"head_dim", "?attention.key_length"},
    {"max_position_embeddings", "context_length"},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon"},
    {"rope_theta", "?rope.freq_base"},
    {NULL, NULL},
};

static const gguf_name bert_names[] = {
    {"embeddings.word_embeddings.weight", "token_embd.weight"},
    {"embeddings.position_embeddings.weight", "position_embd.weight"},
    {"embeddings.token_type_embeddings.weight", "token_types.weight"},
    {"embeddings.LayerNorm.weight", "token_embd_norm.weight"},
    {"embeddings.LayerNorm.bias", "token_embd_norm.bias"},
    {"encoder.layer.#.attention.self.query.weight", "blk.#.attn_q.weight"},
    {"encoder.layer.#.attention.self.query.bias", "blk.#.attn_q.bias"},
    {"encoder.layer.#.attention.self.key.weight", "blk.#.attn_k.weight"},
    {"encoder.layer.#.attention.self.key.bias", "blk.#.attn_k.bias"},
    {"encoder.layer.#.attention.self.value.weight", "blk.#.attn_v.weight"},
    {"encoder.layer.#.attention.self.value.bias", "blk.#.attn_v.bias"},
    {"encoder.layer.#.attention.output.dense.weight", "blk.#.attn_output.weight"},
    {"encoder.layer.#.attention.output.dense.bias", "blk.#.attn_output.bias"},
    {"encoder.layer.#.attention.output.LayerNorm.weight", "blk.#.attn_output_norm.weight"},
    {"encoder.layer.#.attention.output.LayerNorm.bias", "blk.#.attn_output_norm.bias"},
    {"encoder.layer.#.intermediate.dense.weight", "blk.#.ffn_up.weight"},
    {"encoder.layer.#.intermediate.dense.bias", "blk.#.ffn_up.bias"},
    {"encoder.layer.#.output.dense.weight", "blk.#.ffn_down.weight"},
    {"encoder.layer.#.output.dense.bias", "blk.#.ffn_down.bias"},
    {"encoder.layer.#.output.LayerNorm.weight", "blk.#.layer_output_norm.weight"},
    {"encoder.layer.#.output.LayerNorm.bias", "blk.#.layer_output_norm.bias"},
    {NULL, NULL},
};

static const gguf_key bert_keys[] = {
    {"hidden_size", "embedding_length"},
    {"intermediate_size", "feed_forward_length"},
    {"num_hidden_layers", "block_count"},
    {"num_attention_heads", "attention.head_count"},
    {"max_position_embeddings", "context_length"},
    {"layer_norm_eps", "attention.layer_norm_epsilon"},
    {NULL, NULL},
};

#define T5_STACK(name, stored)                                                                     \
    {name ".block.0.layer.0.SelfAttention.relative_attention_bias.weight",                         \
     stored ".blk.0.attn_rel_b.weight"},                                                           \
        {name ".block.#.layer.0.SelfAttention.q.weight", stored ".blk.#.attn_q.weight"},           \
        {name ".block.#.layer.0.SelfAttention.k.weight", stored ".blk.#.attn_k.weight"},           \
        {name ".block.#.layer.0.SelfAttention.v.weight", stored ".blk.#.attn_v.weight"},           \
        {name ".block.#.layer.0.SelfAttention.o.weight", stored ".blk.#.attn_o.weight"},           \
        {name ".block.#.layer.0.layer_norm.weight", stored ".blk.#.attn_norm.weight"},             \
    {                                                                                              \
        name ".final_layer_norm.weight", stored ".output_norm.weight"                              \
    }
#define T5_FORWARD(name, stored)                                                                   \
    {name ".DenseReluDense.wo.weight", stored ".blk.#.ffn_down.weight"},                           \
    {                                                                                              \
        name ".layer_norm.weight", stored ".blk.#.ffn_norm.weight"                                 \
    }
#define T5_CROSS(part) "decoder.block.#.layer.1." part ".weight"
#define T5_NAMES                                                                                   \
    {"shared.weight", "token_embd.weight"}, {"lm_head.weight", "output.weight"},                   \
        T5_STACK("encoder", "enc"), T5_STACK("decoder", "dec"),                                    \
        T5_FORWARD("encoder.block.#.layer.1", "enc"),                                              \
        T5_FORWARD("decoder.block.#.layer.2", "dec"),                                              \
        {T5_CROSS("EncDecAttention.q"), "dec.blk.#.cross_attn_q.weight"},                          \
        {T5_CROSS("EncDecAttention.k"), "dec.blk.#.cross_attn_k.weight"},                          \
        {T5_CROSS("EncDecAttention.v"), "dec.blk.#.cross_attn_v.weight"},                          \
        {T5_CROSS("EncDecAttention.o"), "dec.blk.#.cross_attn_o.weight"},                          \
    {                                                                                              \
        T5_CROSS("layer_norm"), "dec.blk.#.cross_attn_norm.weight"                                 \
    }

static const gguf_name t5_names[] = {
    T5_NAMES,
    {"encoder.block.#.layer.1.DenseReluDense.wi.weight", "enc.blk.#.ffn_up.weight"},
    {"decoder.block.#.layer.2.DenseReluDense.wi.weight", "dec.blk.#.ffn_up.weight"},
    {NULL, NULL},
};

static const gguf_name t5_gated_names[] = {
    T5_NAMES,
    {"encoder.block.#.layer.1.DenseReluDense.wi_0.weight", "enc.blk.#.ffn_gate.weight"},
    {"encoder.block.#.layer.1.DenseReluDense.wi_1.weight", "enc.blk.#.ffn_up.weight"},
    {"decoder.block.#.layer.2.DenseReluDense.wi_0.weight", "dec.blk.#.ffn_gate.weight"},
    {"decoder.block.#.layer.2.DenseReluDense.wi_1.weight", "dec.blk.#.ffn_up.weight"},
    {NULL, NULL},
};

static const gguf_key t5_keys[] = {
    {"d_model", "embedding_length"},
    {"d_kv", "attention.key_length"},
    {"d_ff", "feed_forward_length"},
    {"num_layers", "block_count"},
    {"num_decoder_layers", "?decoder_block_count"},
    {"num_heads", "attention.head_count"},
    {"relative_attention_num_buckets", "attention.relative_buckets_count"},
    {"layer_norm_epsilon", "attention.layer_norm_rms_epsilon"},
    {"decoder_start_token_id", "?decoder_start_token_id"},
    {NULL, NULL},
};

#define T5_GATE "enc.blk.0.ffn_gate.weight"

/* Of rows of one name the first whose tensor is there. */
static const gguf_architecture architectures[] = {
    {"llama", "llama", NULL, decoder_names, decoder_keys, "LlamaForCausalLM", 1},
    {"qwen2", "qwen2", NULL, decoder_names, decoder_keys, "Qwen2ForCausalLM", 0},
    {"qwen3", "qwen3", NULL, decoder_names, decoder_keys, "Qwen3ForCausalLM", 0},
    {"bert", "bert", NULL, bert_names, bert_keys, "BertModel", 0},
    {"t5", "t5", T5_GATE, t5_gated_names, t5_keys, "T5ForConditionalGeneration", 0},
    {"t5", "t5", NULL, t5_names, t5_keys, "T5ForConditionalGeneration", 0},
    {"t5encoder", "t5", T5_GATE, t5_gated_names, t5_keys, "T5EncoderModel", 0},
    {"t5encoder", "t5", NULL, t5_names, t5_keys, "T5EncoderModel", 0},
};
enum { ARCHITECTURES = sizeof architectures / sizeof *architectures };

int model_is_gguf(const char *path)
{
    const size_t bytes = strlen(path);
    return bytes > 5 && strcmp(path + bytes - 5, ".gguf") == 0;
}

const gguf_architecture *model_gguf_architecture(const locus_file *file)
{
    const char *name = locus_file_metadata(file, "general.architecture");
    for (size_t i = 0; name != NULL && i < ARCHITECTURES; i++) {
        const gguf_architecture *a = &architectures[i];
        if (strcmp(a->name, name) == 0 &&
            (a->gate == NULL || locus_file_find(file, a->gate) != NULL))
            return a;
    }
    return NULL;
}

/* ---- names ---- */

/* The digits that # stands for in `name`, or NULL; *digits counts them. */
static const char *match(const char *pattern, const char *name, int *digits)
{
    const char *mark = strchr(pattern, '#');
    const size_t before = mark == NULL ? strlen(pattern) : (size_t)(mark - pattern);
    *digits = 0;
    if (strncmp(pattern, name, before) != 0) return NULL;
    const char *layer = name + before;
    if (mark == NULL) return *layer == '\0' ? layer : NULL;
    while (layer[*digits] >= '0' && layer[*digits] <= '9') (*digits)++;
    return *digits > 0 && strcmp(mark + 1, layer + *digits) == 0 ? layer : NULL;
}

int model_gguf_name(const gguf_architecture *a, const char *name, char *out, size_t capacity)
{
    for (const gguf_name *n = a->names; n->name != NULL; n++) {
        int digits = 0;
        const char *layer = match(n->name, name, &digits), *mark = strchr(n->stored, '#');
        if (layer == NULL) continue;
        const int bytes = mark == NULL
                              ? snprintf(out, capacity, "%s", n->stored)
                              : snprintf(out, capacity, "%.*s%.*s%s", (int)(mark - n->stored),
                                         n->stored, digits, layer, mark + 1);
        return bytes > 0 && (size_t)bytes < capacity;
    }
    return 0;
}

static const char *value_of(const gguf_architecture *a, const locus_file *file, const char *key)
{
    char name[96];
    snprintf(name, sizeof name, "%s.%s", a->name, key);
    return locus_file_metadata(file, name);
}

uint64_t model_gguf_heads(const gguf_architecture *a, const locus_file *file, const char *stored)
{
    const char *heads = NULL;
    if (!a->in_pairs) return 0;
    if (strstr(stored, ".attn_k.") != NULL) heads = value_of(a, file, "attention.head_count_kv");
    if (heads == NULL && (strstr(stored, ".attn_k.") != NULL || strstr(stored, ".attn_q.") != NULL))
        heads = value_of(a, file, "attention.head_count");
    return heads == NULL ? 0 : strtoull(heads, NULL, 10);
}

/* ---- config.json ---- */

enum { CONFIG = 4096 };

typedef struct writer {
    const gguf_architecture *a;
    const locus_file *file;
    char text[CONFIG];
    size_t used;
    locus_error *error;
} writer;

static void put(writer *w, const char *format, ...) LOCUS_PRINTF(2, 3);
static void put(writer *w, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    locus_vprint(w->text + w->used, sizeof w->text - w->used, format, arguments);
    va_end(arguments);
    w->used += strlen(w->text + w->used);
}

static int is_number(const char *text)
{
    return text[0] != '\0' && strlen(text) < 32 && strspn(text, "+-.0123456789e") == strlen(text);
}

static locus_status put_keys(writer *w)
{
    for (const gguf_key *k = w->a->keys; k->key != NULL; k++) {
        const int optional = k->stored[0] == '?';
        const char *value = value_of(w->a, w->file, k->stored + optional);
        if (value == NULL && optional) continue;
        if (value == NULL || !is_number(value))
            return locus_fail(w->error, LOCUS_ERR_FORMAT, "%s.%s: found %s, expected a number",
                              w->a->name, k->stored + optional, value == NULL ? "none" : "another");
        put(w, ",\"%s\":%s", k->key, value);
    }
    return LOCUS_OK;
}

static uint64_t rows_of(const locus_file *file, const char *name)
{
    const locus_file_tensor *t = locus_file_find(file, name);
    return t != NULL && t->rank > 0 ? t->shape[0] : 0;
}

/* Tokens that begin and end a text. */
static void put_tokens(writer *w)
{
    static const gguf_key tokens[] = {{"bos_token_id", "tokenizer.ggml.bos_token_id"},
                                      {"eos_token_id", "tokenizer.ggml.eos_token_id"},
                                      {"pad_token_id", "tokenizer.ggml.padding_token_id"}};
    for (size_t i = 0; i < 3; i++) {
        const char *value = locus_file_metadata(w->file, tokens[i].stored);
        if (value != NULL && is_number(value)) put(w, ",\"%s\":%s", tokens[i].key, value);
    }
}

/* What is said by tensors that are there or not. */
static void put_shapes(writer *w)
{
    const int tied = locus_file_find(w->file, "output.weight") == NULL;
    put(w, ",\"vocab_size\":%" PRIu64 ",\"tie_word_embeddings\":%s",
        rows_of(w->file, "token_embd.weight"), tied ? "true" : "false");
    if (strcmp(w->a->type, "bert") == 0)
        put(w, ",\"type_vocab_size\":%" PRIu64, rows_of(w->file, "token_types.weight"));
    if (strcmp(w->a->type, "t5") == 0)
        put(w, ",\"feed_forward_proj\":\"%s\"", w->a->gate != NULL ? "gated-gelu" : "relu");
}

/* What makes one vector of a text. */
static locus_status put_pooling(writer *w)
{
    const char *kind = value_of(w->a, w->file, "pooling_type");
    if (kind == NULL || strcmp(kind, "0") == 0 || strcmp(kind, "1") == 0) return LOCUS_OK;
    if (strcmp(kind, "2") != 0)
        return locus_fail(w->error, LOCUS_ERR_FORMAT,
                          "%s.pooling_type: found another, expected 1, the mean, or 2, the first "
                          "token",
                          w->a->name);
    put(w, ",\"gguf_pooling\":\"cls\"");
    return LOCUS_OK;
}

/* 0: there is none. */
static int64_t whole_of(const writer *w, const char *key)
{
    const char *value = value_of(w->a, w->file, key);
    return value == NULL ? 0 : strtoll(value, NULL, 10);
}

/* Positions that are none of config.json's: scaled ones, a part of a head, frequencies as a table. */
static locus_status check_positions(const writer *w)
{
    const char *scaling = value_of(w->a, w->file, "rope.scaling.type");
    const char *turned = value_of(w->a, w->file, "rope.dimension_count");
    const int64_t width = whole_of(w, "embedding_length"),
                  heads = whole_of(w, "attention.head_count");
    int64_t head = whole_of(w, "attention.key_length");
    if (scaling != NULL && strcmp(scaling, "none") != 0)
        return locus_fail(w->error, LOCUS_ERR_FORMAT,
                          "%s.rope.scaling.type: found another, expected none", w->a->name);
    if (locus_file_find(w->file, "rope_freqs.weight") != NULL)
        return locus_fail(w->error, LOCUS_ERR_FORMAT,
                          "tensor rope_freqs.weight: found scaled positions, expected none");
    if (head == 0 && heads > 0) head = width / heads;
    if (turned == NULL || whole_of(w, "rope.dimension_count") == head) return LOCUS_OK;
    return locus_fail(w->error, LOCUS_ERR_FORMAT,
                      "%s.rope.dimension_count: found %s, expected all of a head, %" PRId64,
                      w->a->name, turned, head);
}

static locus_status write_config(writer *w)
{
    char text[64];
    const char *name = locus_file_metadata(w->file, "general.architecture");
    w->a = model_gguf_architecture(w->file);
    if (name == NULL) name = "none";
    if (w->a == NULL)
        return locus_fail(w->error, LOCUS_ERR_FORMAT,
                          "general.architecture: found %s, expected llama, qwen2, qwen3, bert, t5 "
                          "or t5encoder",
                          locus_escape(text, sizeof text, name, strlen(name)));
    LOCUS_TRY(check_positions(w));
    put(w, "{\"model_type\":\"%s\",\"architectures\":[\"%s\"]", w->a->type, w->a->classes);
    LOCUS_TRY(put_keys(w));
    put_tokens(w);
    put_shapes(w);
    LOCUS_TRY(put_pooling(w));
    put(w, "}");
    return LOCUS_OK;
}

locus_status model_gguf_settings(model_settings *s, const char *path,
                                 const locus_allocator *allocator, locus_error *error)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    writer w = {.error = error};
    locus_file *file = NULL;
    LOCUS_TRY(locus_weights_open(&file, path, allocator, error));
    w.file = file;
    locus_status status = write_config(&w);
    if (status == LOCUS_OK)
        status = model_settings_parse(s, name, w.text, allocator, error);
    else
        locus_fail_in(error, status, name);
    locus_file_close(file);
    return status;
}

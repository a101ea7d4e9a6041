/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "model/folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/blocks.h"
#include "model/pass.h"
#include "support/problem.h"

#define SIZES                                                                                      \
    "\"hidden_size\": 24, \"num_hidden_layers\": 2, \"num_attention_heads\": 3, "                  \
    "\"intermediate_size\": 40, \"vocab_size\": 50"
#define T5                                                                                         \
    "\"d_model\": 24, \"num_layers\": 2, \"num_heads\": 3, \"d_kv\": 10, \"d_ff\": 40, "           \
    "\"vocab_size\": 50"
#define BART                                                                                       \
    "\"d_model\": 24, \"encoder_layers\": 2, \"decoder_layers\": 2, "                              \
    "\"encoder_attention_heads\": 3, \"decoder_attention_heads\": 2, \"encoder_ffn_dim\": 40, "    \
    "\"decoder_ffn_dim\": 30, \"vocab_size\": 50, \"max_position_embeddings\": 40"
#define V3                                                                                         \
    "\"model_type\": \"deberta-v2\", " SIZES ", \"relative_attention\": true, "                    \
    "\"max_position_embeddings\": 32, \"type_vocab_size\": 0, \"position_biased_input\": false"

const test_model test_models[] = {
    {"bert", "bert", "{\"model_type\": \"bert\", " SIZES ", \"max_position_embeddings\": 40}"},
    {"bert-relative", "bert",
     "{\"model_type\": \"bert\", " SIZES ", \"max_position_embeddings\": 40, "
     "\"position_embedding_type\": \"relative_key_query\", \"hidden_act\": \"relu\"}"},
    {"roberta", "roberta",
     "{\"model_type\": \"roberta\", " SIZES ", \"max_position_embeddings\": 42, "
     "\"type_vocab_size\": 1, \"pad_token_id\": 1}"},
    {"xlm-roberta", "xlm-roberta",
     "{\"model_type\": \"xlm-roberta\", " SIZES ", \"max_position_embeddings\": 42}"},
    {"electra", "electra",
     "{\"model_type\": \"electra\", " SIZES ", \"max_position_embeddings\": 40, "
     "\"embedding_size\": 16}"},
    {"albert", "albert",
     "{\"model_type\": \"albert\", " SIZES ", \"max_position_embeddings\": 40, "
     "\"embedding_size\": 24}"},
    {"distilbert", "distilbert",
     "{\"model_type\": \"distilbert\", \"dim\": 24, \"n_layers\": 2, \"n_heads\": 3, "
     "\"hidden_dim\": 40, \"vocab_size\": 50, \"max_position_embeddings\": 40}"},
    {"mpnet", "mpnet", "{\"model_type\": \"mpnet\", " SIZES ", \"max_position_embeddings\": 42}"},
    {"deberta-v3", "deberta-v2",
     "{" V3 ", \"pos_att_type\": [\"p2c\", \"c2p\"], \"share_att_key\": true, "
     "\"position_buckets\": 8, \"norm_rel_ebd\": \"layer_norm\"}"},
    {"deberta-v2", "deberta-v2",
     "{" V3 ", \"pos_att_type\": \"c2p|p2c\", \"conv_kernel_size\": 3, \"conv_groups\": 2, "
     "\"max_relative_positions\": 9}"},
    {"deberta", "deberta",
     "{\"model_type\": \"deberta\", " SIZES ", \"relative_attention\": true, "
     "\"max_position_embeddings\": 40, \"type_vocab_size\": 0, \"pos_att_type\": \"c2p|p2c\", "
     "\"max_relative_positions\": 12}"},
    {"roformer", "roformer",
     "{\"model_type\": \"roformer\", " SIZES ", \"max_position_embeddings\": 40, "
     "\"embedding_size\": 16}"},
    {"bert-classify", "bert",
     "{\"model_type\": \"bert\", " SIZES ", \"max_position_embeddings\": 40, \"architectures\": "
     "[\"BertForSequenceClassification\"], \"id2label\": {\"0\": \"no\", \"1\": \"yes\", \"2\": "
     "\"perhaps\"}}"},
    {"distilbert-tokens", "distilbert",
     "{\"model_type\": \"distilbert\", \"dim\": 24, \"n_layers\": 2, \"n_heads\": 3, "
     "\"hidden_dim\": 40, \"vocab_size\": 50, \"max_position_embeddings\": 40, \"architectures\": "
     "[\"DistilBertForTokenClassification\"]}"},
    {"bert-fill", "bert",
     "{\"model_type\": \"bert\", " SIZES ", \"max_position_embeddings\": 40, \"architectures\": "
     "[\"BertForMaskedLM\"], \"tie_word_embeddings\": false}"},
    {"albert-fill", "albert",
     "{\"model_type\": \"albert\", " SIZES ", \"max_position_embeddings\": 40, "
     "\"embedding_size\": 16, \"architectures\": [\"AlbertForPreTraining\"]}"},
    {"xlnet-fill", "xlnet",
     "{\"model_type\": \"xlnet\", \"d_model\": 24, \"n_layer\": 2, \"n_head\": 3, \"d_inner\": 40, "
     "\"vocab_size\": 50, \"clamp_len\": 9, \"architectures\": [\"XLNetLMHeadModel\"]}"},
    {"xlnet-classify", "xlnet",
     "{\"model_type\": \"xlnet\", \"d_model\": 24, \"n_layer\": 2, \"n_head\": 3, \"d_inner\": 40, "
     "\"vocab_size\": 50, \"architectures\": [\"XLNetForSequenceClassification\"]}"},
    {"bert-spans", "bert",
     "{\"model_type\": \"bert\", " SIZES ", \"max_position_embeddings\": 40, \"architectures\": "
     "[\"BertForQuestionAnswering\"]}"},
    {"vits", "vits",
     "{\"model_type\": \"vits\", \"hidden_size\": 24, \"num_hidden_layers\": 2, "
     "\"num_attention_heads\": 2, \"ffn_dim\": 40, \"vocab_size\": 50, \"window_size\": 4, \"flow_size\": 9}"},
    {"wav2vec2-bert", "wav2vec2-bert",
     "{\"model_type\": \"wav2vec2-bert\", " SIZES ", \"feature_projection_input_dim\": 10, "
     "\"conv_depthwise_kernel_size\": 5, \"left_max_position_embeddings\": 6}"},
    {"wav2vec2-conformer", "wav2vec2-conformer",
     "{\"model_type\": \"wav2vec2-conformer\", " SIZES ", \"conv_dim\": [16, 10], "
     "\"conv_depthwise_kernel_size\": 5}"},
    {"wav2vec2-rotary", "wav2vec2-conformer",
     "{\"model_type\": \"wav2vec2-conformer\", " SIZES ", \"conv_dim\": [16, 10], "
     "\"conv_depthwise_kernel_size\": 5, \"position_embeddings_type\": \"rotary\"}"},
    {"transfo-xl", "transfo-xl",
     "{\"model_type\": \"transfo-xl\", \"d_model\": 24, \"n_layer\": 2, \"n_head\": 3, "
     "\"d_head\": 10, \"d_inner\": 40, \"d_embed\": 16, \"vocab_size\": 50, \"cutoffs\": [10, 30], "
     "\"div_val\": 2, \"mem_len\": 12, \"clamp_len\": 20}"},
    {"lab-tupe", "locus-lab",
     "{\"model_type\": \"locus-lab\", \"width\": 24, \"layers\": 2, \"heads\": 3, "
     "\"vocabulary\": 50, \"causal\": false, \"scheme\": \"tupe\", \"positions\": 64}"},
    {"t5", "t5", "{\"model_type\": \"t5\", " T5 "}"},
    {"mt5", "mt5", "{\"model_type\": \"mt5\", " T5 ", \"feed_forward_proj\": \"gated-gelu\"}"},
    {"umt5", "umt5",
     "{\"model_type\": \"umt5\", " T5 ", \"feed_forward_proj\": \"gated-silu\", "
     "\"relative_attention_num_buckets\": 8, \"relative_attention_max_distance\": 20}"},
    {"llama", "llama",
     "{\"model_type\": \"llama\", " SIZES ", \"num_key_value_heads\": 1, "
     "\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 2.0}}"},
    {"qwen2", "qwen2",
     "{\"model_type\": \"qwen2\", " SIZES ", \"num_key_value_heads\": 1, \"use_sliding_window\": "
     "true, \"sliding_window\": 3, \"max_window_layers\": 1}"},
    {"mistral", "mistral",
     "{\"model_type\": \"mistral\", " SIZES ", \"num_key_value_heads\": 3, \"sliding_window\": 4}"},
    {"qwen3", "qwen3",
     "{\"model_type\": \"qwen3\", " SIZES ", \"num_key_value_heads\": 1, \"head_dim\": 10, "
     "\"attention_bias\": true, \"tie_word_embeddings\": true}"},
    {"phi3", "phi3",
     "{\"model_type\": \"phi3\", " SIZES ", \"max_position_embeddings\": 64, "
     "\"partial_rotary_factor\": 0.5, \"original_max_position_embeddings\": 12, "
     "\"rope_scaling\": {\"type\": \"longrope\", \"short_factor\": [1, 1.5], "
     "\"long_factor\": [2, 3]}}"},
    {"gemma", "gemma",
     "{\"model_type\": \"gemma\", " SIZES ", \"num_key_value_heads\": 3, "
     "\"head_dim\": 8}"},
    {"gemma2", "gemma2",
     "{\"model_type\": \"gemma2\", " SIZES ", \"num_key_value_heads\": 1, \"head_dim\": 8, "
     "\"sliding_window\": 5, \"attn_logit_softcapping\": 2.0, \"final_logit_softcapping\": 3.0, "
     "\"query_pre_attn_scalar\": 12}"},
    {"gemma3", "gemma3_text",
     "{\"model_type\": \"gemma3_text\", " SIZES ", \"num_key_value_heads\": 1, \"head_dim\": 8, "
     "\"sliding_window\": 5, \"sliding_window_pattern\": 2, \"rope_scaling\": {\"rope_type\": "
     "\"linear\", \"factor\": 4.0}}"},
    {"gemma3-both", "gemma3_text",
     "{\"model_type\": \"gemma3_text\", " SIZES ", \"num_key_value_heads\": 1, \"head_dim\": 8, "
     "\"sliding_window\": 8, \"sliding_window_pattern\": 2, \"use_bidirectional_attention\": true, "
     "\"architectures\": [\"Gemma3TextModel\"]}"},
    {"gpt-neox", "gpt_neox",
     "{\"model_type\": \"gpt_neox\", " SIZES
     ", \"rotary_pct\": 0.5, \"use_parallel_residual\": false}"},
    {"gptj", "gptj",
     "{\"model_type\": \"gptj\", \"n_embd\": 24, \"n_layer\": 2, \"n_head\": 3, \"rotary_dim\": 4, "
     "\"vocab_size\": 50, \"n_positions\": 40}"},
    {"falcon", "falcon",
     "{\"model_type\": \"falcon\", " SIZES
     ", \"ffn_hidden_size\": 40, \"new_decoder_architecture\": "
     "true, \"num_kv_heads\": 1, \"bias\": true}"},
    {"llama-classify", "llama",
     "{\"model_type\": \"llama\", " SIZES ", \"num_key_value_heads\": 1, \"num_labels\": 1, "
     "\"rope_parameters\": {\"rope_theta\": 5000.0, \"rope_type\": \"default\"}, "
     "\"architectures\": [\"LlamaForSequenceClassification\"]}"},
    {"gpt2-tokens", "gpt2",
     "{\"model_type\": \"gpt2\", \"n_embd\": 24, \"n_layer\": 2, \"n_head\": 3, "
     "\"vocab_size\": 50, \"n_positions\": 40, \"architectures\": [\"GPT2ForTokenClassification\"]}"},
    {"bloom-base", "bloom",
     "{\"model_type\": \"bloom\", \"hidden_size\": 24, \"n_layer\": 2, \"n_head\": 3, "
     "\"vocab_size\": 50, \"architectures\": [\"BloomModel\"]}"},
    {"gpt2", "gpt2",
     "{\"model_type\": \"gpt2\", \"n_embd\": 24, \"n_layer\": 2, \"n_head\": 3, "
     "\"vocab_size\": 50, \"n_positions\": 40}"},
    {"opt", "opt",
     "{\"model_type\": \"opt\", \"hidden_size\": 24, \"num_hidden_layers\": 2, "
     "\"num_attention_heads\": 3, \"ffn_dim\": 40, \"vocab_size\": 50, "
     "\"max_position_embeddings\": 40}"},
    {"opt-narrow", "opt",
     "{\"model_type\": \"opt\", \"hidden_size\": 24, \"num_hidden_layers\": 2, "
     "\"num_attention_heads\": 3, \"ffn_dim\": 40, \"vocab_size\": 50, "
     "\"max_position_embeddings\": 40, \"word_embed_proj_dim\": 16, "
     "\"do_layer_norm_before\": false}"},
    {"bloom", "bloom",
     "{\"model_type\": \"bloom\", \"hidden_size\": 24, \"n_layer\": 2, \"n_head\": 3, "
     "\"vocab_size\": 50}"},
    {"mpt", "mpt",
     "{\"model_type\": \"mpt\", \"d_model\": 24, \"n_layers\": 2, \"n_heads\": 3, "
     "\"vocab_size\": 50, \"max_seq_len\": 60}"},
    {"t5-decoder", "t5",
     "{\"model_type\": \"t5\", " T5 ", \"architectures\": [\"T5ForConditionalGeneration\"], "
     "\"decoder_start_token_id\": 0}"},
    {"umt5-decoder", "umt5",
     "{\"model_type\": \"umt5\", " T5 ", \"architectures\": [\"UMT5ForConditionalGeneration\"], "
     "\"tie_word_embeddings\": false, \"num_decoder_layers\": 1}"},
    {"marian", "marian",
     "{\"model_type\": \"marian\", \"d_model\": 24, \"encoder_layers\": 2, "
     "\"decoder_layers\": 2, \"encoder_attention_heads\": 3, \"decoder_attention_heads\": 2, "
     "\"encoder_ffn_dim\": 40, \"decoder_ffn_dim\": 30, \"vocab_size\": 50, "
     "\"max_position_embeddings\": 40, \"scale_embedding\": true, "
     "\"architectures\": [\"MarianMTModel\"]}"},
    {"modernbert", "modernbert",
     "{\"model_type\": \"modernbert\", " SIZES ", \"local_attention\": 6, "
     "\"global_attn_every_n_layers\": 2, \"architectures\": [\"ModernBertModel\"]}"},
    {"nomic-bert", "nomic_bert",
     "{\"model_type\": \"nomic_bert\", \"n_embd\": 24, \"n_layer\": 2, \"n_head\": 3, "
     "\"n_inner\": 256, \"vocab_size\": 50, \"activation_function\": \"swiglu\", "
     "\"rotary_emb_fraction\": 1.0, \"qkv_proj_bias\": false, \"mlp_fc1_bias\": false, "
     "\"mlp_fc2_bias\": false}"},
    {"jina-bert", "jina_bert",
     "{\"model_type\": \"bert\", " SIZES ", \"max_position_embeddings\": 40, "
     "\"position_embedding_type\": \"alibi\", \"feed_forward_type\": \"geglu\"}"},
    {"bart", "bart",
     "{\"model_type\": \"bart\", " BART ", \"scale_embedding\": true, "
     "\"architectures\": [\"BartForConditionalGeneration\"]}"},
    {"m2m_100", "m2m_100",
     "{\"model_type\": \"m2m_100\", " BART ", \"scale_embedding\": true, "
     "\"architectures\": [\"M2M100ForConditionalGeneration\"]}"},
    {"mbart", "mbart",
     "{\"model_type\": \"mbart\", " BART ", \"tie_word_embeddings\": false, "
     "\"architectures\": [\"MBartForConditionalGeneration\"]}"},
    {"pegasus", "pegasus",
     "{\"model_type\": \"pegasus\", " BART ", "
     "\"architectures\": [\"PegasusForConditionalGeneration\"]}"},
};
const size_t test_model_count = sizeof test_models / sizeof *test_models;

static void stop(const char *what)
{
    perror(what);
    exit(2);
}

const char *test_folder(const char *name)
{
    static char path[512];
    const char *base = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/locus-model-%ld-%s", base != NULL ? base : "/tmp",
             (long)getpid(), name);
    return path;
}

void write_text(const char *folder, const char *name, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(text, 1, strlen(text), file) != strlen(text) || fclose(file) != 0)
        stop(path);
}

void remove_model(const char *path)
{
    static const char *const names[] = {"config.json",           "model.safetensors",
                                        "modules.json",          "one.safetensors",
                                        "two.safetensors",       "model.safetensors.index.json",
                                        "1_Pooling/config.json", "generation_config.json"};
    char file[1024];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(file, sizeof file, "%s/%s", path, names[i]);
        (void)unlink(file);
    }
    snprintf(file, sizeof file, "%s/1_Pooling", path);
    (void)rmdir(file);
    (void)rmdir(path);
}

/* ---- weights ---- */

typedef struct writer {
    const folder_change *change;
    locus_file_writer *files[2];
    void *blocks[1024]; /* borrowed by the files until they are committed */
    char names[1024][96];
    size_t count;
} writer;

/* The bits of a number in the file's type; float to half only for what a half holds. */
static size_t store(void *to, const char *dtype, double number)
{
    const float single = (float)number;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    if (strcmp(dtype, "F64") == 0) return memcpy(to, &number, 8), 8;
    if (strcmp(dtype, "F32") == 0) return memcpy(to, &single, 4), 4;
    const uint16_t upper = (uint16_t)(bits >> 16);
    const int exponent = (int)(bits >> 23 & 255) - 112;
    const uint16_t half =
        (uint16_t)((bits >> 16 & 0x8000) |
                   (exponent <= 0 ? 0 : (uint32_t)exponent << 10 | (bits >> 13 & 1023)));
    memcpy(to, strcmp(dtype, "F16") == 0 ? &half : &upper, 2);
    return 2;
}

static void put(writer *w, const char *name, const uint64_t *wanted, size_t rank)
{
    const char *dtype = w->change->dtype != NULL ? w->change->dtype : "F32";
    uint64_t shape[4], elements = 1;
    locus_error error = {""};
    memcpy(shape, wanted, rank * sizeof *shape);
    if (w->change->without != NULL && strstr(name, w->change->without) != NULL) return;
    if (w->change->wrong != NULL && strstr(name, w->change->wrong) != NULL) shape[rank - 1]++;
    for (size_t i = 0; i < rank; i++) elements *= shape[i];
    unsigned char *data = malloc((size_t)elements * 8 + 8), *at = data;
    if (data == NULL || w->count == 1024) stop("memory");
    const double scale = w->change->scale > 0.0 ? w->change->scale : 0.1;
    const double middle =
        strstr(name, "orm.weight") != NULL || strstr(name, "running_var") != NULL ? 1.0 : 0.0;
    for (uint64_t i = 0; i < elements; i++)
        at += store(at, dtype, middle + scale * (2.0 * test_uniform(w->count, i) - 1.0));
    locus_file_writer *file = w->files[w->change->shards ? w->count % 2 : 0];
    snprintf(w->names[w->count], sizeof *w->names, "%s", name);
    w->blocks[w->count++] = data;
    if (locus_file_put(file, name, dtype, (uint32_t)rank, shape, data, &error) != LOCUS_OK)
        stop(error.text);
}

static void put_named(writer *w, const model_description *d, model_slot slot, const char *name)
{
    uint64_t shape[4];
    const size_t rank = model_slot_shape(d, slot, shape);
    put(w, name, shape, rank);
}

static void put_slot(writer *w, const model_family *family, const model_description *d,
                     model_slot slot)
{
    const model_name *n = family->names;
    while (n->name != NULL && n->slot != slot) n++;
    if (n->name == NULL) n = model_head_names;
    while (n->name != NULL && n->slot != slot) n++;
    if (n->name == NULL) return;
    const char *mark = strchr(n->name, '#');
    for (int64_t l = 0; l < (mark != NULL ? d->layers : 1); l++) {
        char name[256];
        if (mark == NULL)
            snprintf(name, sizeof name, "%s%s", family->prefixes[0], n->name);
        else
            snprintf(name, sizeof name, "%s%.*s%" PRId64 "%s", family->prefixes[0],
                     (int)(mark - n->name), n->name, l, mark + 1);
        put_named(w, d, slot, name);
    }
}

int names_its_own(const model_family *family)
{
    return family->wiring != NULL && family->wiring->block != NULL;
}

/* What a family asks for that appends its layers itself. */
static void hear(void *listener, const char *name, const uint64_t *shape, size_t rank)
{
    const writer *w = listener;
    for (size_t i = 0; i < w->count; i++)
        if (strcmp(w->names[i], name) == 0) return; /* asked for twice */
    put(listener, name, shape, rank);
}

static void put_asked(writer *w, const model_family *family, const model_description *d)
{
    locus_error error = {""};
    locus_model m = {.family = family, .stack_count = 1, .stacks = {*d}};
    model_checkpoint c = {.listen = hear, .listener = w};
    if (m.stacks[0].kv_heads == 0) m.stacks[0].kv_heads = d->heads;
    m.workers = (locus_workers){.kernels = locus_kernels_pick(NULL), .threads = 1};
    if (model_assemble(&m, &c, &error) != LOCUS_OK) stop(error.text);
    program_free(&m.program);
}

/* Everything that a stack of layers wants. */
static void put_stack(writer *w, const model_family *family, const model_description *d)
{
    for (int slot = 0; slot < SLOT_COUNT; slot++)
        if (model_slot_wanted(d, (model_slot)slot) ||
            (slot == SLOT_EMBEDDING_MAP_BIAS && model_slot_wanted(d, SLOT_EMBEDDING_MAP)))
            put_slot(w, family, d, (model_slot)slot);
}

static void write_index(const char *path)
{
    write_text(path, "model.safetensors.index.json",
               "{\"metadata\": {}, \"weight_map\": {\"a\": \"one.safetensors\", \"b\": "
               "\"two.safetensors\", \"c\": \"one.safetensors\"}}");
}

/* Parts of a word table, each with its map. */
static void put_clusters(writer *w, const model_family *family, const model_description *d)
{
    for (int64_t i = 0, first = 0; i < d->clusters; first = d->cluster_end[i++]) {
        model_description own = *d;
        char name[128];
        own.vocabulary = d->cluster_end[i] - first;
        own.embedding_width = d->cluster_width[i];
        snprintf(name, sizeof name, "%sword_emb.emb_layers.%d.weight", family->prefixes[0], (int)i);
        put_named(w, &own, SLOT_WORD, name);
        snprintf(name, sizeof name, "%sword_emb.emb_projs.%d", family->prefixes[0], (int)i);
        put_named(w, &own, SLOT_EMBEDDING_MAP, name);
    }
}

void write_model(const char *path, const test_model *model, const folder_change *change)
{
    static const folder_change none = {.without = NULL};
    static const char *const names[2][2] = {{"model.safetensors", NULL},
                                            {"one.safetensors", "two.safetensors"}};
    model_settings settings;
    locus_arena arena = {.allocator = NULL};
    model_description d = {.arena = &arena};
    locus_error error = {""};
    static writer w;
    w = (writer){.change = change != NULL ? change : &none};
    char file[1024];
    const char *unread = NULL;
    const model_family *family = model_family_find(model->type);
    (void)mkdir(path, 0700);
    write_text(path, "config.json", model->config);
    if (family == NULL ||
        model_settings_read(&settings, path, "config.json", NULL, &error) != LOCUS_OK ||
        family->describe(&settings, &d, &error) != LOCUS_OK ||
        model_read_head(&settings, family, &d, &unread, &error) != LOCUS_OK)
        stop(error.text);
    model_description decoder = {.width = 0};
    if (family->decoder != NULL && model_setting_find(&settings, "architectures.0") != NULL) {
        decoder = d;
        if (family->decoder->describe(&settings, &decoder, &error) != LOCUS_OK) stop(error.text);
    }
    model_settings_free(&settings);
    for (int i = 0; i <= w.change->shards; i++) {
        snprintf(file, sizeof file, "%s/%s", path, names[w.change->shards][i]);
        if (locus_file_create(&w.files[i], file, NULL, &error) != LOCUS_OK) stop(error.text);
    }
    if (names_its_own(family))
        put_asked(&w, family, &d);
    else
        put_stack(&w, family, &d);
    if (decoder.width > 0) put_stack(&w, family->decoder, &decoder);
    put_clusters(&w, family, &d);
    for (int i = 0; i <= w.change->shards; i++)
        if (locus_file_commit(w.files[i], &error) != LOCUS_OK) stop(error.text);
    for (size_t i = 0; i < w.count; i++) free(w.blocks[i]);
    locus_arena_clear(&arena);
    if (w.change->shards) write_index(path);
}

int has_decoder(const locus_model *model) { return model->stack_count > 1; }

const model_description *described(const locus_model *model) { return &model->stacks[0]; }

int attends_together(const locus_model_pass *pass, int *plans)
{
    const program *p = &pass->model->program;
    int stacks = 0;
    for (int k = 0; k < p->attention_count; k++) stacks += pass_runs(pass, p->attentions[k].stack);
    *plans = (int)pass->plan_count / stacks;
    return pass->kinds[0].together;
}

int64_t input_width(const locus_model *model)
{
    const model_description *d = &model->stacks[0];
    return d->features > 0 ? d->features : d->embedding_width;
}

void replace_relu(locus_model *model)
{
    for (int i = 0; i < model->program.op_count; i++) {
        op *o = &model->program.ops[i];
        if (strcmp(o->kind->name, "map") == 0 && o->as.activation == LOCUS_RELU)
            o->as.activation = LOCUS_GELU;
        if (strcmp(o->kind->name, "convolve") == 0 && o->as.convolve.activation == LOCUS_RELU)
            o->as.convolve.activation = LOCUS_GELU;
    }
}

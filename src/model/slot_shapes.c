/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of a description: which of them a model has, and their extents in a checkpoint. */
#include <string.h>

#include "model/checkpoint.h"

static const char *const shapes[SLOT_COUNT] = {
#define MODEL_SLOT(name, each_layer, shape) [SLOT_##name] = shape,
#include "model/slots.inc"
#undef MODEL_SLOT
};

static int64_t extent_of(const model_description *d, char letter)
{
    switch (letter) {
    case '2': return 2;
    case 'M': return d->depth_taps;
    case 'J': return d->forward_taps > 1 ? d->forward_taps : 1;
    case 'V': return d->vocabulary;
    case 'W': return d->embedding_width;
    case 'E': return d->width;
    case 'A': return d->heads * d->head_dim;
    case 'C': return (d->kv_heads > 0 ? d->kv_heads : d->heads) * d->head_dim;
    case '1': return 1;
    case 'D': return d->head_dim;
    case 'X': return 3 * d->heads * d->head_dim;
    case 'F': return d->feed_forward;
    case 'P': return d->positions;
    case 'Z': return d->late_positions ? d->width : d->embedding_width;
    case 'Y': return d->types;
    case 'R': return d->relative_rows;
    case 'B': return d->bias_rows;
    case 'H': return d->heads;
    case 'L': return d->labels;
    case 'G': return d->groups > 0 ? d->width / d->groups : 0;
    case 'T': return d->table_rows;
    case 'N': return d->table_features;
    default: return d->taps; /* K */
    }
}

const model_table *model_slot_table(const model_description *d, model_slot slot)
{
    const int64_t index = (int64_t)slot - SLOT_TABLE_0;
    return index >= 0 && index < d->table_count ? &d->tables[index] : NULL;
}

static const char *letters_of(const model_description *d, model_slot slot)
{
    const model_table *table = model_slot_table(d, slot);
    return table != NULL ? table->shape : shapes[slot];
}

/* Stored [E, H, D] and read as [A, E]. */
static int is_turned(const model_description *d, model_slot slot)
{
    return d->head_tensors &&
           (slot == SLOT_Q || slot == SLOT_K || slot == SLOT_V || slot == SLOT_RELATIVE_K);
}

/* GPT-2 keeps its maps the other way round. */
static int is_transposed(const model_description *d, model_slot slot)
{
    return d->transposed &&
           (slot == SLOT_FUSED_QKV || slot == SLOT_O || slot == SLOT_IN || slot == SLOT_OUT);
}

int model_slot_transposed(const model_description *d, model_slot slot, int64_t *rows,
                          int64_t *columns)
{
    uint64_t shape[4]; /* as it is wanted: a file may have more or fewer axes of one element */
    if (!is_turned(d, slot) && !is_transposed(d, slot)) return 0;
    (void)model_slot_shape(d, slot, shape);
    *rows = (int64_t)shape[0];
    *columns = model_slot_elements(d, slot) / *rows;
    return 1;
}

size_t model_slot_shape(const model_description *d, model_slot slot, uint64_t shape[4])
{
    if (is_turned(d, slot) || (d->head_tensors && slot == SLOT_O)) {
        shape[0] = (uint64_t)d->width;
        shape[1] = (uint64_t)d->heads;
        shape[2] = (uint64_t)d->head_dim;
        return 3;
    }
    const char *letters = letters_of(d, slot);
    size_t rank = strlen(letters);
    for (size_t i = 0; i < rank; i++) shape[i] = (uint64_t)extent_of(d, letters[i]);
    if (rank > 0 && letters[rank - 1] == 'J' && shape[rank - 1] == 1) rank--;
    if (is_transposed(d, slot)) {
        const uint64_t outputs = shape[0];
        shape[0] = shape[1];
        shape[1] = outputs;
    }
    if (slot == SLOT_GLU) { /* [2 E, E] */
        shape[0] *= shape[1];
        shape[1] = shape[2];
        rank = 2;
    }
    return rank;
}

int64_t model_slot_elements(const model_description *d, model_slot slot)
{
    int64_t count = 1;
    for (const char *letter = letters_of(d, slot); *letter != '\0'; letter++)
        count *= extent_of(d, *letter);
    return count;
}

static int has_shifts(const model_description *d) { return d->norm_centred && !d->norm_unshifted; }
static int is_fused(const model_description *d) { return d->fused_heads || d->fused_parts; }

int model_slot_wanted(const model_description *d, model_slot slot)
{
    switch (slot) {
    case SLOT_WORD: return !d->shared_words && d->features == 0 && d->clusters == 0;
    case SLOT_POSITION: return d->positions > 0 && !d->sinusoidal;
    case SLOT_TYPE: return d->types > 0 && !d->segments;
    case SLOT_EMBEDDING_NORM_GAIN: return d->embedding_norm;
    case SLOT_EMBEDDING_NORM_SHIFT: return d->embedding_norm && has_shifts(d);
    case SLOT_EMBEDDING_MAP: return d->always_mapped || d->embedding_width != d->width;
    case SLOT_EMBEDDING_MAP_BIAS: return 0; /* where the checkpoint has one */
    case SLOT_RELATIVE: return d->relative_rows > 0 && (d->to_position || d->from_position);
    case SLOT_CONTENT_BIAS:
    case SLOT_POSITION_BIAS: return d->distances;
    case SLOT_SEGMENT_BIAS:
    case SLOT_SEGMENT: return d->segments;
    case SLOT_RELATIVE_NORM_GAIN:
    case SLOT_RELATIVE_NORM_SHIFT: return d->relative_norm;
    case SLOT_BIAS: return d->bias_rows > 0 && !d->bias_each_layer;
    case SLOT_LAYER_BIAS: return d->bias_rows > 0 && d->bias_each_layer;
    case SLOT_FUSED_QKV: return is_fused(d);
    case SLOT_FUSED_QKV_BIAS: return d->fused_biases;
    case SLOT_Q:
    case SLOT_K:
    case SLOT_V: return !is_fused(d);
    case SLOT_CONVOLUTION:
    case SLOT_CONVOLUTION_BIAS:
    case SLOT_CONVOLUTION_NORM_GAIN:
    case SLOT_CONVOLUTION_NORM_SHIFT: return d->taps > 0;
    case SLOT_HEAD_MAP:
    case SLOT_HEAD_MAP_BIAS: return d->head == LOCUS_MODEL_CLASSIFY && !d->head_plain;
    case SLOT_HEAD_OUT: return d->labels > 0;
    case SLOT_HEAD_OUT_BIAS:
        return d->labels > 0 && !(d->head == LOCUS_MODEL_CLASSIFY && d->head_plain);
    case SLOT_FILL_MAP:
    case SLOT_FILL_MAP_BIAS:
    case SLOT_FILL_NORM_GAIN: return model_has_fill(d) && !d->fill_plain;
    case SLOT_FILL_NORM_SHIFT: return model_has_fill(d) && !d->fill_plain && d->norm_centred;
    case SLOT_FILL_OUT: return model_has_fill(d) && !d->fill_tied;
    case SLOT_FILL_OUT_BIAS: return model_has_fill(d) && !d->fill_unbiased;
    case SLOT_LOGITS: return d->head == LOCUS_MODEL_GENERATE && !d->tied && !d->fill_next;
    case SLOT_LOGITS_BIAS: return 0; /* where the checkpoint has one */
    case SLOT_NARROW: return d->narrows;
    case SLOT_NARROW_BIAS: return 0;
    case SLOT_FINAL_NORM_GAIN: return d->final_norm;
    case SLOT_FINAL_NORM_SHIFT: return d->final_norm && has_shifts(d);
    case SLOT_K_BIAS: return d->biases && !d->attention_unbiased && !is_fused(d);
    case SLOT_Q_BIAS:
    case SLOT_V_BIAS: return d->biases && !d->attention_unbiased && !d->fused_biases;
    case SLOT_O_BIAS: return d->biases && !d->attention_unbiased;
    case SLOT_CROSS_Q:
    case SLOT_CROSS_K:
    case SLOT_CROSS_V:
    case SLOT_CROSS_O:
    case SLOT_CROSS_NORM_GAIN: return d->cross;
    case SLOT_CROSS_Q_BIAS:
    case SLOT_CROSS_K_BIAS:
    case SLOT_CROSS_V_BIAS:
    case SLOT_CROSS_O_BIAS: return d->cross && d->biases;
    case SLOT_CROSS_NORM_SHIFT: return d->cross && has_shifts(d);
    case SLOT_IN_BIAS:
    case SLOT_OUT_BIAS: return d->biases;
    case SLOT_DISTANCE_VALUE: return d->window > 0;
    case SLOT_FIRST_NORM_GAIN:
    case SLOT_FIRST_NORM_SHIFT:
    case SLOT_FIRST_IN:
    case SLOT_FIRST_IN_BIAS:
    case SLOT_FIRST_OUT:
    case SLOT_FIRST_OUT_BIAS:
    case SLOT_GLU_NORM_GAIN:
    case SLOT_GLU_NORM_SHIFT:
    case SLOT_GLU:
    case SLOT_DEPTH:
    case SLOT_DEPTH_NORM_GAIN:
    case SLOT_DEPTH_NORM_SHIFT:
    case SLOT_DEPTH_OUT:
    case SLOT_LAST_NORM_GAIN:
    case SLOT_LAST_NORM_SHIFT: return d->conformer;
    case SLOT_DEPTH_OUT_BIAS: return 0;
    case SLOT_DEPTH_MEAN:
    case SLOT_DEPTH_VARIANCE: return d->depth_batch_norm;
    case SLOT_DISTANCE: return d->relative_rows > 0 && !d->to_position && !d->from_position;
    case SLOT_RELATIVE_K: return d->distances || (d->to_position && !d->relative_shared);
    case SLOT_RELATIVE_K_BIAS:
        return d->to_position && !d->relative_shared && !d->fused_heads && d->biases;
    case SLOT_RELATIVE_Q: return d->from_position && !d->relative_shared;
    case SLOT_RELATIVE_Q_BIAS: return d->from_position && !d->relative_shared && d->biases;
    case SLOT_TABLE_0:
    case SLOT_TABLE_1:
    case SLOT_TABLE_2:
    case SLOT_TABLE_3:
    case SLOT_TABLE_4:
    case SLOT_TABLE_5: return model_slot_table(d, slot) != NULL;
    case SLOT_ATTENTION_NORM_SHIFT:
    case SLOT_FORWARD_NORM_SHIFT: return has_shifts(d);
    case SLOT_GATE: return d->gated;
    default: return 1;
    }
}

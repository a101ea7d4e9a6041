/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_OPS_H
#define LOCUS_MODEL_OPS_H

/* The kinds of operators, one file each. */

#include "model/program.h"

extern const op_kind op_map, op_norm, op_embed, op_pick, op_attend, op_move, op_convolve,
    op_depthwise, op_fold, op_activate, op_turns, op_turn, op_pool, op_pool_max, op_unit,
    op_sinusoid, op_heads, op_add, op_raise, op_cap;

#endif

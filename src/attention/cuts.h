/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_CUTS_H
#define LOCUS_ATTENTION_CUTS_H

/* Every constant that cuts attention into pieces, so that tests can cross each of them. What
 * decides the order of a sum depends on shapes and scheme alone, never on threads. */

#include <stddef.h>

#include "kernels/kernels.h"

enum {
    MAX_TILE_ROWS = 192, /* of any geometry */
    MAX_TILE_KEYS = 512,
    MAX_GROUP = 12,

    /* forward: query rows and keys of a tile */
    FORWARD_ROWS = 48,
    FORWARD_KEYS = 512,
    TALL_ROWS = 192,     /* where keys exceed the second cache        */
    SHORT_KEYS = 256,    /* up to so many keys, tiles of up to ...     */
    SHORT_ROWS = 72,     /* ... rows, all alike                        */
    KEY_SIDE_TILE = 192, /* rows and keys, with a table on the key side */
    MASK_ROWS = 64,      /* of a tile under a mask, in both directions  */
    MASK_KEY_SIDE_TILE = 128,
    L2_FLOATS = 1 << 18, /* of keys and values: half of the second cache */
    TASKS_PER_THREAD = 8,
    DECAY_KEYS = 128, /* of any tile whose channels decay              */
    DECAY_PANEL = 16, /* keys that share a reference in a steep one     */
    UNFETCHED =
        32, /* up to so many queries and keys, nothing is fetched ahead, in both directions */

    /* the rows path: queries, keys of a tile, keys of a split */
    ROWS_PATH_QUERIES = 8, /* up to so many, packing the keys costs more than it saves */
    ROWS_PATH_KEYS = 128,
    SPLIT_KEYS = 4096,
    SHARED_SPLIT_KEYS = 1024, /* where heads share rotations or a table */
    MAX_SPLITS = 64,

    /* backward */
    BACKWARD_ROWS = 96,
    BACKWARD_KEYS = 192,
    BACKWARD_GAIN_KEYS = 256,
    GROUP_KEYS = 768,              /* more keys than these: query tiles are taken in groups */
    CHUNK_ROWS = 384,              /* query rows of a chunk, at least                      */
    BACKWARD_TASKS = 8,            /* chunks of all heads together, about                  */
    MAX_SLOTS = 64,                /* tasks of a round                                     */
    REDUCE_ROWS = 256,             /* rows of a reduction task                             */
    KEPT_KEY_FLOATS = 1 << 18,     /* copies of keys up to so many stay           */
    PACKED_TABLE_FLOATS = 1 << 19, /* larger tables are packed as strips roll     */

    /* relative tables */
    BAND_ROWS = 48,
    RUN_MIN = 64, /* shorter runs of consecutive entries are folded with the rest */
    CLS_ROWS = 3, /* of the reset, at most */
    INDEX_PAD = MAX_TILE_ROWS + MAX_TILE_KEYS + 2 * LOCUS_LANES,
};

/* Partial gradients of one backward call, all slots together. */
#define LOCUS_PARTIAL_BYTES ((size_t)32 << 20)

#endif

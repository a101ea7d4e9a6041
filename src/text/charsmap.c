/* SPDX-License-Identifier: Apache-2.0 */
/* SentencePiece's precompiled character map: u32 size of a double-array trie (Darts), the trie,
 * then the replacements, each ended by a NUL. A unit of the trie holds the byte that leads to it,
 * an offset to its children (XOR), and whether a key ends there; the unit behind offset 0 then
 * holds where the replacement begins. Every index is checked while walking. */
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "text/tokenizer.h"

static uint32_t load_u32(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static uint32_t unit_label(uint32_t unit) { return unit & 0x800000FFu; }
static uint32_t unit_has_leaf(uint32_t unit) { return unit >> 8 & 1; }
static uint32_t unit_offset(uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); }

/* The root must point into the trie, and every leaf at a replacement that ends. */
static locus_status check_units(const charsmap *map, locus_error *error)
{
    if ((map->units[0] & 0x80000000u) != 0)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "character map: found a leaf at the root of the trie");
    if (unit_offset(map->units[0]) >= map->unit_count)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "character map: found a root that points to unit %u, expected less than "
                          "%zu",
                          unit_offset(map->units[0]), map->unit_count);
    for (size_t i = 0; i < map->unit_count; i++) {
        const uint32_t unit = map->units[i];
        if ((unit & 0x80000000u) == 0) continue;
        const uint32_t at = unit & 0x7FFFFFFFu;
        if (at >= map->text_bytes)
            return locus_fail(error, LOCUS_ERR_FORMAT,
                              "character map: found a replacement at byte %u, expected less than "
                              "%zu",
                              at, map->text_bytes);
    }
    return LOCUS_OK;
}

locus_status locus_charsmap_open(charsmap *map, const char *blob, size_t bytes, locus_arena *arena,
                                 locus_error *error)
{
    *map = (charsmap){.units = NULL};
    const size_t trie_bytes = bytes < 4 ? 0 : load_u32(blob);
    if (bytes < 4 || trie_bytes < 4 || trie_bytes % 4 != 0 || trie_bytes > bytes - 4)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "character map: found a trie of %zu bytes in %zu, expected a multiple of "
                          "4 that fits",
                          trie_bytes, bytes);
    if (bytes == 4 + trie_bytes || blob[bytes - 1] != '\0')
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "character map: found replacements that do not end in NUL");
    uint32_t *units = locus_arena_take(arena, trie_bytes, 4);
    char *text = locus_arena_copy(arena, blob + 4 + trie_bytes, bytes - 4 - trie_bytes);
    if (units == NULL || text == NULL) return locus_text_no_memory(error);
    for (size_t i = 0; i < trie_bytes / 4; i++) units[i] = load_u32(blob + 4 + 4 * i);
    map->units = units;
    map->unit_count = trie_bytes / 4;
    map->text = text;
    map->text_bytes = bytes - 4 - trie_bytes;
    return check_units(map, error);
}

const char *locus_charsmap_find(const charsmap *map, const char *text, size_t bytes, int longest,
                                size_t *matched, size_t *replacement_bytes)
{
    const char *found = NULL;
    size_t at = unit_offset(map->units[0]);
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char byte = (unsigned char)text[i];
        at ^= byte;
        if (byte == 0 || at >= map->unit_count || unit_label(map->units[at]) != byte) break;
        const uint32_t unit = map->units[at];
        at ^= unit_offset(unit);
        if (at >= map->unit_count) break;
        if (!unit_has_leaf(unit)) continue;
        const uint32_t value = map->units[at] & 0x7FFFFFFFu;
        if (value >= map->text_bytes) break;
        found = map->text + value;
        *matched = i + 1;
        if (!longest) break;
    }
    if (found != NULL) *replacement_bytes = strlen(found); /* the blob ends in NUL */
    return found;
}

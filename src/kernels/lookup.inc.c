/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and adding to tables by an index that ascends in steps of 0 or 1. A vector of it
 * is consecutive (a stretch of exact distances), constant (beyond a clip), or lies within
 * VL entries (log buckets): a load, a broadcast, or a load and a permutation. No gather. */

LOCUS_INLINE vf look_up(const float *table, int32_t first, const int32_t *index)
{
    const int32_t low = index[0] - first, rise = index[VL - 1] - index[0];
    if (rise == VL - 1) return v_load(table + low);
    if (rise == 0) return v_set1(table[low]);
    return v_permute(table + low, index, rise);
}

static LOCUS_LOOKUP(lookup)
{
    int64_t c = 0;
    for (; c + VL <= columns; c += VL)
        v_store(y + c, v_add(v_load(y + c), look_up(table, first, index + c)));
    for (; c < columns; c++) y[c] += table[index[c] - first];
}

/* Column by column the entries for VL rows lie side by side, descending with the row:
 * VL columns make a block, which is transposed and added. */
static LOCUS_LOOKUP_COLUMNS(lookup_columns)
{
    for (int64_t j = 0; j < columns; j += VL)
        for (int64_t i = 0; i < rows; i += VL) {
            const int64_t some_columns = columns - j < VL ? columns - j : VL;
            const int64_t some_rows = rows - i < VL ? rows - i : VL;
            vf block[VL];
            if (some_columns < VL || some_rows < VL) {
                for (int64_t r = i; r < i + some_rows; r++)
                    for (int64_t c = j; c < j + some_columns; c++)
                        S[r * stride + c] += table[c * table_row + index[c - r] - first];
                continue;
            }
            for (int k = 0; k < VL; k++)
                block[k] =
                    look_up(table + (j + k) * table_row, first, index + (j + k) - i - (VL - 1));
            v_transpose(block);
            for (int k = 0; k < VL; k++) {
                float *row = S + (i + VL - 1 - k) * stride + j;
                v_store(row, v_add(v_load(row), block[k]));
            }
        }
}

static LOCUS_FOLD(fold)
{
    int64_t c = 0;
    for (; c + VL <= columns; c += VL) {
        const int32_t low = index[c], rise = index[c + VL - 1] - low;
        float *to = table + (low - first);
        if (rise == VL - 1)
            v_store(to, v_add(v_load(to), v_load(x + c)));
        else if (rise == 0) { /* the whole run of this entry in one sum */
            vf sum = v_load(x + c);
            for (; c + 2 * VL <= columns && index[c + 2 * VL - 1] == low; c += VL)
                sum = v_add(sum, v_load(x + c + VL));
            *to += v_sum(sum);
        } else
            for (int64_t k = c; k < c + VL; k++) table[index[k] - first] += x[k];
    }
    for (; c < columns; c++) table[index[c] - first] += x[c];
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and adding to tables by an index that ascends in steps of 0 or 1: VL of it lie within
 * VL entries, so a load and a permutation will do. No gather. */

/* The places of a vector are the same for all rows. */
static LOCUS_EXPAND(expand)
{
    for (int64_t c = 0; c < columns; c += VL) {
        const int32_t *places = index + c;
        const float *from = X + (places[0] - first);
        for (int64_t i = 0; i < rows; i++)
            v_store(Y + i * y_row + c, v_permute(from + i * x_row, places));
    }
}

/* Column by column the entries for VL rows lie side by side, descending with the row:
 * VL columns make a block, which is transposed. */
LOCUS_INLINE void add_block(float *T, int64_t t_row, const locus_column_table *table,
                            const float *plus, int64_t plus_row, int64_t row, int64_t column)
{
    const int32_t *index = table->index + column - row - (VL - 1);
    const float *entries = table->data + column * table->row - table->first;
    const int consecutive = index[2 * (VL - 1)] - index[0] == 2 * (VL - 1);
    const vf factor = v_set1(table->factor);
    vf block[VL];
    if (consecutive)
        for (int k = 0; k < VL; k++) block[k] = v_load(entries + k * table->row + index[k]);
    else
        for (int k = 0; k < VL; k++)
            block[k] = v_permute(entries + k * table->row + index[k], index + k);
    v_transpose(block);
    for (int k = 0; k < VL; k++) {
        const int64_t i = row + VL - 1 - k;
        const vf old = plus != NULL ? v_load(plus + i * plus_row + column) : v_set1(0.0f);
        v_store(T + i * t_row + column, v_add(old, v_mul(block[k], factor)));
    }
}

static void add_one_by_one(float *T, int64_t t_row, const locus_column_table *table,
                           const float *plus, int64_t plus_row, int64_t row, int64_t end,
                           int64_t column, int64_t column_end)
{
    for (int64_t i = row; i < end; i++)
        for (int64_t j = column; j < column_end; j++) {
            const float entry = table->data[j * table->row + table->index[j - i] - table->first];
            const float old = plus != NULL ? plus[i * plus_row + j] : 0.0f;
            T[i * t_row + j] = old + entry * table->factor;
        }
}

static LOCUS_READ_COLUMNS(read_columns)
{
    for (int64_t j = 0; j < columns; j += VL) {
        const int64_t whole = columns - j < VL ? 0 : rows / VL * VL;
        for (int64_t i = 0; i < whole; i += VL) add_block(T, t_row, table, plus, plus_row, i, j);
        add_one_by_one(T, t_row, table, plus, plus_row, whole, rows, j,
                       columns - j < VL ? columns : j + VL);
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

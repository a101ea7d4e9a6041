/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that belong to the columns of a tile. Along a row of the tile the entry changes with the
 * column: a row uses a diagonal of the table. Rows go by one after the other, and each brings
 * the diagonal that ends in it, in as many steps as a lane number has bits (here lanes 0 to 3):
 *
 *     row r      0 . . .     bit 1: lanes 1 and 3 of the row after      0 1 . .
 *     row r + 1  . 1 . .                                                . . 2 3  (two later)
 *     row r + 2  . . 2 .     bit 2: lanes 2 and 3 of two rows after     0 1 2 3
 *     row r + 3  . . . 3                                                                      */

/* What the steps have to remember: of bit b the last b rows. */
typedef struct diagonal {
    vf step[VL];
} diagonal;

/* Returns row r + l in lane l, where row r + VL - 1 comes now. phase: how many came before,
 * modulo VL, a constant. */
LOCUS_INLINE vf next_diagonal(diagonal *d, vf row, const int phase)
{
    LOCUS_UNROLL
    for (int bit = 1; bit < VL; bit *= 2) {
        vf *slot = &d->step[bit - 1 + phase % bit];
        const vf before = *slot;
        *slot = row;
        row = v_choose(before, row, bit);
    }
    return row;
}

/* VL columns of T, or the last `tail`. */
typedef struct column_reader {
    float *to;         /* the row that comes next */
    const float *plus; /* in the same row         */
    int64_t to_stride, plus_stride;
    const float *entries; /* entry 0 */
    int64_t entry_stride;
    const int32_t *index; /* the entry that comes next, and not one behind `most` */
    const int32_t *most;
    vf factor;
} column_reader;

LOCUS_INLINE vf next_entry(column_reader *r, int64_t tail)
{
    const int64_t entry = *(tail == 0 || r->index < r->most ? r->index : r->most);
    r->index++;
    return v_load(r->entries + entry * r->entry_stride);
}

LOCUS_INLINE void write_row(column_reader *r, vf entries, int64_t tail, const int adds)
{
    const vf old = adds ? load_some(r->plus, tail) : v_set1(0.0f);
    store_some(r->to, v_add(old, v_mul(entries, r->factor)), tail);
    r->to -= r->to_stride;
    if (adds) r->plus -= r->plus_stride;
}

/* Rows from the last to the first, so that entries ascend. */
LOCUS_INLINE void read_rows(column_reader r, int64_t rows, int64_t tail, const int adds)
{
    diagonal d = {0}; /* the first diagonals begin before the first row: nobody uses them */
    LOCUS_UNROLL
    for (int k = 0; k < VL - 1; k++) next_diagonal(&d, next_entry(&r, tail), k);
    for (; rows >= VL; rows -= VL) {
        LOCUS_UNROLL
        for (int k = 0; k < VL; k++)
            write_row(&r, next_diagonal(&d, next_entry(&r, tail), (k + VL - 1) % VL), tail, adds);
    }
    LOCUS_UNROLL
    for (int k = 0; k < VL - 1; k++) {
        if (k >= rows) continue;
        write_row(&r, next_diagonal(&d, next_entry(&r, tail), (k + VL - 1) % VL), tail, adds);
    }
}

static LOCUS_NOINLINE void read_adding(const column_reader *r, int64_t rows)
{
    read_rows(*r, rows, 0, 1);
}
static LOCUS_NOINLINE void read_alone(const column_reader *r, int64_t rows)
{
    read_rows(*r, rows, 0, 0);
}
static LOCUS_NOINLINE void read_tail(const column_reader *r, int64_t rows, int64_t tail)
{
    if (r->plus != NULL)
        read_rows(*r, rows, tail, 1);
    else
        read_rows(*r, rows, tail, 0);
}

static LOCUS_READ_COLUMNS(read_columns)
{
    if (rows <= 0) return;
    for (int64_t j = 0; j < columns; j += VL) {
        const column_reader r = {.to = T + (rows - 1) * t_stride + j,
                                 .to_stride = t_stride,
                                 .plus = plus != NULL ? plus + (rows - 1) * plus_stride + j : NULL,
                                 .plus_stride = plus_stride,
                                 .entries = table->data + j - table->first * table->row_stride,
                                 .entry_stride = table->row_stride,
                                 .index = table->index + j - (rows - 1),
                                 .most = table->index + columns - 1,
                                 .factor = v_set1(table->factor)};
        if (j + VL > columns)
            read_tail(&r, rows, columns - j);
        else
            (plus != NULL ? read_adding : read_alone)(&r, rows);
    }
}

/* What goes to one entry is summed before it is written. */
typedef struct column_sum {
    const locus_column_table *table;
    int64_t column;
    vf sum;
    int32_t entry;
} column_sum;

LOCUS_INLINE void write_sum(const column_sum *s)
{
    const locus_column_table *t = s->table;
    v_store(t->data + (s->entry - t->first) * t->row_stride + s->column,
            v_mul(s->sum, v_set1(t->factor)));
}

LOCUS_INLINE void add_to_entry(column_sum *s, int32_t entry, vf weights)
{
    if (entry == s->entry) {
        s->sum = v_add(s->sum, weights);
        return;
    }
    write_sum(s);
    s->entry = entry;
    s->sum = weights;
}

/* LOCUS_FOLD_MARGIN entries before (direction -1) or behind (1) that of the sum. */
LOCUS_INLINE void clear_margin(const column_sum *s, int direction)
{
    column_sum none = *s;
    none.sum = v_set1(0.0f);
    for (int k = 0; k < LOCUS_FOLD_MARGIN; k++) {
        none.entry += direction;
        write_sum(&none);
    }
}

/* The diagonals of T that begin in rows from .. to - 1, rounded up to vectors; rows outside T
 * are 0. */
LOCUS_INLINE void fold_diagonals(const float *T, int64_t t_stride, int64_t rows, int64_t from,
                                 int64_t to, column_sum *s)
{
    const int32_t *index = s->table->index + s->column;
    diagonal d = {0}; /* the first diagonals begin before the first row: nobody uses them */
    s->entry = index[-from];
    clear_margin(s, 1);
#define ROW(i) ((i) >= 0 && (i) < rows ? v_load(T + (i)*t_stride + s->column) : v_set1(0.0f))
    LOCUS_UNROLL
    for (int k = 0; k < VL - 1; k++) next_diagonal(&d, ROW(from + k), k);
    for (int64_t i = from; i < to; i += VL) {
        LOCUS_UNROLL
        for (int k = 0; k < VL; k++)
            add_to_entry(s, index[-(i + k)],
                         next_diagonal(&d, ROW(i + k + VL - 1), (k + VL - 1) % VL));
    }
#undef ROW
    write_sum(s);
    clear_margin(s, -1);
}

static LOCUS_FOLD_COLUMNS(fold_columns)
{
    for (int64_t j = 0; j < columns; j += VL) {
        const int64_t in_block = j % LOCUS_LANES;
        column_sum sum = {table, j, v_set1(0.0f), 0};
        fold_diagonals(T, t_stride, rows, in_block - (LOCUS_LANES - 1), in_block + rows, &sum);
    }
}

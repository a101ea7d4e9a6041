/* SPDX-License-Identifier: Apache-2.0 */
/* Linear maps: register tiles of LINEAR_ROWS x (LINEAR_VECTORS VL) over packed panels; see
 * kernels/linear.h. The loop over the inner index has two pointers, both of which walk through
 * consecutive memory, and nothing else to keep in registers but the sums. */

enum { LINEAR_COLUMNS = LINEAR_VECTORS * VL };
_Static_assert(LINEAR_ROWS <= VL, "a vector holds a column of a left panel");
_Static_assert(LOCUS_RIGHT_COLUMNS % LINEAR_COLUMNS == 0 &&
                   LOCUS_RIGHT_COLUMNS * LINEAR_INNER <= LOCUS_RIGHT_FLOATS,
               "right panels fit their buffer");
_Static_assert(LINEAR_INNER % LOCUS_CHAIN == 0 && LOCUS_CHAIN % LOCUS_LANES == 0,
               "blocks are whole chains");

/* ---- packing ---- */

/* to[j * to_row + i] = from[i * from_row + j] for i < count, j < inner; lanes beyond `count`, up
 * to VL, are 0 or overwritten by the next row. */
LOCUS_INLINE void pack_turned(float *to, int64_t to_row, const float *from, int64_t from_row,
                              int64_t count, int64_t inner)
{
    vf block[VL];
    int64_t j = 0;
    for (; j + VL <= inner; j += VL) {
        LOCUS_UNROLL
        for (int i = 0; i < VL; i++)
            block[i] = i < count ? v_load(from + i * from_row + j) : v_set1(0.0f);
        v_transpose(block);
        LOCUS_UNROLL
        for (int i = 0; i < VL; i++) v_store(to + (j + i) * to_row, block[i]);
    }
    for (; j < inner; j++)
        for (int64_t i = 0; i < VL; i++)
            to[j * to_row + i] = i < count ? from[i * from_row + j] : 0.0f;
}

/* The rows of a block are spread evenly over the least number of left panels. */
LOCUS_INLINE int64_t panel_height(int64_t rows, int64_t panels, int64_t index)
{
    return rows / panels + (index < rows % panels);
}

LOCUS_INLINE int64_t panel_count(int64_t rows) { return (rows + LINEAR_ROWS - 1) / LINEAR_ROWS; }

LOCUS_INLINE void copy_floats(float *to, const float *from, int64_t count)
{
    for (int64_t c = 0; c < count; c += VL)
        store_some(to + c, load_some(from + c, count - c < VL ? count - c : 0),
                   count - c < VL ? count - c : 0);
}

/* The rows of the next panel are prefetched meanwhile: a panel is too short for the processor to
 * find out that its rows go on. */
static LOCUS_PACK_LEFT_ROWS(pack_left_rows)
{
    const int64_t panels = panel_count(rows);
    for (int64_t p = 0, row = 0, height; p < panels; p++, row += height) {
        height = panel_height(rows, panels, p);
        float *panel = to + locus_left_floats(row, inner);
        const float *from = a + row * a_row;
        for (int64_t j = 0; j < inner; j += LOCUS_LANES, panel += height * LOCUS_LANES) {
            const int64_t left = inner - j;
            for (int64_t i = 0; i < height; i++) {
                if (row + height + i < rows) v_prefetch(from + (height + i) * a_row + j);
                if (left >= LOCUS_LANES)
                    for (int v = 0; v < LOCUS_LANES; v += VL)
                        v_store(panel + i * LOCUS_LANES + v, v_load(from + i * a_row + j + v));
                else
                    copy_floats(panel + i * LOCUS_LANES, from + i * a_row + j, left);
            }
        }
    }
}

/* Some inner indices at a time: a line of A serves all panels that it belongs to at once. Lanes
 * behind a column belong to the next one, which is packed later. */
static LOCUS_PACK_LEFT_COLUMNS(pack_left_columns)
{
    enum { TOGETHER = 8 };
    const int64_t panels = panel_count(rows), whole = inner - VL;
    for (int64_t j = 0; j < count; j += TOGETHER) {
        const int64_t past = j + TOGETHER < count ? j + TOGETHER : count;
        for (int64_t p = 0, row = 0, height; p < panels; p++, row += height) {
            height = panel_height(rows, panels, p);
            const int64_t tail = height < VL ? height : 0;
            float *panel = to + row * inner + first * height;
            for (int64_t k = j; k < past; k++) {
                const vf column = load_some(a + k * a_column + row, tail);
                if (first + k < whole)
                    v_store(panel + k * height, column);
                else
                    store_some(panel + k * height, column, tail);
            }
        }
    }
}

/* One row of B over all panels: its lines are read once, one after the other. */
LOCUS_INLINE void pack_right_row(float *to, int64_t stride, const float *b, int64_t columns)
{
    int64_t c = 0;
    for (; c + LINEAR_COLUMNS <= columns; c += LINEAR_COLUMNS, to += stride)
        for (int v = 0; v < LINEAR_VECTORS; v++) v_store(to + v * VL, v_load(b + c + v * VL));
    for (int v = 0; c < columns && v < LINEAR_VECTORS; v++) {
        const int64_t left = columns - c - v * VL;
        v_store(to + v * VL,
                left <= 0 ? v_set1(0.0f) : load_some(b + c + v * VL, left < VL ? left : 0));
    }
}

static LOCUS_PACK_RIGHT(pack_right)
{
    enum { SOON = 12 };
    if (b_row != 1 || b_column == 1) {
        for (int64_t j = 0; j < count; j++) {
            if (j + SOON < count)
                for (int64_t c = 0; c < columns; c += LOCUS_LANES)
                    v_prefetch(b + (j + SOON) * b_row + c);
            pack_right_row(to + j * LINEAR_COLUMNS, stride, b + j * b_row, columns);
        }
        return;
    }
    for (int64_t c = 0; c < columns; c += LINEAR_COLUMNS, to += stride)
        for (int64_t v = c; v < c + LINEAR_COLUMNS; v += VL) {
            const int64_t some = columns - v < 0 ? 0 : columns - v < VL ? columns - v : VL;
            pack_turned(to + v - c, LINEAR_COLUMNS, b + v * b_column, b_column, some, count);
        }
}

/* ---- register tiles ---- */

/* Of a height of 1 to 3 rows, several right panels make a tile: single ones would wait for their
 * own sums. */
enum { FEW_ROWS = 3, MOST_PANELS = 4, MOST_VECTORS = MOST_PANELS * LINEAR_VECTORS };
enum { PANELS_OF_3 = LINEAR_LOADS_ALONE ? 1 : 2 };
LOCUS_INLINE int tile_panels(int64_t rows)
{
    return rows == 1 ? 4 : rows == 2 ? 2 : rows == 3 ? PANELS_OF_3 : 1;
}

LOCUS_INLINE void add_index(vf sum[][MOST_VECTORS], const float *left, const int64_t left_row,
                            const float *right, int64_t right_stride, const int rows,
                            const int panels)
{
    LOCUS_UNINITIALIZED vf b[MOST_VECTORS];
    LOCUS_UNROLL
    for (int v = 0; v < panels * LINEAR_VECTORS; v++)
        b[v] = v_load(right + v / LINEAR_VECTORS * right_stride + v % LINEAR_VECTORS * VL);
    LOCUS_UNROLL
    for (int i = 0; i < rows; i++) {
        const vf a = v_set1(left[i * left_row]);
        LOCUS_UNROLL
        for (int v = 0; v < panels * LINEAR_VECTORS; v++) sum[i][v] = v_fma(a, b[v], sum[i][v]);
    }
}

/* Two at a time: more, and the compiler moves sums between registers; where loads stand alone it does
 * so with two. */
LOCUS_INLINE void add_indices(vf sum[][MOST_VECTORS], const float *left, const int64_t left_row,
                              const int left_column, const float *right, int64_t right_stride,
                              int64_t count, const int rows, const int panels)
{
    int64_t j = 0;
    for (; LINEAR_LOADS_ALONE && j + 1 < count; j++, left += left_column, right += LINEAR_COLUMNS)
        add_index(sum, left, left_row, right, right_stride, rows, panels);
    for (; j + 2 <= count; j += 2, left += 2 * left_column, right += 2 * LINEAR_COLUMNS) {
        add_index(sum, left, left_row, right, right_stride, rows, panels);
        add_index(sum, left + left_column, left_row, right + LINEAR_COLUMNS, right_stride, rows,
                  panels);
    }
    if (j < count) add_index(sum, left, left_row, right, right_stride, rows, panels);
}

/* What a register tile prefetches: with every LOCUS_LANES inner indices the first LINEAR_COLUMNS
 * floats of `each` rows. More at once than is needed would fill the queue of misses, and the
 * operands wait behind. */
typedef struct prefetch {
    const float *at;
    int64_t row, each;
} prefetch;

/* C = start + the sums of one left panel; start NULL: 0. */
#define LINEAR_TILE(name)                                                                          \
    void name(float *C, int64_t c_row, const float *left, int64_t left_stride, const float *right, \
              int64_t right_stride, int64_t inner, const float *start, int64_t start_row,          \
              prefetch next)
typedef LINEAR_TILE((*linear_tile_fn));

LOCUS_INLINE void register_tile(float *C, int64_t c_row, const float *left, int64_t left_stride,
                                const float *right, int64_t right_stride, int64_t inner,
                                const float *start, int64_t start_row, prefetch next,
                                const int rows, const int panels, const int columns)
{
    const int vectors = panels * LINEAR_VECTORS;
    LOCUS_UNINITIALIZED vf sum[LINEAR_ROWS][MOST_VECTORS];
    LOCUS_UNROLL
    for (int i = 0; i < rows; i++) {
        LOCUS_UNROLL
        for (int v = 0; v < vectors; v++) sum[i][v] = v_set1(0.0f);
        for (int v = 0; v < vectors; v += LOCUS_LANES / VL) v_prefetch_far(C + i * c_row + v * VL);
    }
    const int in_place = LINEAR_LEFT_IN_PLACE && !columns;
    const int64_t left_row = columns ? 1 : in_place ? left_stride : LOCUS_LANES;
    const int left_column = columns ? rows : 1;
    int64_t j = 0;
    for (; j + LOCUS_LANES <= inner;
         j += LOCUS_LANES, left += (in_place ? 1 : rows) * LOCUS_LANES) {
        int64_t k = columns ? 1 : next.each;
        for (; k > 0; k--, next.at += next.row)
            for (int c = 0; c < LINEAR_COLUMNS; c += LOCUS_LANES) v_prefetch_far(next.at + c);
        add_indices(sum, left, left_row, left_column, right + j * LINEAR_COLUMNS, right_stride,
                    LOCUS_LANES, rows, panels);
    }
    add_indices(sum, left, left_row, left_column, right + j * LINEAR_COLUMNS, right_stride,
                inner - j, rows, panels);
    if (start != NULL) {
        LOCUS_UNROLL
        for (int i = 0; i < rows; i++) LOCUS_UNROLL
        for (int v = 0; v < vectors; v++)
            sum[i][v] = v_add(sum[i][v], v_load(start + i * start_row + v * VL));
    }
    LOCUS_UNROLL
    for (int i = 0; i < rows; i++) LOCUS_UNROLL
    for (int v = 0; v < vectors; v++) v_store(C + i * c_row + v * VL, sum[i][v]);
}

/* Each height is a function of its own, so that its sums have the registers to themselves. */
#define TILE_OF(name, rows, panels, columns)                                                       \
    static LOCUS_NOINLINE LINEAR_TILE(name)                                                        \
    {                                                                                              \
        register_tile(C, c_row, left, left_stride, right, right_stride, inner, start, start_row,   \
                      next, rows, panels, columns);                                                \
    }
#define TILES_OF(rows)                                                                             \
    TILE_OF(tile_rows_##rows, rows, 1, 0)                                                          \
    TILE_OF(tile_columns_##rows, rows, 1, 1)
TILES_OF(1)
TILES_OF(2)
TILES_OF(3)
TILES_OF(4)
#if LINEAR_ROWS > 4
TILES_OF(5)
TILES_OF(6)
#endif
TILE_OF(few_1, 1, 4, 0)
TILE_OF(few_2, 2, 2, 0)
TILE_OF(few_3, 3, PANELS_OF_3, 0)
#undef TILES_OF
#undef TILE_OF

/* By how the left panel is packed and by its height. */
static const linear_tile_fn tiles[2][LINEAR_ROWS + 1] = {
#define HEIGHTS_TO_4(name) NULL, name##_1, name##_2, name##_3, name##_4
#if LINEAR_ROWS > 4
#define HEIGHTS(name) HEIGHTS_TO_4(name), name##_5, name##_6
#else
#define HEIGHTS(name) HEIGHTS_TO_4(name)
#endif
    {HEIGHTS(tile_rows)},
    {HEIGHTS(tile_columns)},
};
static const linear_tile_fn few_tiles[FEW_ROWS + 1] = {NULL, few_1, few_2, few_3};

/* ---- what becomes of the sums ---- */

static void finish_row(const locus_linear_tile *t, int64_t row, int64_t column, int64_t columns)
{
    float *c = t->c + row * t->c_row + column;
    const float *gates = t->gate != NULL ? t->gate + row * t->gate_row + column : NULL;
    const float *residual =
        t->residual != NULL ? t->residual + row * t->residual_row + column : NULL;
    for (int64_t at = 0; at < columns; at += VL) {
        const int64_t tail = columns - at < VL ? columns - at : 0;
        vf x = v_activate(load_some(c + at, tail), t->activation);
        if (gates != NULL) x = v_mul(load_some(gates + at, tail), x);
        if (residual != NULL) x = v_add(x, load_some(residual + at, tail));
        store_some(c + at, x, tail);
    }
}

/* A tile of fewer columns than a panel has: the sums go through `edge`. */
static void edge_tile(linear_tile_fn tile, float *C, int64_t c_row, const float *left,
                      int64_t left_stride, const float *right, int64_t inner, const float *start,
                      int64_t start_row, prefetch next, int64_t rows, int64_t columns)
{
    float edge[LINEAR_ROWS * LINEAR_COLUMNS];
    tile(edge, LINEAR_COLUMNS, left, left_stride, right, 0, inner, NULL, 0, next);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < columns; c += VL) {
            const int64_t tail = columns - c < VL ? columns - c : 0;
            vf sum = v_load(edge + i * LINEAR_COLUMNS + c);
            if (start != NULL) sum = v_add(sum, load_some(start + i * start_row + c, tail));
            store_some(C + i * c_row + c, sum, tail);
        }
}

/* ---- blocks ---- */

/* How tiles go over t->next: in pieces of LINEAR_COLUMNS floats, `across` of them in a row, by as many
 * rows as a tile has to take so that the last one ends with it, `each` with every LOCUS_LANES of its
 * inner indices; 0: none. */
typedef struct pieces {
    int64_t across, rows, each;
} pieces;

LOCUS_INLINE pieces pieces_of(const locus_linear_tile *t)
{
    /* More lines than these in a row, and the processor finds its own way to them sooner. */
    enum { MOST_LINES = 24, LINES = (LINEAR_COLUMNS + LOCUS_LANES - 1) / LOCUS_LANES };
    const int64_t across = (t->next_width + LINEAR_COLUMNS - 1) / LINEAR_COLUMNS;
    const int64_t steps = t->inner / LOCUS_LANES;
    if (across == 0 || steps == 0) return (pieces){1, 0, 0};
    if (t->left_columns) return (pieces){across, steps, 1}; /* those are many */
    const int64_t count =
        panel_count(t->rows) * ((t->columns + LINEAR_COLUMNS - 1) / LINEAR_COLUMNS) / across;
    const int64_t turns = count > 0 ? steps * count : steps;
    const int64_t each = (t->next_count + turns - 1) / turns;
    return (pieces){across, steps * each, each * LINES <= MOST_LINES ? each : 0};
}

LOCUS_INLINE prefetch prefetch_at(const locus_linear_tile *t, pieces p, int64_t index)
{
    const int64_t row = p.each > 0 ? index / p.across * p.rows : 0;
    if (p.each == 0 || row >= t->next_count) return (prefetch){t->left, 0, 0};
    return (prefetch){t->next + row * t->next_row + index % p.across * LINEAR_COLUMNS, t->next_row,
                      p.each};
}

/* Left panel `panel`, `height` rows from `row` on, with the right panels of `columns` columns from
 * `column` on. */
LOCUS_INLINE void multiply_tile(const locus_linear_tile *t, int64_t panel, int64_t row,
                                int64_t height, int64_t column, int64_t columns, pieces ahead)
{
    const float *right = t->right + column / LINEAR_COLUMNS * t->right_stride;
    const float *first = t->resume         ? t->c + row * t->c_row + column
                         : t->bias != NULL ? t->bias + column
                                           : NULL;
    const linear_tile_fn *heights =
        columns > LINEAR_COLUMNS ? few_tiles : tiles[t->left_columns != 0];
    float *C = t->c + row * t->c_row + column;
    const float *left = t->left + (t->left_columns        ? row * t->inner
                                   : LINEAR_LEFT_IN_PLACE ? row * t->left_row
                                                          : locus_left_floats(row, t->inner));
    const int64_t left_step = LINEAR_LEFT_IN_PLACE && !t->left_columns ? 1 : height;
    prefetch next = prefetch_at(t, ahead, column / LINEAR_COLUMNS * panel_count(t->rows) + panel);
    int64_t j = 0;
    do { /* once even where there is nothing to sum */
        const int64_t inner = t->inner - j < LOCUS_CHAIN ? t->inner - j : LOCUS_CHAIN;
        const float *start = j > 0 ? C : first;
        const int64_t start_row = j > 0 || t->resume ? t->c_row : 0;
        if (columns < LINEAR_COLUMNS)
            edge_tile(heights[height], C, t->c_row, left + j * left_step, t->left_row,
                      right + j * LINEAR_COLUMNS, inner, start, start_row, next, height, columns);
        else
            heights[height](C, t->c_row, left + j * left_step, t->left_row,
                            right + j * LINEAR_COLUMNS, t->right_stride, inner, start, start_row,
                            next);
        next.at += LOCUS_CHAIN / LOCUS_LANES * next.each * next.row;
        j += LOCUS_CHAIN;
    } while (j < t->inner);
    for (int64_t i = 0; t->finish && i < height; i++) finish_row(t, row + i, column, columns);
}

/* Columns of the next tile where `left` are left; `wide`: of a whole one. */
LOCUS_INLINE int64_t tile_columns(int64_t left, int64_t wide)
{
    return left >= wide ? wide : left < LINEAR_COLUMNS ? left : LINEAR_COLUMNS;
}

/* Of few inner indices, C is most of what moves: a left panel goes over all columns, so that rows of
 * C are written from one end to the other. Else a right panel stays while all left panels go by. */
static LOCUS_LINEAR(multiply)
{
    if (t->rows == 0) return;
    const int64_t wide = (t->left_columns ? 1 : tile_panels(t->rows)) * LINEAR_COLUMNS;
    const int64_t panels = panel_count(t->rows);
    const pieces ahead = pieces_of(t);
    if (t->inner <= LOCUS_SHORT_INNER) {
        for (int64_t p = 0, row = 0, height; p < panels; p++, row += height) {
            height = panel_height(t->rows, panels, p);
            for (int64_t c = 0, some; c < t->columns; c += some) {
                some = tile_columns(t->columns - c, wide);
                multiply_tile(t, p, row, height, c, some, ahead);
            }
        }
        return;
    }
    for (int64_t c = 0, some; c < t->columns; c += some) {
        some = tile_columns(t->columns - c, wide);
        for (int64_t p = 0, row = 0, height; p < panels; p++, row += height) {
            height = panel_height(t->rows, panels, p);
            multiply_tile(t, p, row, height, c, some, ahead);
        }
    }
}

const locus_linear_kernels LINEAR_NAME = {
    .rows = LINEAR_ROWS,
    .columns = LINEAR_COLUMNS,
    .inner = LINEAR_INNER,
    .few_rows = FEW_ROWS,
    .left_in_place = LINEAR_LEFT_IN_PLACE,
    .pack_left_rows = pack_left_rows,
    .pack_left_columns = pack_left_columns,
    .pack_right = pack_right,
    .multiply = multiply,
};

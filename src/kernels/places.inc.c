/* SPDX-License-Identifier: Apache-2.0 */
/* Tables by the distance of given positions. Sixteen keys in a row are mostly neighbours (a line of
 * pixels, a text) or at one place (the other axis of that line): those need no look-up. */

static int32_t place_of(int32_t place, int32_t shift, int32_t last)
{
    const int32_t z = place + shift;
    return z < 0 ? 0 : z > last ? last : z;
}

/* Of a group whose places are consecutive: does all of it lie inside the table? */
static int lies_inside(int32_t first, int32_t shift, int32_t last)
{
    return first + shift >= 0 && first + shift + (LOCUS_LANES - 1) <= last;
}

static void add_group(float *y, const float *x, const int32_t *places, uint8_t kind, int32_t shift,
                      int32_t last)
{
    if (kind == LOCUS_PLACES_RISE && lies_inside(places[0], shift, last)) {
        const float *from = x + places[0] + shift;
        for (int i = 0; i < LOCUS_LANES; i += VL)
            v_store(y + i, v_add(v_load(y + i), v_load(from + i)));
        return;
    }
    if (kind == LOCUS_PLACES_STAND) {
        const vf one = v_set1(x[place_of(places[0], shift, last)]);
        for (int i = 0; i < LOCUS_LANES; i += VL) v_store(y + i, v_add(v_load(y + i), one));
        return;
    }
    float some[LOCUS_LANES];
    for (int i = 0; i < LOCUS_LANES; i++) some[i] = x[place_of(places[i], shift, last)];
    for (int i = 0; i < LOCUS_LANES; i += VL)
        v_store(y + i, v_add(v_load(y + i), v_load(some + i)));
}

static LOCUS_ADD_PLACES(add_places)
{
    for (int64_t j = from / LOCUS_LANES * LOCUS_LANES; j < to; j += LOCUS_LANES)
        add_group(y + j, x, places + j, kinds[j / LOCUS_LANES], shift, last);
}

static LOCUS_FOLD_PLACES(fold_places)
{
    for (int64_t j = from; j < to;) {
        const int whole = j % LOCUS_LANES == 0 && to - j >= LOCUS_LANES;
        if (whole && kinds[j / LOCUS_LANES] == LOCUS_PLACES_RISE &&
            lies_inside(places[j], shift, last)) {
            float *sums = y + places[j] + shift;
            for (int i = 0; i < LOCUS_LANES; i += VL)
                v_store(sums + i, v_add(v_load(sums + i), v_load(x + j + i)));
            j += LOCUS_LANES;
        } else {
            y[place_of(places[j], shift, last)] += x[j];
            j++;
        }
    }
}

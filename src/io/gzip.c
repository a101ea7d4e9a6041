/* SPDX-License-Identifier: Apache-2.0 */
#include "io/gzip.h"

#include <string.h>

#include "core/crc32.h"
#include "core/error.h"
#include "core/memory.h"

enum {
    LONGEST = 15, /* bits of a code                                        */
    LITERALS = 288,
    DISTANCES = 32,
    LENGTH_CODES = 19, /* symbols of the code that codes are written in    */
    END_OF_BLOCK = 256,
    HEAD = 10,        /* bytes before the stream, names and comments apart     */
    TRAILER = 8,      /* CRC-32 and length                                     */
    EXPANSION = 1032, /* no byte of a stream gives more                    */
};

/* Bits in, bytes out. `fault` says what is wrong, once something is; reads then give 0. */
typedef struct inflater {
    const unsigned char *in;
    size_t in_bytes, in_at;
    uint32_t held; /* bits read and not yet taken, lowest first */
    unsigned held_bits;
    unsigned char *out;
    size_t out_bytes, out_at;
    const char *fault;
} inflater;

/* A canonical Huffman code: how many symbols have each length, and the symbols in order. */
typedef struct huffman {
    uint16_t count[LONGEST + 1];
    uint16_t symbol[LITERALS];
} huffman;

static unsigned take(inflater *f, unsigned count)
{
    while (f->held_bits < count) {
        if (f->in_at == f->in_bytes) {
            f->fault = "the stream ends too early";
            return 0;
        }
        f->held |= (uint32_t)f->in[f->in_at++] << f->held_bits;
        f->held_bits += 8;
    }
    const unsigned value = f->held & ((1u << count) - 1);
    f->held >>= count;
    f->held_bits -= count;
    return value;
}

/* Lengths to a code. 0: more codes than there are, or fewer (but for a single one). */
static int build(huffman *h, const uint8_t *lengths, unsigned symbols)
{
    uint16_t first[LONGEST + 2] = {0};
    int left = 1;
    memset(h, 0, sizeof *h);
    for (unsigned s = 0; s < symbols; s++) h->count[lengths[s]]++;
    const unsigned used = symbols - h->count[0];
    h->count[0] = 0;
    for (unsigned bits = 1; bits <= LONGEST; bits++) {
        left = 2 * left - h->count[bits];
        if (left < 0) return 0;
        first[bits + 1] = (uint16_t)(first[bits] + h->count[bits]);
    }
    for (unsigned s = 0; s < symbols; s++)
        if (lengths[s] != 0) h->symbol[first[lengths[s]]++] = (uint16_t)s;
    return left == 0 || used <= 1;
}

/* The next symbol: codes of one length are consecutive numbers, and shorter ones come first. */
static unsigned decode(inflater *f, const huffman *h)
{
    unsigned code = 0, first = 0, index = 0;
    for (unsigned bits = 1; bits <= LONGEST && f->fault == NULL; bits++) {
        code |= take(f, 1);
        if (code - first < h->count[bits]) return h->symbol[index + (code - first)];
        index += h->count[bits];
        first = (first + h->count[bits]) << 1;
        code <<= 1;
    }
    if (f->fault == NULL) f->fault = "a code that stands for nothing";
    return END_OF_BLOCK;
}

static void copy_stored(inflater *f)
{
    f->held = 0;
    f->held_bits = 0;
    const unsigned count = take(f, 16), inverse = take(f, 16);
    if (f->fault == NULL && count != (~inverse & 0xFFFF))
        f->fault = "a stored block of two lengths";
    if (f->fault == NULL && count > f->in_bytes - f->in_at) f->fault = "the stream ends too early";
    if (f->fault == NULL && count > f->out_bytes - f->out_at) f->fault = "more text than announced";
    if (f->fault != NULL) return;
    memcpy(f->out + f->out_at, f->in + f->in_at, count);
    f->in_at += count;
    f->out_at += count;
}

/* `length` bytes from `distance` back, one by one: they may overlap what they make. */
static void repeat(inflater *f, unsigned length, unsigned distance)
{
    if (distance > f->out_at) f->fault = "a reference before the beginning";
    if (length > f->out_bytes - f->out_at) f->fault = "more text than announced";
    for (; f->fault == NULL && length > 0; length--, f->out_at++)
        f->out[f->out_at] = f->out[f->out_at - distance];
}

static void inflate_codes(inflater *f, const huffman *literals, const huffman *distances)
{
    while (f->fault == NULL) {
        unsigned symbol = decode(f, literals);
        if (symbol == END_OF_BLOCK) return;
        if (symbol < END_OF_BLOCK) {
            if (f->out_at == f->out_bytes)
                f->fault = "more text than announced";
            else
                f->out[f->out_at++] = (unsigned char)symbol;
            continue;
        }
        /* Lengths 3 .. 258: 8 of one, then 4 to each number of extra bits; 285 is 258. */
        symbol -= END_OF_BLOCK + 1;
        if (symbol > 28) f->fault = "a length that does not exist";
        if (f->fault != NULL) return;
        const unsigned wide = symbol < 8 || symbol == 28 ? 0 : symbol / 4 - 1;
        const unsigned length = symbol == 28 ? 258
                                : symbol < 8 ? 3 + symbol
                                             : 3 + ((4 + symbol % 4) << wide) + take(f, wide);
        const unsigned d = decode(f, distances);
        if (d > 29) f->fault = "a distance that does not exist";
        if (f->fault != NULL) return;
        const unsigned far = d < 4 ? 0 : d / 2 - 1;
        repeat(f, length, d < 4 ? 1 + d : 1 + ((2 + d % 2) << far) + take(f, far));
    }
}

static void inflate_fixed(inflater *f)
{
    uint8_t lengths[LITERALS];
    huffman literals, distances;
    for (unsigned s = 0; s < LITERALS; s++)
        lengths[s] = s < 144 ? 8 : s < END_OF_BLOCK ? 9 : s < 280 ? 7 : 8;
    build(&literals, lengths, LITERALS);
    memset(lengths, 5, DISTANCES);
    build(&distances, lengths, DISTANCES);
    inflate_codes(f, &literals, &distances);
}

/* The lengths of both codes, run by run, in the code `h`. */
static void read_lengths(inflater *f, const huffman *h, uint8_t *lengths, unsigned count)
{
    unsigned at = 0;
    while (at < count && f->fault == NULL) {
        const unsigned symbol = decode(f, h);
        unsigned times = 1;
        uint8_t value = (uint8_t)symbol;
        if (symbol == 16) {
            if (at == 0) f->fault = "a repetition of nothing";
            value = at > 0 ? lengths[at - 1] : 0;
            times = 3 + take(f, 2);
        } else if (symbol > 16) {
            value = 0;
            times = symbol == 17 ? 3 + take(f, 3) : 11 + take(f, 7);
        }
        if (times > count - at) f->fault = "more code lengths than codes";
        for (; f->fault == NULL && times > 0; times--) lengths[at++] = value;
    }
}

static void inflate_dynamic(inflater *f)
{
    static const uint8_t order[LENGTH_CODES] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                11, 4,  12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[LITERALS + DISTANCES] = {0};
    huffman codes, distances;
    const unsigned literal_count = 257 + take(f, 5), distance_count = 1 + take(f, 5);
    const unsigned code_count = 4 + take(f, 4);
    for (unsigned i = 0; i < code_count; i++) lengths[order[i]] = (uint8_t)take(f, 3);
    if (literal_count > 286 || distance_count > 30 || !build(&codes, lengths, LENGTH_CODES))
        f->fault = "a code that cannot be";
    memset(lengths, 0, sizeof lengths);
    read_lengths(f, &codes, lengths, literal_count + distance_count);
    if (f->fault != NULL) return;
    if (lengths[END_OF_BLOCK] == 0 || !build(&codes, lengths, literal_count) ||
        !build(&distances, lengths + literal_count, distance_count))
        f->fault = "a code that cannot be";
    if (f->fault == NULL) inflate_codes(f, &codes, &distances);
}

static void inflate_stream(inflater *f)
{
    for (int last = 0; !last && f->fault == NULL;) {
        last = (int)take(f, 1);
        const unsigned kind = take(f, 2);
        if (f->fault != NULL) return;
        if (kind == 0)
            copy_stored(f);
        else if (kind == 1)
            inflate_fixed(f);
        else if (kind == 2)
            inflate_dynamic(f);
        else
            f->fault = "a block of no known kind";
    }
}

/* Bytes of the head with its optional parts, 0: it is not one. */
static size_t head_bytes(const unsigned char *data, size_t bytes)
{
    enum { HEAD_SUM = 2, EXTRA = 4, NAME = 8, COMMENT = 16, RESERVED = 0xE0 };
    if (bytes < HEAD + TRAILER || data[0] != 0x1F || data[1] != 0x8B || data[2] != 8) return 0;
    const unsigned flags = data[3];
    size_t at = HEAD;
    if (flags & RESERVED) return 0;
    if (flags & EXTRA) at += 2 + (size_t)(data[HEAD] | data[HEAD + 1] << 8);
    for (unsigned text = NAME; text <= COMMENT; text *= 2) {
        if (!(flags & text)) continue;
        while (at < bytes && data[at] != 0) at++;
        at++;
    }
    if (flags & HEAD_SUM) at += 2;
    return at + TRAILER <= bytes ? at : 0;
}

static uint32_t load_u32(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

locus_status locus_gzip_unpack(unsigned char **out, size_t *out_bytes, const unsigned char *data,
                               size_t bytes, const locus_allocator *allocator, locus_error *error)
{
    const size_t head = head_bytes(data, bytes);
    *out = NULL;
    if (head == 0) return locus_fail(error, LOCUS_ERR_FORMAT, "not a gzip file");
    const unsigned char *trailer = data + bytes - TRAILER;
    const uint64_t announced = load_u32(trailer + 4);
    inflater f = {.in = data + head, .in_bytes = bytes - head - TRAILER};
    if (announced / EXPANSION > f.in_bytes)
        return locus_fail(error, LOCUS_ERR_FORMAT, "gzip: more text announced than can be there");
    f.out_bytes = (size_t)announced;
    f.out = locus_allocate(allocator, f.out_bytes + 1, 1);
    if (f.out == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for the text");
    inflate_stream(&f);
    if (f.fault == NULL && f.out_at != f.out_bytes) f.fault = "less text than announced";
    if (f.fault == NULL && f.in_at != f.in_bytes) f.fault = "bytes behind the stream";
    if (f.fault == NULL && locus_crc32(0, f.out, f.out_bytes) != load_u32(trailer))
        f.fault = "the sum is wrong";
    if (f.fault != NULL) {
        locus_release(allocator, f.out);
        return locus_fail(error, LOCUS_ERR_FORMAT, "gzip: %s", f.fault);
    }
    *out = f.out;
    *out_bytes = f.out_bytes;
    return LOCUS_OK;
}

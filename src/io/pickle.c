/* SPDX-License-Identifier: Apache-2.0 */
#include "io/pickle.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"

typedef locus_pickle_value value;

enum { GLOBAL_TEXT = 128 }; /* bytes of "module name" that are looked at */

/* ---- messages ---- */

locus_status locus_pickle_refuse(const locus_pickle *p, const char *found, const char *expected)
{
    return locus_fail(p->error, LOCUS_ERR_FORMAT, "pickle byte %zu: found %s, expected %s", p->at,
                      found, expected);
}

const char *locus_pickle_describe(const value *v)
{
    static const char *const words[] = {"a mark", "None",   "a bool",    "an integer",
                                        "a real", "text",   "a tuple",   "a list",
                                        "a dict", "a name", "a storage", "a tensor"};
    return words[v->kind];
}

locus_status locus_pickle_no_room(const locus_pickle *p, const locus_list *list)
{
    if (list->count == LOCUS_LIST_MAX)
        return locus_pickle_refuse(p, "more than 1048576 values", "fewer");
    return locus_fail(p->error, LOCUS_ERR_MEMORY, "no memory for the pickle");
}

/* ---- the stack ---- */

static locus_status push(locus_pickle *p, value v)
{
    value *top = locus_list_push(&p->stack, p->allocator);
    if (top == NULL) return locus_pickle_no_room(p, &p->stack);
    *top = v;
    return LOCUS_OK;
}

static value *below(const locus_pickle *p, size_t depth)
{
    return locus_list_at(&p->stack, p->stack.count - 1 - depth);
}

/* The lowest of the values above the last mark, which is taken away with them. */
static locus_status find_mark(const locus_pickle *p, size_t *first)
{
    for (size_t i = p->stack.count; i-- > 0;) {
        const value *v = locus_list_at(&p->stack, i);
        if (v->kind != LOCUS_PICKLE_MARK) continue;
        *first = i + 1;
        return LOCUS_OK;
    }
    return locus_pickle_refuse(p, "no mark", "one");
}

/* At least `count` values, none of them a mark. */
static locus_status need(const locus_pickle *p, size_t count)
{
    int good = p->stack.count >= count;
    for (size_t i = 0; good && i < count; i++) good = below(p, i)->kind != LOCUS_PICKLE_MARK;
    return good ? LOCUS_OK : locus_pickle_refuse(p, "too few values", "one or more");
}

static locus_status make_tuple(locus_pickle *p, size_t first, size_t keep)
{
    const value tuple = {LOCUS_PICKLE_TUPLE, (uint32_t)(p->stack.count - first), p->cells.count};
    for (size_t i = first; i < p->stack.count; i++) {
        value *cell = locus_list_push(&p->cells, p->allocator);
        if (cell == NULL) return locus_pickle_no_room(p, &p->cells);
        *cell = *(value *)locus_list_at(&p->stack, i);
    }
    p->stack.count = keep;
    return push(p, tuple);
}

const value *locus_pickle_cell(const locus_pickle *p, const value *tuple, uint32_t i)
{
    return locus_list_at(&p->cells, (size_t)tuple->at + i);
}

value locus_pickle_new_dict(locus_pickle *p) { return (value){LOCUS_PICKLE_DICT, 0, p->dicts++}; }

/* ---- bytes ---- */

static locus_status take(locus_pickle *p, size_t *cursor, uint64_t count, const unsigned char **at)
{
    if (count > p->count - *cursor) return locus_pickle_refuse(p, "its end", "more bytes");
    *at = p->bytes + *cursor;
    *cursor += (size_t)count;
    return LOCUS_OK;
}

/* Little-endian, of up to 8 bytes. */
static locus_status take_number(locus_pickle *p, size_t *cursor, size_t bytes, uint64_t *out)
{
    const unsigned char *at;
    LOCUS_TRY(take(p, cursor, bytes, &at));
    *out = 0;
    for (size_t i = bytes; i-- > 0;) *out = *out << 8 | at[i];
    return LOCUS_OK;
}

static locus_status push_text(locus_pickle *p, size_t *cursor)
{
    uint64_t bytes = 0;
    const unsigned char *at;
    LOCUS_TRY(take_number(p, cursor, 4, &bytes));
    LOCUS_TRY(take(p, cursor, bytes, &at));
    return push(p, (value){LOCUS_PICKLE_TEXT, (uint32_t)bytes, (uint64_t)(at - p->bytes)});
}

static locus_status push_integer(locus_pickle *p, size_t *cursor, size_t bytes, int is_signed)
{
    uint64_t n = 0;
    LOCUS_TRY(take_number(p, cursor, bytes, &n));
    if (is_signed && bytes > 0 && bytes < 8 && (n >> (8 * bytes - 1) & 1) != 0)
        n |= UINT64_MAX << (8 * bytes);
    return push(p, (value){LOCUS_PICKLE_INTEGER, 0, n});
}

/* A count of bytes, then an integer of so many. */
static locus_status push_long(locus_pickle *p, size_t *cursor)
{
    uint64_t bytes = 0;
    LOCUS_TRY(take_number(p, cursor, 1, &bytes));
    if (bytes > 8)
        return locus_pickle_refuse(p, "an integer of more than 8 bytes", "a shorter one");
    return push_integer(p, cursor, (size_t)bytes, 1);
}

/* Two lines: "torch._utils\n_rebuild_tensor_v2\n". */
static locus_status push_global(locus_pickle *p, size_t *cursor)
{
    char name[GLOBAL_TEXT];
    size_t count = 0;
    for (int lines = 0; lines < 2; lines++) {
        const unsigned char *at = p->bytes + *cursor;
        const unsigned char *end = memchr(at, '\n', p->count - *cursor);
        if (end == NULL || (size_t)(end - at) + count + 2 > sizeof name)
            return locus_pickle_refuse(p, "a long name of Python", "one of torch's tensors");
        memcpy(name + count, at, (size_t)(end - at));
        count += (size_t)(end - at);
        name[count++] = lines == 0 ? ' ' : '\0';
        *cursor += (size_t)(end - at) + 1;
    }
    value v;
    LOCUS_TRY(p->global(p, name, &v));
    return push(p, v);
}

/* ---- what builds values ---- */

static locus_status put_memo(locus_pickle *p, uint64_t index)
{
    LOCUS_TRY(need(p, 1));
    if (index > p->memo.count) return locus_pickle_refuse(p, "a gap in the memo", "none");
    value *kept = index < p->memo.count ? locus_list_at(&p->memo, (size_t)index)
                                        : locus_list_push(&p->memo, p->allocator);
    if (kept == NULL) return locus_pickle_no_room(p, &p->memo);
    *kept = *below(p, 0);
    return LOCUS_OK;
}

static locus_status get_memo(locus_pickle *p, uint64_t index)
{
    if (index >= p->memo.count)
        return locus_pickle_refuse(p, "a number beyond the memo", "one in it");
    return push(p, *(value *)locus_list_at(&p->memo, (size_t)index));
}

/* Pairs [first, end) of the stack into the dict that lies below them. */
static locus_status set_items(locus_pickle *p, size_t first, size_t keep)
{
    const value *dict = keep > 0 ? locus_list_at(&p->stack, keep - 1) : NULL;
    if (dict == NULL || dict->kind != LOCUS_PICKLE_DICT || (p->stack.count - first) % 2 != 0)
        return locus_pickle_refuse(p, "items of something else", "pairs for a dict");
    for (size_t i = first; i < p->stack.count; i += 2) {
        locus_pickle_item *item = locus_list_push(&p->items, p->allocator);
        if (item == NULL) return locus_pickle_no_room(p, &p->items);
        item->dict = dict->at;
        item->key = *(value *)locus_list_at(&p->stack, i);
        item->value = *(value *)locus_list_at(&p->stack, i + 1);
    }
    p->stack.count = keep;
    return LOCUS_OK;
}

static locus_status append(locus_pickle *p, size_t keep)
{
    const value *list = keep > 0 ? locus_list_at(&p->stack, keep - 1) : NULL;
    if (list == NULL || list->kind != LOCUS_PICKLE_LIST)
        return locus_pickle_refuse(p, "items of something else", "those of a list");
    p->stack.count = keep;
    return LOCUS_OK;
}

/* The attributes of a dict (a state_dict's _metadata) are not wanted. */
static locus_status build(locus_pickle *p)
{
    LOCUS_TRY(need(p, 2));
    if (below(p, 1)->kind != LOCUS_PICKLE_DICT || below(p, 0)->kind != LOCUS_PICKLE_DICT)
        return locus_pickle_refuse(p, "attributes of something else", "those of a dict");
    p->stack.count--;
    return LOCUS_OK;
}

static locus_status call(locus_pickle *p)
{
    value made;
    LOCUS_TRY(need(p, 2));
    const value name = *below(p, 1), args = *below(p, 0);
    if (name.kind != LOCUS_PICKLE_GLOBAL || args.kind != LOCUS_PICKLE_TUPLE)
        return locus_pickle_refuse(p, "a call of something else", "one that makes a tensor");
    LOCUS_TRY(p->call(p, name.at, &args, &made));
    p->stack.count -= 2;
    return push(p, made);
}

static locus_status persistent(locus_pickle *p)
{
    value made;
    LOCUS_TRY(need(p, 1));
    const value id = *below(p, 0);
    LOCUS_TRY(p->persistent(p, &id, &made));
    p->stack.count--;
    return push(p, made);
}

/* ---- opcodes ---- */

/* Those with a number of `bytes` bytes behind them. */
static locus_status run_memo(locus_pickle *p, size_t *cursor, int is_put, size_t bytes)
{
    uint64_t index = 0;
    LOCUS_TRY(take_number(p, cursor, bytes, &index));
    return is_put ? put_memo(p, index) : get_memo(p, index);
}

/* Those that take everything down to a mark. */
static locus_status run_marked(locus_pickle *p, unsigned char code)
{
    size_t first = 0;
    LOCUS_TRY(find_mark(p, &first));
    if (code == 't') return make_tuple(p, first, first - 1);
    return code == 'u' ? set_items(p, first, first - 1) : append(p, first - 1);
}

/* Those that take as many as they say. */
static locus_status run_counted(locus_pickle *p, unsigned char code)
{
    const size_t count = code == 's' ? 2 : code == 'a' ? 1 : (size_t)(code - 0x84);
    LOCUS_TRY(need(p, count));
    const size_t first = p->stack.count - count;
    if (code == 's') return set_items(p, first, first);
    return code == 'a' ? append(p, first) : make_tuple(p, first, first);
}

static locus_status run_real(locus_pickle *p, size_t *cursor)
{
    const unsigned char *at;
    LOCUS_TRY(take(p, cursor, 8, &at));
    return push(p, (value){LOCUS_PICKLE_REAL, 0, 0});
}

static locus_status unknown(const locus_pickle *p, unsigned char code)
{
    char found[32];
    snprintf(found, sizeof found, "opcode 0x%02x", code);
    return locus_pickle_refuse(p, found, "those of a dict of tensors, protocol 2");
}

static locus_status run_one(locus_pickle *p, size_t *cursor, unsigned char code)
{
    switch (code) {
    case '(': return push(p, (value){LOCUS_PICKLE_MARK, 0, 0});
    case 'N': return push(p, (value){LOCUS_PICKLE_NONE, 0, 0});
    case 0x88: return push(p, (value){LOCUS_PICKLE_BOOL, 0, 1});
    case 0x89: return push(p, (value){LOCUS_PICKLE_BOOL, 0, 0});
    case ')': return push(p, (value){LOCUS_PICKLE_TUPLE, 0, 0});
    case ']': return push(p, (value){LOCUS_PICKLE_LIST, 0, 0});
    case '}': return push(p, locus_pickle_new_dict(p));
    case 'K': return push_integer(p, cursor, 1, 0);
    case 'M': return push_integer(p, cursor, 2, 0);
    case 'J': return push_integer(p, cursor, 4, 1);
    case 0x8a: return push_long(p, cursor);
    case 'G': return run_real(p, cursor);
    case 'X': return push_text(p, cursor);
    case 'c': return push_global(p, cursor);
    case 'q': return run_memo(p, cursor, 1, 1);
    case 'r': return run_memo(p, cursor, 1, 4);
    case 'h': return run_memo(p, cursor, 0, 1);
    case 'j': return run_memo(p, cursor, 0, 4);
    case 't':
    case 'u':
    case 'e': return run_marked(p, code);
    case 0x85:
    case 0x86:
    case 0x87:
    case 's':
    case 'a': return run_counted(p, code);
    case 'b': return build(p);
    case 'R': return call(p);
    case 'Q': return persistent(p);
    default: return unknown(p, code);
    }
}

locus_status locus_pickle_run(locus_pickle *p, value *root)
{
    size_t cursor = 2;
    p->stack.item_bytes = p->memo.item_bytes = p->cells.item_bytes = sizeof(value);
    p->items.item_bytes = sizeof(locus_pickle_item);
    if (p->count < 2 || p->bytes[0] != 0x80 || p->bytes[1] != 2)
        return locus_pickle_refuse(p, "another beginning", "protocol 2");
    while (cursor < p->count) {
        p->at = cursor;
        const unsigned char code = p->bytes[cursor++];
        if (code != '.') {
            LOCUS_TRY(run_one(p, &cursor, code));
            continue;
        }
        LOCUS_TRY(need(p, 1));
        if (p->stack.count != 1 || cursor != p->count)
            return locus_pickle_refuse(p, "more than one value", "one");
        *root = *below(p, 0);
        return LOCUS_OK;
    }
    return locus_pickle_refuse(p, "its end", "STOP");
}

void locus_pickle_clear(locus_pickle *p)
{
    locus_list_clear(&p->stack, p->allocator);
    locus_list_clear(&p->memo, p->allocator);
    locus_list_clear(&p->cells, p->allocator);
    locus_list_clear(&p->items, p->allocator);
}

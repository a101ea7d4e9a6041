/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_IO_PICKLE_H
#define LOCUS_IO_PICKLE_H

/* The part of pickle, protocol 2, that a dictionary of tensors is written in. Nothing is executed
 * and nothing imported: a name of Python is a number that the caller knows, "calls" of it and
 * persistent ids become what the caller's functions make of them, all else is refused. */

#include "io/store.h"

typedef enum locus_pickle_kind {
    LOCUS_PICKLE_MARK,
    LOCUS_PICKLE_NONE,
    LOCUS_PICKLE_BOOL,
    LOCUS_PICKLE_INTEGER, /* at: as int64_t                         */
    LOCUS_PICKLE_REAL,
    LOCUS_PICKLE_TEXT,    /* bytes [at, at + count)                 */
    LOCUS_PICKLE_TUPLE,   /* cells [at, at + count)                 */
    LOCUS_PICKLE_LIST,    /* what is in it is forgotten             */
    LOCUS_PICKLE_DICT,    /* at: its number                         */
    LOCUS_PICKLE_GLOBAL,  /* at: the caller's number of it          */
    LOCUS_PICKLE_STORAGE, /* at: the caller's number, from its hook */
    LOCUS_PICKLE_TENSOR,
} locus_pickle_kind;

typedef struct locus_pickle_value {
    uint32_t kind, count;
    uint64_t at;
} locus_pickle_value;

/* dict[key] = value, in the order of the file. */
typedef struct locus_pickle_item {
    uint64_t dict;
    locus_pickle_value key, value;
} locus_pickle_item;

typedef struct locus_pickle {
    const unsigned char *bytes;
    size_t count, at; /* at: of the opcode, for messages */
    const locus_allocator *allocator;
    locus_error *error;
    /* A name "module name" as a value; the id or call of `args` as a value. */
    locus_status (*global)(struct locus_pickle *p, const char *name, locus_pickle_value *out);
    locus_status (*persistent)(struct locus_pickle *p, const locus_pickle_value *id,
                               locus_pickle_value *out);
    locus_status (*call)(struct locus_pickle *p, uint64_t global, const locus_pickle_value *args,
                         locus_pickle_value *out);
    void *context;
    locus_list stack, memo, cells; /* locus_pickle_value */
    locus_list items;              /* locus_pickle_item  */
    uint64_t dicts;
} locus_pickle;

/* Runs to STOP; *root is what is left. locus_pickle_clear also after a failure. */
locus_status locus_pickle_run(locus_pickle *p, locus_pickle_value *root);
void locus_pickle_clear(locus_pickle *p);

/* Cell i of a tuple. */
const locus_pickle_value *locus_pickle_cell(const locus_pickle *p, const locus_pickle_value *tuple,
                                            uint32_t i);
locus_pickle_value locus_pickle_new_dict(locus_pickle *p);

/* "pickle byte N: found FOUND, expected EXPECTED" */
locus_status locus_pickle_refuse(const locus_pickle *p, const char *found, const char *expected);
/* Why a list took no more. */
locus_status locus_pickle_no_room(const locus_pickle *p, const locus_list *list);
const char *locus_pickle_describe(const locus_pickle_value *value);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_PYTHON_DLPACK_H
#define LOCUS_PYTHON_DLPACK_H

/* The binary interface of DLPack 1.x (dmlc.github.io/dlpack), as much of it as a reader
 * needs: memory layout, not code. */

#include <stdint.h>

enum { DLPACK_CPU = 1 }; /* device_type             */
enum {
    DLPACK_INT,
    DLPACK_UINT,
    DLPACK_FLOAT, /* type codes              */
    DLPACK_BFLOAT = 4,
    DLPACK_BOOL = 6
};
enum { DLPACK_READ_ONLY = 1 }; /* a bit of `flags`        */
enum { DLPACK_MAJOR = 1 };

typedef struct dlpack_version {
    uint32_t major, minor;
} dlpack_version;

typedef struct dlpack_tensor {
    void *data;
    struct {
        int32_t type, id;
    } device;
    int32_t axes;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape;
    int64_t *stride; /* elements; NULL: dense, row-major */
    uint64_t byte_offset;
} dlpack_tensor;

/* Inside a capsule named "dltensor". */
typedef struct dlpack_legacy {
    dlpack_tensor tensor;
    void *context;
    void (*deleter)(struct dlpack_legacy *self);
} dlpack_legacy;

/* Inside a capsule named "dltensor_versioned". */
typedef struct dlpack_versioned {
    dlpack_version version;
    void *context;
    void (*deleter)(struct dlpack_versioned *self);
    uint64_t flags;
    dlpack_tensor tensor;
} dlpack_versioned;

/* Inside the capsule "dlpack_exchange_api" that a type may carry as
 * __dlpack_c_exchange_api__: the same without a call through Python. */
typedef struct dlpack_exchange {
    dlpack_version version;
    void *older;
    void *allocate;
    int (*from_object)(void *object, dlpack_versioned **out);
    void *to_object;
    int (*borrow)(void *object, dlpack_tensor *out); /* valid while the object is; may be NULL */
} dlpack_exchange;

#endif

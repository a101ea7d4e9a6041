/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_PYTHON_NATIVE_H
#define LOCUS_PYTHON_NATIVE_H

/* The extension module locus._native: Python objects in, calls of the public C interface,
 * Python exceptions out. Everything here is called with the GIL held; it is given up around
 * the library's own work. Caches are guarded by the GIL and hold no Python objects. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <locus/locus.h>
#include <locus/picture.h>

/* ---- errors.c ---- */

/* Raise what locus._errors makes of a status; `text` is the library's own line. */
void native_raise(locus_status status, const char *text);

/* The same with a line of ours, in the library's manner. */
void native_refuse(locus_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- views.c, dlpack.c: arrays of other people ---- */

/* What keeps one array's memory in place until the call is over. */
typedef struct native_hold {
    void (*release)(struct native_hold *hold);
    union {
        Py_buffer buffer;
        void *managed;
    };
} native_hold;

enum { NATIVE_MOST_HOLDS = 2 * LOCUS_TENSOR_COUNT + 4 };

typedef struct native_holds {
    size_t count;
    native_hold hold[NATIVE_MOST_HOLDS];
} native_holds;

void native_release(native_hold *hold);
void native_let_go(native_holds *holds);

/* A view of `object` (buffer protocol or DLPack, on the CPU) as tensor `prefix``name`. -1: an
 * exception is set. */
typedef struct native_role {
    const char *prefix; /* "" or "grad."      */
    const char *name;   /* "q", "out", ...    */
    int writable;       /* 1: an output       */
} native_role;

int native_view(locus_tensor *view, native_holds *holds, PyObject *object, const native_role *role);

/* The parts of native_view that both protocols share. Strides count bytes in `layout`. */
typedef struct native_layout {
    void *data;
    locus_dtype dtype;
    int axes;
    const int64_t *shape;
    int64_t stride[LOCUS_MAX_RANK];
} native_layout;

/* The type of that name ("F32", ...) that calls may have; 0: none. */
int native_find_dtype(const char *name, locus_dtype *dtype);
int native_check_axes(int axes, const native_role *role);
int native_refuse_type(const native_role *role, const char *found);
int native_fill_view(locus_tensor *view, const native_layout *layout, const native_role *role);

/* 1: elements lie one after another, the last axis innermost. */
int native_is_dense(const locus_tensor *t);

/* 1: done, 0: `object` does not speak DLPack, -1: an exception is set. */
int native_view_dlpack(locus_tensor *view, native_hold *hold, PyObject *object,
                       const native_role *role);

/* ---- config.c ---- */

/* A configuration that owns its text, so that it outlives the Python objects. */
typedef struct native_config {
    locus_config c;
    uint32_t level; /* LOCUS_ATTEND or LOCUS_LAYER */
    char isa[32], path[32];
} native_config;

/* UTF-8 of a str, which lives as long as the str; NULL: an exception is set. */
const char *native_text(PyObject *value, const char *name);

/* An option's value as case files spell it: 32, True, 0.5 and "half" are text there. */
PyObject *native_spell(PyObject *value);

int native_read_config(native_config *config, uint32_t level, PyObject *dict);

/* A mask or dense bias with fewer axes than [B,H,Tq,Tk] gets leading ones, as in PyTorch. */
void native_add_axes(const locus_tensors *tensors, locus_tensor *view);

/* Read a dict of name -> array into `tensors`. */
int native_read_tensors(locus_tensors *tensors, native_holds *holds, PyObject *dict,
                        const char *prefix, int writable);

/* ---- plans.c: a bounded cache of plans, and of workspaces ---- */

typedef struct native_plan {
    locus_plan *attention; /* level LOCUS_ATTEND */
    locus_layer *layer;    /* level LOCUS_LAYER  */
    size_t references;     /* the cache's own included */
    locus_allocator allocator;
    size_t bytes; /* that `allocator` gave  */
    uint64_t hash, last_use;
    size_t key_bytes;
    unsigned char key[];
} native_plan;

/* The plan of this call, new or from the cache; NULL: an exception is set. */
native_plan *native_plan_for(const native_config *config, const locus_tensors *shapes);
int native_plan_serves(const native_plan *plan, const native_config *config,
                       const locus_tensors *shapes);
void native_plan_drop(native_plan *plan);

/* 64-byte aligned memory of at least `bytes`, kept for the next call when given back. */
typedef struct native_workspace {
    void *memory;
    size_t bytes;
} native_workspace;

int native_take_workspace(native_workspace *workspace, size_t bytes);
void native_give_workspace(native_workspace workspace);

/* Threads of a call that asks for so many (0: the default). */
uint32_t native_threads(uint32_t asked);

PyObject *native_cache_info(PyObject *module, PyObject *unused);
PyObject *native_cache_clear(PyObject *module, PyObject *unused);

/* ---- functions of the module ---- */

PyObject *native_forward(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *native_backward(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *native_layer_forward(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *native_layer_backward(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *native_prepare(PyObject *module, PyObject *config);
PyObject *native_tensor_index(PyObject *module, PyObject *name);
PyObject *native_run(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *native_rules(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *native_sinusoids(PyObject *module, PyObject *arguments);
PyObject *native_schemes(PyObject *module, PyObject *unused);
PyObject *native_common_tensors(PyObject *module, PyObject *unused);

PyObject *native_attend(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *native_attend_backward(PyObject *module, PyObject *const *args, Py_ssize_t count);

/* ---- masks.c ---- */

PyObject *native_hides_nothing(PyObject *module, PyObject *mask);

/* ---- torch.c: what a call on torch's tensors asks of torch ---- */

PyObject *native_torch(PyObject *module, PyObject *given);

/* 1: the tensors of (index, tensor, ...) are torch's own, need no gradient, and nobody watches
 * the dispatcher; 0: something else; -1: an exception is set. Before the others are called. */
int native_torch_plain(PyObject *const *pair, Py_ssize_t count);
PyObject *native_torch_threads(void);

/* 1: a tensor of torch whose numbers may be looked at; 0: something else; -1: an exception is set. */
int native_torch_readable(PyObject *tensor);

/* New tensors: as `tensor` lies, or dense. */
PyObject *native_torch_like(PyObject *tensor);
PyObject *native_torch_new(locus_dtype dtype, int axes, const int64_t *shape);

/* ---- files.c, cases.c ---- */

/* A dense copy of a tensor as (name, dtype, shape, bytearray). */
PyObject *native_pack_tensor(const char *name, const locus_tensor *tensor);
/* The C path of str, bytes or os.PathLike, as bytes that the caller owns. */
PyObject *native_path(PyObject *object);

PyObject *native_file_read(PyObject *module, PyObject *path);
PyObject *native_file_write(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *native_case_load(PyObject *module, PyObject *path);
PyObject *native_case_info(PyObject *module, PyObject *capsule);
PyObject *native_case_run(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *native_case_compare(PyObject *module, PyObject *capsule);
PyObject *native_case_save(PyObject *module, PyObject *const *args, Py_ssize_t count);

/* ---- explain.c, figures.c, pictures.c ---- */

PyObject *native_explain(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *native_picture(PyObject *module, PyObject *const *args, Py_ssize_t count);
/* What native_picture made; NULL: it is something else, and no exception is set. */
const locus_figure *native_picture_figure(PyObject *capsule);
PyObject *native_render(PyObject *module, PyObject *const *args, Py_ssize_t count);

/* ---- models.c ---- */

/* The model of a capsule; NULL: an exception is set. */
locus_model *native_model_of(PyObject *capsule);

/* `object`, which must be bytes, as numbers of `size` bytes each: how many; -1: an exception is set. */
int64_t native_array(PyObject *object, const void **data, size_t size);

/* Ids of texts, one behind the other, and where they begin, both in bytes. */
int native_read_ids(PyObject *ids_object, PyObject *offsets_object, const void **ids,
                    const int64_t **offsets, int64_t *texts, int64_t *tokens);

/* A bytearray of so many floats. */
PyObject *native_floats(int64_t count);

PyObject *native_model_open(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *native_model_info(PyObject *module, PyObject *capsule);
PyObject *native_model_run(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *native_model_attention(PyObject *module, PyObject *const *args, Py_ssize_t count);

/* ---- generate.c ---- */

PyObject *native_model_generate(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *native_generation_settings(PyObject *module, PyObject *unused);

/* ---- training.c: gradients through models ---- */

/* What a forward pass leaves for the way back. */
typedef struct native_kept {
    PyObject *model; /* its capsule, which must stay */
    locus_model_pass *pass;
    void *data;
    size_t bytes;
} native_kept;

/* A capsule that takes what is in *kept, whatever comes of it, and holds the model. */
PyObject *native_kept_new(PyObject *model, native_kept *kept);
void native_kept_clear(native_kept *kept);

PyObject *native_model_parameters(PyObject *module, PyObject *capsule);
PyObject *native_model_update(PyObject *module, PyObject *capsule);
PyObject *native_model_backward(PyObject *module, PyObject *const *args, Py_ssize_t count);

/* ---- tokenizers.c ---- */

PyObject *native_tokenizer_open(PyObject *module, PyObject *path);
PyObject *native_tokenizer_info(PyObject *module, PyObject *capsule);
PyObject *native_tokenizer_token(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *native_tokenizer_find(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *native_tokenizer_encode(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *native_tokenizer_decode(PyObject *module, PyObject *const *args, Py_ssize_t count);

/* 0 when a function got as many arguments as it takes. */
int native_check_count(const char *function, Py_ssize_t found, Py_ssize_t expected);

#endif

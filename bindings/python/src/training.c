/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients through models: parameters as tensors that share the model's memory, what a forward pass
 * keeps, and the way back. */
#include <stdlib.h>

#include "dlpack.h"
#include "native.h"

static const char kept_name[] = "locus.kept";

/* ---- parameters ---- */

typedef struct shared {
    dlpack_legacy tensor;
    int64_t shape[LOCUS_MAX_RANK];
} shared;

/* Tensors may be freed by any thread. */
static void let_go(dlpack_legacy *self)
{
    const PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF((PyObject *)self->context);
    PyGILState_Release(state);
    free((shared *)(void *)self);
}

/* A capsule that nobody has taken. */
static void drop_capsule(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor")) let_go(PyCapsule_GetPointer(capsule, "dltensor"));
}

static PyObject *share(PyObject *model, const locus_tensor *value)
{
    shared *s = calloc(1, sizeof *s);
    if (s == NULL) return PyErr_NoMemory();
    for (uint32_t a = 0; a < value->rank; a++) s->shape[a] = value->shape[a];
    s->tensor = (dlpack_legacy){.tensor = {.data = value->data,
                                           .device = {.type = DLPACK_CPU},
                                           .axes = (int32_t)value->rank,
                                           .dtype = {.code = DLPACK_FLOAT, .bits = 32, .lanes = 1},
                                           .shape = s->shape},
                                .context = Py_NewRef(model),
                                .deleter = let_go};
    PyObject *capsule = PyCapsule_New(&s->tensor, "dltensor", drop_capsule);
    if (capsule == NULL) let_go(&s->tensor);
    return capsule;
}

/* model_parameters(model) -> [(name, DLPack capsule, where its gradient begins)] */
PyObject *native_model_parameters(PyObject *module, PyObject *capsule)
{
    (void)module;
    const locus_model *model = native_model_of(capsule);
    PyObject *list = model != NULL ? PyList_New(0) : NULL;
    const int64_t count = list != NULL ? locus_model_parameter_count(model) : 0;
    for (int64_t i = 0; list != NULL && i < count; i++) {
        locus_model_parameter p = {.size = sizeof p};
        locus_error error = {.text = ""};
        const locus_status status = locus_model_parameter_at(model, i, &p, &error);
        if (status != LOCUS_OK) native_raise(status, error.text);
        PyObject *tensor = status == LOCUS_OK ? share(capsule, &p.value) : NULL;
        PyObject *entry =
            tensor != NULL ? Py_BuildValue("(sNL)", p.name, tensor, (long long)p.at) : NULL;
        if (entry == NULL || PyList_Append(list, entry) != 0) Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

PyObject *native_model_update(PyObject *module, PyObject *capsule)
{
    (void)module;
    locus_model *model = native_model_of(capsule);
    locus_error error = {.text = ""};
    if (model == NULL) return NULL;
    const locus_status status = locus_model_update(model, &error);
    if (status == LOCUS_OK) return Py_NewRef(Py_None);
    native_raise(status, error.text);
    return NULL;
}

/* ---- the way back ---- */

void native_kept_clear(native_kept *kept)
{
    locus_model_pass_free(kept->pass);
    free(kept->data);
    Py_XDECREF(kept->model);
    *kept = (native_kept){.pass = NULL};
}

static void free_kept(PyObject *capsule)
{
    native_kept *kept = PyCapsule_GetPointer(capsule, kept_name);
    native_kept_clear(kept);
    free(kept);
}

PyObject *native_kept_new(PyObject *model, native_kept *kept)
{
    native_kept *own = malloc(sizeof *own);
    PyObject *capsule = own != NULL ? PyCapsule_New(own, kept_name, free_kept) : NULL;
    if (capsule == NULL) {
        native_kept_clear(kept);
        free(own);
        return PyErr_NoMemory();
    }
    *own = *kept;
    own->model = Py_NewRef(model);
    return capsule;
}

/* Gradients of results, as they came: a list of bytes or None for layers, else bytes or None. */
typedef struct slopes {
    const float **hidden, **decoder_hidden; /* NULL: none */
    const float *logits, *embedding;
} slopes;

static int read_one(PyObject *object, const float **to)
{
    const void *data = NULL;
    if (object != Py_None && native_array(object, &data, sizeof(float)) < 0) return -1;
    *to = data;
    return 0;
}

static int read_list(PyObject *object, const float ***to)
{
    if (object == Py_None) return 0;
    const Py_ssize_t count = PyList_Size(object);
    if (count < 0) return -1;
    *to = calloc((size_t)count + 1, sizeof **to);
    if (*to == NULL) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < count; i++)
        if (read_one(PyList_GetItem(object, i), &(*to)[i]) != 0) return -1;
    return 0;
}

static locus_status go_back(const native_kept *kept, const slopes *s, float *parameters,
                            locus_error *error)
{
    const locus_model_gradients gradients = {.size = sizeof gradients,
                                             .hidden = s->hidden,
                                             .logits = s->logits,
                                             .embedding = s->embedding,
                                             .parameters = parameters,
                                             .decoder_hidden = s->decoder_hidden};
    const size_t bytes = locus_model_backward_workspace(kept->pass);
    void *workspace = malloc(bytes + 1);
    const locus_status status = workspace != NULL
                                    ? locus_model_backward(kept->pass, &gradients, kept->data,
                                                           kept->bytes, workspace, bytes, error)
                                    : LOCUS_ERR_MEMORY;
    free(workspace);
    return status;
}

/* model_backward(kept, hidden, logits, embedding, decoder_hidden) -> floats of all parameters. The
 * caller has looked at the sizes. */
PyObject *native_model_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (native_check_count("model_backward", count, 5) != 0) return NULL;
    const native_kept *kept = PyCapsule_GetPointer(args[0], kept_name);
    slopes s = {.hidden = NULL};
    PyObject *found = NULL;
    if (kept != NULL && read_list(args[1], &s.hidden) == 0 && read_one(args[2], &s.logits) == 0 &&
        read_one(args[3], &s.embedding) == 0 && read_list(args[4], &s.decoder_hidden) == 0)
        found = native_floats(locus_model_parameter_floats(native_model_of(kept->model)));
    if (found != NULL) {
        float *parameters = (float *)(void *)PyByteArray_AsString(found);
        locus_error error = {.text = "out of memory"};
        locus_status status = LOCUS_OK;
        Py_BEGIN_ALLOW_THREADS status = go_back(kept, &s, parameters, &error);
        Py_END_ALLOW_THREADS if (status != LOCUS_OK)
        {
            native_raise(status, error.text);
            Py_CLEAR(found);
        }
    }
    free(s.hidden);
    free(s.decoder_hidden);
    return found;
}

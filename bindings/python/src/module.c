/* SPDX-License-Identifier: Apache-2.0 */
/* locus._native: what the declarations and the machine say, and the table of functions. */
#include "native.h"

/* Append what PyObject-building code made; -1: it failed. Takes the reference. */
static int append(PyObject *list, PyObject *item)
{
    const int status = item != NULL ? PyList_Append(list, item) : -1;
    Py_XDECREF(item);
    return status;
}

/* ---- declarations ---- */

static PyObject *choices_of(const locus_option_info *info)
{
    PyObject *names = PyList_New(0);
    const locus_choice *choice = info->choices;
    for (; names != NULL && choice != NULL && choice->name != NULL; choice++)
        if (append(names, PyUnicode_FromString(choice->name)) != 0) Py_CLEAR(names);
    return names;
}

/* The default as a value of its kind: the name of a choice, a whole or a real number. */
static PyObject *preset_of(const locus_option_info *info)
{
    if (info->required) return Py_NewRef(Py_None);
    if (info->kind == LOCUS_OPTION_REAL) return PyFloat_FromDouble(info->preset);
    if (info->kind == LOCUS_OPTION_CHOICE)
        for (const locus_choice *choice = info->choices; choice->name != NULL; choice++)
            if (choice->value == (int64_t)info->preset) return PyUnicode_FromString(choice->name);
    return PyLong_FromLongLong((long long)info->preset);
}

static PyObject *option_of(const locus_option_info *info)
{
    static const char *const kinds[] = {[LOCUS_OPTION_INTEGER] = "integer",
                                        [LOCUS_OPTION_REAL] = "real",
                                        [LOCUS_OPTION_CHOICE] = "choice"};
    return Py_BuildValue("{sssssssIsOszsdsdsNsN}", "name", info->name, "help", info->help, "kind",
                         kinds[info->kind], "levels", (unsigned)info->levels, "required",
                         info->required ? Py_True : Py_False, "with", info->with, "minimum",
                         info->minimum, "maximum", info->maximum, "default", preset_of(info),
                         "choices", choices_of(info));
}

/* "F32", "BF16", ...: what a tensor may be given as. Doubles are the oracle's. */
static PyObject *dtypes_of(const locus_tensor_info *info)
{
    PyObject *names = PyList_New(0);
    for (int dtype = 0; names != NULL && locus_dtype_name((locus_dtype)dtype) != NULL; dtype++)
        if ((info->dtypes >> dtype & 1u) != 0 && dtype != LOCUS_F64 &&
            append(names, PyUnicode_FromString(locus_dtype_name((locus_dtype)dtype))) != 0)
            Py_CLEAR(names);
    return names;
}

static PyObject *tensor_of(const locus_tensor_info *info)
{
    return Py_BuildValue("{ssszsssIsOsNsOsO}", "name", info->name, "help", info->help, "shape",
                         info->shape, "levels", (unsigned)info->levels, "required",
                         info->required ? Py_True : Py_False, "dtypes", dtypes_of(info), "gradient",
                         info->uses & LOCUS_USE_GRADIENT ? Py_True : Py_False, "planned",
                         info->uses & LOCUS_USE_PLAN ? Py_True : Py_False);
}

/* Those of a scheme; NULL: the common ones. */
static PyObject *tensors_of(const locus_scheme_info *scheme)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL; i++) {
        const locus_tensor_info *info =
            scheme != NULL ? locus_scheme_tensor(scheme, i) : locus_common_tensor(i);
        if (info == NULL) break;
        if (append(list, tensor_of(info)) != 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *options_of(const locus_scheme_info *scheme)
{
    PyObject *list = PyList_New(0);
    const locus_option_info *info;
    for (size_t i = 0; list != NULL && (info = locus_scheme_option(scheme, i)) != NULL; i++)
        if (append(list, option_of(info)) != 0) Py_CLEAR(list);
    return list;
}

static PyObject *terms_of(uint32_t terms)
{
    PyObject *list = PyList_New(0);
    for (uint32_t bit = 1; list != NULL && bit != 0; bit <<= 1)
        if ((terms & bit) != 0 && locus_term_name(bit) != NULL &&
            append(list, PyUnicode_FromString(locus_term_name(bit))) != 0)
            Py_CLEAR(list);
    return list;
}

PyObject *native_schemes(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < locus_scheme_count(); i++) {
        const locus_scheme_info *s = locus_scheme_at(i);
        PyObject *item =
            Py_BuildValue("{sssssssssssssNsIsNsN}", "name", s->name, "title", s->title, "formula",
                          s->formula, "citation", s->citation, "rule", s->rule, "scale", s->scale,
                          "terms", terms_of(s->terms), "traits", (unsigned)s->traits, "options",
                          options_of(s), "tensors", tensors_of(s));
        if (append(list, item) != 0) Py_CLEAR(list);
    }
    return list;
}

PyObject *native_common_tensors(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return tensors_of(NULL);
}

/* ---- the machine ---- */

static PyObject *cpu_info(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *built = PyList_New(0), *available = PyList_New(0);
    for (size_t i = 0; built && available && locus_isa_name(i) != NULL; i++) {
        const char *name = locus_isa_name(i);
        if (append(built, PyUnicode_FromString(name)) != 0) Py_CLEAR(built);
        if (built != NULL && locus_isa_available(name) &&
            append(available, PyUnicode_FromString(name)) != 0)
            Py_CLEAR(available);
    }
    if (built == NULL || available == NULL) {
        Py_XDECREF(built);
        Py_XDECREF(available);
        return NULL;
    }
    return Py_BuildValue("{sNsNszsIsO}", "built", built, "available", available, "isa",
                         locus_isa_pick(NULL), "threads", (unsigned)locus_default_threads(),
                         "openmp", locus_has_threads() ? Py_True : Py_False);
}

static PyObject *version(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyUnicode_FromString(locus_version());
}

/* What this module was compiled for, and what it runs with: they part when the headers and
 * the objects of a build do. */
static PyObject *abi(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    locus_config config;
    const locus_status status = locus_config_init(&config, "none");
    return Py_BuildValue("{s(iii)sssisnsn}", "header_version", LOCUS_VERSION_MAJOR,
                         LOCUS_VERSION_MINOR, LOCUS_VERSION_PATCH, "library_version",
                         locus_version(), "statuses", (int)LOCUS_STATUS_COUNT, "config_bytes",
                         status == LOCUS_OK ? (Py_ssize_t)config.size : -1, "tensor_count",
                         (Py_ssize_t)LOCUS_TENSOR_COUNT);
}

static PyObject *status_text(PyObject *module, PyObject *number)
{
    (void)module;
    const long status = PyLong_AsLong(number);
    if (status == -1 && PyErr_Occurred()) return NULL;
    if (status < 0 || status >= LOCUS_STATUS_COUNT) Py_RETURN_NONE;
    return PyUnicode_FromString(locus_status_text((locus_status)status));
}

/* ---- the module ---- */

/* METH_FASTCALL functions have another type than PyMethodDef names. */
#define FAST(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef methods[] = {
    {"forward", FAST(native_forward), METH_FASTCALL,
     "forward(config, tensors, out, lse, lse_low = None)"},
    {"backward", FAST(native_backward), METH_FASTCALL,
     "backward(config, tensors, out, lse, dout, grads, accumulate, dlse = None, lse_low = None)"},
    {"prepare", native_prepare, METH_O, "prepare(config) -> prepared"},
    {"tensor_index", native_tensor_index, METH_O, "the number of a tensor; -1: no such tensor"},
    {"run", FAST(native_run), METH_FASTCALL,
     "run(prepared, threads, seed, out, lse or None, index, tensor, ...)"},
    {"torch", native_torch, METH_O, "torch(types and functions): before attend"},
    {"attend", FAST(native_attend), METH_FASTCALL,
     "attend(prepared, seed, 1: out by token + 2: lse + 256 x heads of [B,T,H*D], index, tensor, "
     "...) -> out, (out, lse) or None"},
    {"attend_backward", FAST(native_attend_backward), METH_FASTCALL,
     "attend_backward(prepared, seed, as attend had it, out, lse, dout, needs, index, tensor, ...) "
     "-> gradients, None where none is needed"},
    {"hides_nothing", native_hides_nothing, METH_O,
     "True: an additive or boolean mask lets everything be seen; False: it does not, is long, or no "
     "plain tensor of torch"},
    {"layer_forward", FAST(native_layer_forward), METH_FASTCALL,
     "layer_forward(config, tensors, out, lse) -> saved"},
    {"layer_backward", FAST(native_layer_backward), METH_FASTCALL,
     "layer_backward(config, tensors, saved, dout, grads, accumulate, dlse = None)"},
    {"file_read", native_file_read, METH_O, "file_read(path) -> (metadata, tensors)"},
    {"file_write", FAST(native_file_write), METH_FASTCALL, "file_write(path, metadata, tensors)"},
    {"case_load", native_case_load, METH_O, "case_load(path) -> case"},
    {"case_info", native_case_info, METH_O, "case_info(case) -> dict"},
    {"case_run", FAST(native_case_run), METH_FASTCALL,
     "case_run(case, oracle, threads, isa) -> tensors"},
    {"case_compare", native_case_compare, METH_O, "case_compare(case) -> dicts"},
    {"case_save", FAST(native_case_save), METH_FASTCALL, "case_save(case, path)"},
    {"explain", FAST(native_explain), METH_FASTCALL,
     "explain(kind, config, tensors, (batch, head, query, queries, key, keys)) -> dict"},
    {"picture", FAST(native_picture), METH_FASTCALL,
     "picture(scheme, what, tokens, numbers, options, path) -> figure"},
    {"render", FAST(native_render), METH_FASTCALL,
     "render(figure, format, theme, width, prefix) -> str"},
    {"rules", FAST(native_rules), METH_FASTCALL,
     "rules(config, shapes) -> scale, offset, rows and rotations of an attend call"},
    {"sinusoids", native_sinusoids, METH_VARARGS,
     "sinusoids(table, width, first, count) -> rows of doubles"},
    {"model_open", FAST(native_model_open), METH_FASTCALL,
     "model_open(folder, threads, trainable, precision) -> model"},
    {"model_info", native_model_info, METH_O, "model_info(model) -> dict"},
    {"model_run", FAST(native_model_run), METH_FASTCALL,
     "model_run(model, ids, types, offsets, rows, decoder_ids, decoder_offsets, what, keep) -> dict"},
    {"model_attention", FAST(native_model_attention), METH_FASTCALL,
     "model_attention(model, stack, layer, q, kv, queries, keys, types) -> scheme, causal, scale, "
     "options, tensors"},
    {"model_parameters", native_model_parameters, METH_O,
     "model_parameters(model) -> [(name, DLPack capsule, at)]"},
    {"model_update", native_model_update, METH_O, "model_update(model)"},
    {"model_backward", FAST(native_model_backward), METH_FASTCALL,
     "model_backward(kept, hidden, logits, embedding, decoder_hidden) -> floats"},
    {"model_generate", FAST(native_model_generate), METH_FASTCALL,
     "model_generate(model, ids, offsets, settings[, told]) -> [(ids, score)]; told(text, id)"},
    {"generation_settings", native_generation_settings, METH_NOARGS,
     "generation_settings() -> [(name, name in transformers or None)]"},
    {"tokenizer_open", native_tokenizer_open, METH_O, "tokenizer_open(folder) -> tokenizer"},
    {"tokenizer_info", native_tokenizer_info, METH_O, "tokenizer_info(tokenizer) -> dict"},
    {"tokenizer_token", FAST(native_tokenizer_token), METH_FASTCALL,
     "tokenizer_token(tokenizer, id) -> str or None"},
    {"tokenizer_find", FAST(native_tokenizer_find), METH_FASTCALL,
     "tokenizer_find(tokenizer, token) -> int or None"},
    {"tokenizer_encode", FAST(native_tokenizer_encode), METH_FASTCALL,
     "tokenizer_encode(tokenizer, text, pair, plain, truncate) -> ids, types, offsets, segments"},
    {"tokenizer_decode", FAST(native_tokenizer_decode), METH_FASTCALL,
     "tokenizer_decode(tokenizer, ids, skip_special) -> str"},
    {"schemes", native_schemes, METH_NOARGS, "the declarations of all schemes"},
    {"common_tensors", native_common_tensors, METH_NOARGS, "tensors that every scheme takes"},
    {"cpu_info", cpu_info, METH_NOARGS, "instruction sets and threads"},
    {"version", version, METH_NOARGS, "the version of the library"},
    {"abi", abi, METH_NOARGS, "what the module was compiled for and runs with"},
    {"status_text", status_text, METH_O, "one line for a status, None for no status"},
    {"cache_info", native_cache_info, METH_NOARGS, "plans and workspaces that are kept"},
    {"cache_clear", native_cache_clear, METH_NOARGS, "forget plans and workspaces"},
    {NULL, NULL, 0, NULL},
};

static int prepare(PyObject *module)
{
    (void)module;
    (void)locus_default_threads(); /* from here on, the child of a fork computes on one thread */
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)prepare}, {0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "locus._native",
                                        .m_methods = methods, .m_slots = slots};

PyMODINIT_FUNC PyInit__native(void);
PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&definition); }

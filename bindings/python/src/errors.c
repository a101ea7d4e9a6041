/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "native.h"

void native_raise(locus_status status, const char *text)
{
    PyObject *module = PyImport_ImportModule("locus._errors");
    if (module == NULL) return;
    /* The library escapes control bytes; what is left may still not be UTF-8. */
    PyObject *line = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace");
    PyObject *error = NULL;
    if (line != NULL) error = PyObject_CallMethod(module, "error_of", "iO", (int)status, line);
    if (error != NULL) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    Py_XDECREF(line);
    Py_DECREF(module);
}

void native_refuse(locus_status status, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    native_raise(status, text);
}

int native_check_count(const char *function, Py_ssize_t found, Py_ssize_t expected)
{
    if (found == expected) return 0;
    PyErr_Format(PyExc_TypeError, "%s: found %zd arguments, expected %zd", function, found,
                 expected);
    return -1;
}

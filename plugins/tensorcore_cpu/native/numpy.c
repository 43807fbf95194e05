/* NumPy's table of functions: all files use it, this one has it and fills it; and the loops of functions like NumPy's. */
#define NATIVE_NUMPY
#include "native.h"

#define NO_IMPORT_UFUNC /* of its table of functions, which nothing here calls */
#include <numpy/ufuncobject.h>
#include <string.h>

#include "elementwise.h"

int native_numpy_init(void) {
    import_array1(-1);
    return 0;
}

bool native_ufunc_loop(const char *module, const char *name, native_type type, numpy_loop *found) {
    const char wanted = type == TYPE_F32 ? NPY_FLOAT : NPY_DOUBLE;
    PyObject *library = PyImport_ImportModule(module);
    PyUFuncObject *function = library ? (PyUFuncObject *)PyObject_GetAttrString(library, name) : NULL;
    Py_XDECREF(library);
    if (function && strcmp(Py_TYPE(function)->tp_name, "numpy.ufunc"))
        return false;
    for (int i = 0; function && !found->loop && i < function->ntypes; i++) {
        bool fits = true;
        for (int k = 0; k < function->nargs; k++)
            fits &= function->types[i * function->nargs + k] == wanted;
        if (fits)
            *found = (numpy_loop){(void *)function->functions[i], function->data ? ((void **)function->data)[i] : NULL};
    }
    return function; /* which lives as long as its library does */
}

bool native_numpy_loop(const char *name, native_type type, numpy_loop *found) {
    return native_ufunc_loop("numpy", name, type, found);
}

/* The extension module: the kernel objects, and the choice of an instruction set when it is imported. */
#define NATIVE_MODULE
#include "native.h"

#include <stdlib.h>
#include <string.h>
#include <structmember.h>
#ifdef NATIVE_X86
#include <cpuid.h>
#endif

/* A new family is named here. */
static const native_spec *const FAMILIES[] = {
    elementwise_kernels,
    cast_kernels,
    softmax_kernels,
    entropy_kernels,
    losses_kernels,
    pool_kernels,
    reduce_kernels,
    index_kernels,
    at_kernels,
    view_kernels,
    fill_kernels,
    conv_kernels,
    sort_kernels,
    norm_kernels,
    optim_kernels,
    gemm_kernels,
    scatter_kernels,
    activate_kernels,
    recurrent_kernels,
    attention_kernels,
    nonzero_kernels,
    place_kernels,
    formulas_kernels,
    lines_kernels,
};
static int (*const INITS[])(void) = {
    plan_init,
    elementwise_init,
    cast_init,
    rows_init,
    softmax_init,
    entropy_init,
    losses_init,
    pool_init,
    reduce_init,
    index_init,
    at_init,
    view_init,
    fill_init,
    conv_init,
    sort_init,
    norm_init,
    optim_init,
    random_init,
    gemm_init,
    scatter_init,
    activate_init,
    recurrent_init,
    attention_init,
    nonzero_init,
    place_init,
    formulas_init,
    lines_init,
    fused_init,
};

native_isa native_chosen_isa = ISA_PLAIN;
static const char *const ISA_NAMES[] = {"plain", "avx2", "avx512"};

/* Kernel objects */

/* By its strides alone: what those of dims of size 1 are is part of a layout. */
static bool is_row_major(PyObject *object) {
    if (!PyArray_Check(object))
        return true;
    PyArrayObject *x = (PyArrayObject *)object;
    npy_intp step = PyArray_ITEMSIZE(x);
    for (int i = PyArray_NDIM(x) - 1; i >= 0; i--) {
        if (PyArray_STRIDE(x, i) != step)
            return PyArray_SIZE(x) == 0;
        step *= PyArray_DIM(x, i);
    }
    return true;
}

static bool all_row_major(PyObject *const *args, Py_ssize_t nargs) {
    for (Py_ssize_t i = 0; i < nargs; i++) {
        if (!is_row_major(args[i]))
            return false;
        for (Py_ssize_t k = 0; PyList_CheckExact(args[i]) && k < PyList_GET_SIZE(args[i]); k++)
            if (!is_row_major(PyList_GET_ITEM(args[i], k)))
                return false;
    }
    return true;
}

/* Takes the reference to `made`. */
static PyObject *laid(PyObject *lay, PyObject *made, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *natives = PyTuple_New(nargs), *options = PyDict_New(), *placed = NULL;
    bool good = natives && options;
    for (Py_ssize_t i = 0; good && i < nargs; i++)
        PyTuple_SET_ITEM(natives, i, Py_NewRef(args[i]));
    for (Py_ssize_t k = 0; good && kwnames && k < PyTuple_GET_SIZE(kwnames); k++)
        good = !PyDict_SetItem(options, PyTuple_GET_ITEM(kwnames, k), args[nargs + k]);
    if (good)
        placed = PyObject_CallFunctionObjArgs(lay, made, natives, options, NULL);
    Py_XDECREF(natives);
    Py_XDECREF(options);
    Py_DECREF(made);
    return placed;
}

static PyObject *kernel_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    const native_kernel *kernel = (native_kernel *)self;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    PyObject *made = kernel->run(kernel, args, nargs, kwnames);
    if (made && kernel->ordered)
        return made;
    if (!made && (PyErr_Occurred() || !(made = PyObject_Vectorcall(kernel->fallback, args, nargsf, kwnames))))
        return NULL;
    return !kernel->lay || all_row_major(args, nargs) ? made : laid(kernel->lay, made, args, nargs, kwnames);
}

static int kernel_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(((native_kernel *)self)->fallback);
    Py_VISIT(((native_kernel *)self)->lay);
    return 0;
}

static int kernel_clear(PyObject *self) {
    Py_CLEAR(((native_kernel *)self)->fallback);
    Py_CLEAR(((native_kernel *)self)->lay);
    return 0;
}

static void kernel_dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    kernel_clear(self);
    Py_XDECREF(((native_kernel *)self)->name);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *kernel_repr(PyObject *self) {
    return PyUnicode_FromFormat("<native kernel %U>", ((native_kernel *)self)->name);
}

static PyMemberDef kernel_members[] = {
    {"__name__", T_OBJECT, offsetof(native_kernel, name), READONLY, "the kernel's name in the backend's table"},
    {"fallback", T_OBJECT, offsetof(native_kernel, fallback), READONLY, "the kernel that gets what this one does not take"},
    {NULL},
};

static PyTypeObject kernel_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorcore_cpu.native._native.Kernel",
    .tp_doc = "A kernel in C; what it cannot take goes to its fallback.",
    .tp_basicsize = sizeof(native_kernel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(native_kernel, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_traverse = kernel_traverse,
    .tp_clear = kernel_clear,
    .tp_dealloc = kernel_dealloc,
    .tp_repr = kernel_repr,
    .tp_members = kernel_members,
};

static PyObject *make_kernel(const native_spec *spec, PyObject *fallback, PyObject *lay, bool ordered) {
    native_kernel *made = PyObject_GC_New(native_kernel, &kernel_type);
    if (!made)
        return NULL;
    made->vectorcall = kernel_call;
    made->run = spec->run;
    made->data = spec->data;
    made->fallback = Py_NewRef(fallback);
    made->lay = Py_XNewRef(lay);
    made->ordered = ordered;
    made->name = PyUnicode_InternFromString(spec->name);
    PyObject_GC_Track(made);
    if (!made->name)
        Py_CLEAR(made);
    return (PyObject *)made;
}

/* The kernel in Python whose results `fallback` puts in order; itself where it does not. A new reference. */
static PyObject *bare(PyObject *fallback) {
    PyObject *found = PyFunction_Check(fallback) ? PyObject_GetAttrString(fallback, "__wrapped__") : NULL;
    if (!found)
        PyErr_Clear();
    return found ? found : Py_NewRef(fallback);
}

/* What is left to NumPy but for the order of its results, at which a look in C costs less: its ufuncs let row-major order win
   where arguments differ. */
static PyObject *declined(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    return NULL;
}

static bool lay_others(PyObject *made, PyObject *layings) {
    PyObject *name, *lay;
    for (Py_ssize_t at = 0; PyDict_Next(layings, &at, &name, &lay);) {
        PyObject *other = PyDict_GetItem(made, name), *inner;
        if (!other || Py_IS_TYPE(other, &kernel_type))
            continue;
        inner = bare(other);
        const native_spec spec = {.name = PyUnicode_AsUTF8(name), .run = declined};
        PyObject *kernel = spec.name ? make_kernel(&spec, inner, lay, false) : NULL;
        bool good = kernel && !PyDict_SetItem(made, name, kernel);
        Py_DECREF(inner);
        Py_XDECREF(kernel);
        if (!good)
            return false;
    }
    return true;
}

static PyObject *over(PyObject *module, PyObject *args) {
    PyObject *table, *layings;
    if (!PyArg_ParseTuple(args, "O!O!:over", &PyDict_Type, &table, &PyDict_Type, &layings))
        return NULL;
    PyObject *made = PyDict_Copy(table);
    for (size_t family = 0; made && family < sizeof FAMILIES / sizeof *FAMILIES; family++) {
        for (const native_spec *spec = FAMILIES[family]; made && spec->name; spec++) {
            PyObject *fallback = PyDict_GetItemString(table, spec->name);
            if (!fallback)
                continue;
            PyObject *lay = PyDict_GetItemString(layings, spec->name);
            PyObject *kernel = make_kernel(spec, fallback, lay, FAMILIES[family] == elementwise_kernels);
            if (!kernel || PyDict_SetItemString(made, spec->name, kernel))
                Py_CLEAR(made);
            Py_XDECREF(kernel);
        }
    }
    if (made && !lay_others(made, layings))
        Py_CLEAR(made);
    return made;
}

/* Options and arrays */

bool native_options(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject *const *names, int count,
                    PyObject **values) {
    for (int i = 0; i < count; i++)
        values[i] = NULL;
    Py_ssize_t given = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    for (Py_ssize_t k = 0; k < given; k++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, k);
        int i = 0;
        while (i < count && names[i] != name)
            i++;
        /* The compiler interns keywords; a name made at run time is another object with the same letters. */
        for (i = i < count ? i : 0; i < count && names[i] != name && PyUnicode_Compare(names[i], name); i++)
            continue;
        if (i == count)
            return false;
        values[i] = args[nargs + k];
    }
    return true;
}

static int bfloat16_number = -1;
static PyArray_Descr *bfloat16_descr;

static PyObject *set_bfloat16(PyObject *module, PyObject *descr) {
    if (!PyArray_DescrCheck(descr))
        return PyErr_Format(PyExc_TypeError, "set_bfloat16: expected a dtype, got %R", Py_TYPE(descr));
    Py_XSETREF(bfloat16_descr, (PyArray_Descr *)Py_NewRef(descr));
    bfloat16_number = bfloat16_descr->type_num;
    Py_RETURN_NONE;
}

static const signed char NUMBERS[TYPES] = {NPY_FLOAT, NPY_DOUBLE, -1, NPY_HALF, NPY_BYTE, NPY_SHORT,
                                           NPY_INT32, NPY_INT64, NPY_UBYTE, NPY_BOOL};
static unsigned char types_by_number[NPY_HALF + 1];

static native_type type_of_number(int number) {
    return number <= NPY_HALF ? (native_type)types_by_number[number] : number == bfloat16_number ? TYPE_BF16 : TYPE_NONE;
}

native_type native_array_type(PyObject *object) {
    if (!PyArray_CheckExact(object))
        return TYPE_NONE;
    PyArrayObject *array = (PyArrayObject *)object;
    if (PyArray_NDIM(array) > NATIVE_DIMS || !PyArray_ISALIGNED(array) || !PyArray_ISNOTSWAPPED(array))
        return TYPE_NONE;
    return type_of_number(PyArray_TYPE(array));
}

native_type native_descr_type(PyObject *object) {
    if (!PyArray_DescrCheck(object) || !PyArray_ISNBO(((PyArray_Descr *)object)->byteorder))
        return TYPE_NONE;
    return type_of_number(((PyArray_Descr *)object)->type_num);
}

static PyArrayObject *new_array(int ndim, const npy_intp *shape, native_type type, const npy_intp *strides) {
    PyArray_Descr *descr = type == TYPE_BF16 ? (PyArray_Descr *)Py_NewRef(bfloat16_descr)
                                             : PyArray_DescrFromType(NUMBERS[type]);
    if (!descr)
        return NULL;
    npy_intp size = TYPE_SIZE[type];
    for (int i = 0; i < ndim; i++)
        if (__builtin_mul_overflow(size, shape[i], &size))
            size = 0; /* NumPy says what is wrong */
    if (size >= NATIVE_LINES)
        return native_memory_array(descr, ndim, shape, strides, (size_t)size);
    return (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, descr, ndim, shape, strides, NULL, 0, NULL);
}

PyArrayObject *native_empty(int ndim, const npy_intp *shape, native_type type) {
    return new_array(ndim, shape, type, NULL);
}

PyArrayObject *native_empty_ordered(int ndim, const npy_intp *shape, native_type type, const int *axes) {
    npy_intp strides[NATIVE_DIMS], step = TYPE_SIZE[type];
    for (int i = ndim - 1; i >= 0; i--) {
        strides[axes[i]] = step;
        step *= shape[axes[i]];
    }
    return new_array(ndim, shape, type, step ? strides : NULL);
}

static void bounds(PyArrayObject *array, const char **first, const char **end) {
    *first = *end = PyArray_BYTES(array);
    for (int i = 0; i < PyArray_NDIM(array); i++) {
        npy_intp size = PyArray_DIM(array, i), step = PyArray_STRIDE(array, i);
        if (!size) {
            *end = *first;
            return;
        }
        *(step < 0 ? first : end) += (size - 1) * step;
    }
    *end += PyArray_ITEMSIZE(array);
}

bool native_overlap(PyArrayObject *one, PyArrayObject *other) {
    const char *first, *end, *other_first, *other_end;
    bounds(one, &first, &end);
    bounds(other, &other_first, &other_end);
    return first < other_end && other_first < end;
}

/* The module */

#ifdef NATIVE_X86
/* Not every compiler's __builtin_cpu_supports knows the name. That the system keeps the registers is known with AVX2. */
static bool has_f16c(void) {
    unsigned a, b, c = 0, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}
#endif

static native_isa best_isa(void) {
    native_isa found = ISA_PLAIN;
#ifdef NATIVE_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c())
        found = ISA_AVX2;
    if (found == ISA_AVX2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        found = ISA_AVX512;
#endif
    return found;
}

/* Takes up a set by name, and lets every family pick its loops; -1 with an exception where there is no such set here. */
static int choose_isa(const char *name) {
    native_isa best = best_isa();
    native_isa isa = ISA_PLAIN;
    while (name && isa <= best && strcmp(name, ISA_NAMES[isa]))
        isa++;
    if (isa > best) {
        PyErr_Format(PyExc_ValueError, "native.isa: expected an instruction set of this machine, got '%s'; "
                     "its best is '%s'", name, ISA_NAMES[best]);
        return -1;
    }
    native_chosen_isa = name ? isa : best;
    for (size_t family = 0; family < sizeof INITS / sizeof *INITS; family++)
        if (INITS[family]())
            return -1;
    return 0;
}

static PyObject *set_isa(PyObject *module, PyObject *name) {
    if (name != Py_None) {
        const char *letters = PyUnicode_AsUTF8(name);
        if (!letters || choose_isa(letters))
            return NULL;
    }
    return PyUnicode_FromString(ISA_NAMES[native_chosen_isa]);
}

static PyObject *is_intel(PyObject *module, PyObject *unused) {
#ifdef NATIVE_X86
    return PyBool_FromLong(__builtin_cpu_is("intel"));
#else
    Py_RETURN_FALSE;
#endif
}

static PyMethodDef methods[] = {
    {"over", over, METH_VARARGS, "A copy of a table of kernels in which those that exist in C stand before the given ones."},
    {"isa", set_isa, METH_O, "Takes up an instruction set by name unless None is given; which one is in force."},
    {"set_bfloat16", set_bfloat16, METH_O, "Tells which dtype bfloat16 is."},
    {"set_threads", native_set_threads, METH_O, "Sets how many threads a kernel may use."},
    {"get_threads", native_get_threads, METH_NOARGS, "How many threads a kernel may use."},
    {"allocate", (PyCFunction)(void (*)(void))native_allocate, METH_FASTCALL, "A new array of a shape and a dtype."},
    {"memory_statistics", native_memory_statistics, METH_NOARGS, "Counts of the cached blocks, in bytes and blocks."},
    {"reset_peaks", native_memory_reset_peaks, METH_NOARGS, "Makes every peak the current count."},
    {"empty_cache", native_memory_empty_cache, METH_NOARGS, "Unmaps the unused blocks; how many bytes that were."},
    {"memory_limit", native_memory_limit, METH_O, "Sets, unless None, how many bytes may lie unused; how many may."},
    {"random", (PyCFunction)(void (*)(void))native_random, METH_FASTCALL, "An array of draws from a twister's state, or None."},
    {"blas_finder", native_blas_finder, METH_O, "Sets what is called before the first large product, to load a library or not."},
    {"blas_load", native_blas_load, METH_O, "Loads oneMKL from a file, for the products to run on."},
    {"blas_unload", native_blas_unload, METH_NOARGS, "Products run on our own kernels."},
    {"blas_in_use", native_blas_in_use, METH_NOARGS, "Whether products run on a library; the finder is asked if it was not."},
    {"strides", native_strides, METH_O, "The strides of an array in elements; row-major ones where it has no elements."},
    {"layout", native_layout, METH_O, "Those strides, and where the array begins in its memory, in elements."},
    {"is_contiguous", native_is_contiguous, METH_O, "Whether the elements of an array lie in row-major order without gaps."},
    {"conv_measures", native_conv_measures, METH_O, "Sets, unless None, whether convolutions run as was measured; whether they do."},
    {"conv_way", native_conv_way, METH_O, "Convolutions run that way where it fits, or with None as is chosen; what ways there are."},
    {"conv_choices", native_conv_choices, METH_NOARGS, "How often the ways were measured, and kernels and ways that were chosen."},
    {"is_intel", is_intel, METH_NOARGS, "Whether the processor is one of Intel's."},
    {"fuse", native_fuse, METH_VARARGS, "A kernel that runs several ops in one pass, from a description of them."},
    {"fusible", native_fusible, METH_NOARGS, "What a description may name: elementwise ops and activations by name."},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", "Kernels of the CPU plugin in C.", -1, methods,
};

PyMODINIT_FUNC PyInit__native(void) {
    import_array();
    memset(types_by_number, TYPE_NONE, sizeof types_by_number);
    for (int type = 0; type < TYPES; type++)
        if (NUMBERS[type] >= 0)
            types_by_number[(int)NUMBERS[type]] = (unsigned char)type;
#if NPY_SIZEOF_LONG == 8
    types_by_number[NPY_LONGLONG] = TYPE_I64;
#endif
    if (PyType_Ready(&kernel_type) || native_threads_init() || native_memory_init() || choose_isa(getenv("TENSORCORE_NATIVE_ISA")))
        return NULL;
    return PyModule_Create(&definition);
}

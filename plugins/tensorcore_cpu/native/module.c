/* The extension module: the kernel objects, and the choice of an instruction set when it is imported. */
#include "halves.h"
#include "moves.h"
#include "native.h"
#include "rows.h"

#include <stdlib.h>
#include <string.h>
#include <structmember.h>

/* A new family is named here. */
static const native_spec *const FAMILIES[] = {
    elementwise_kernels,
    cast_kernels,
    softmax_kernels,
    entropy_kernels,
    losses_kernels,
    pool_kernels,
    reduce_kernels,
    reduce_integers_kernels,
    index_kernels,
    at_kernels,
    view_kernels,
    fill_kernels,
    edges_kernels,
    blend_kernels,
    conv_kernels,
    sort_kernels,
    norm_kernels,
    statistics_kernels,
    optim_kernels,
    gemm_kernels,
    scatter_kernels,
    triangles_kernels,
    activate_kernels,
    recurrent_kernels,
    attention_kernels,
    nonzero_kernels,
    place_kernels,
    formulas_kernels,
    norms_kernels,
    lines_kernels,
    row_pairs_kernels,
    mode_kernels,
    sample_kernels,
    margins_kernels,
    ctc_kernels,
    runs_kernels,
    columns_kernels,
    flat_kernels,
    counts_kernels,
    segments_kernels,
    bins_kernels,
    boxes_kernels,
    lapack_solve_kernels,
    lapack_values_kernels,
    lapack_factors_kernels,
    complex_numbers_kernels,
    complex_formulas_kernels,
    distance_gradients_kernels,
    division_kernels,
    scans_kernels,
    picks_kernels,
    fft_kernels,
    compare_kernels,
};
static int (*const INITS[])(void) = {
    plan_init,
    one_row_init,
    elementwise_init,
    cast_init,
    rows_init,
    softmax_init,
    entropy_init,
    losses_init,
    pool_init,
    reduce_init,
    reduce_integers_init,
    index_init,
    at_init,
    view_init,
    fill_init,
    edges_init,
    blend_init,
    conv_init,
    sort_init,
    norm_init,
    statistics_init,
    optim_init,
    random_init,
    gemm_init,
    scatter_init,
    triangles_init,
    activate_init,
    recurrent_init,
    attention_init,
    nonzero_init,
    place_init,
    formulas_init,
    norms_init,
    lines_init,
    row_pairs_init,
    mode_init,
    sample_init,
    margins_init,
    ctc_init,
    runs_init,
    columns_init,
    flat_init,
    counts_init,
    segments_init,
    bins_init,
    boxes_init,
    lapack_init,
    complex_numbers_init,
    complex_formulas_init,
    distance_gradients_init,
    division_init,
    scans_init,
    picks_init,
    fft_init,
    compare_init,
    fused_init,
};

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

/* A result in the order of its kernel's rule, itself where it lies so; NULL where the rule in Python has to look. */
static PyObject *placed(const native_kernel *kernel, PyObject *one, PyObject *const *args, Py_ssize_t nargs) {
    int axes[NATIVE_DIMS];
    bool but_for_ones;
    PyArrayObject *made = PyArray_CheckExact(one) ? (PyArrayObject *)one : NULL;
    if (!made || PyArray_NDIM(made) < 2) /* there is one order */
        return Py_NewRef(one);
    if ((kernel->low && PyArray_NDIM(made) > 3) || !native_kept_order(made, kernel->aligned, args, nargs, axes))
        return NULL;
    if (native_lies_so(made, axes, &but_for_ones))
        return Py_NewRef(one);
    const native_type type = native_array_type(one);
    PyArrayObject *to = but_for_ones || type == TYPE_NONE ? NULL : native_empty_ordered(PyArray_NDIM(made), PyArray_DIMS(made), type, axes);
    PyObject *copy = to ? native_copied_over(made, to) : NULL;
    Py_XDECREF(to);
    return copy;
}

/* The same of a result or a tuple of them. */
static PyObject *all_placed(const native_kernel *kernel, PyObject *made, PyObject *const *args, Py_ssize_t nargs) {
    if (!PyTuple_CheckExact(made))
        return PyList_CheckExact(made) ? NULL : placed(kernel, made, args, nargs); /* the rule makes a tuple of a list */
    PyObject *all = PyTuple_New(PyTuple_GET_SIZE(made));
    for (Py_ssize_t i = 0; all && i < PyTuple_GET_SIZE(made); i++) {
        PyObject *one = placed(kernel, PyTuple_GET_ITEM(made, i), args, nargs);
        if (one)
            PyTuple_SET_ITEM(all, i, one);
        else
            Py_CLEAR(all);
    }
    return all;
}

/* Whether a place for the result is given. */
static bool has_out(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++)
        if (args[nargs + k] != Py_None && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, k), "out") == 0)
            return true;
    return false;
}

/* Takes the reference to `made`. */
static PyObject *laid(const native_kernel *kernel, PyObject *made, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (has_out(args, nargs, kwnames))
        return made;
    PyObject *there = kernel->known ? all_placed(kernel, made, args, nargs) : NULL;
    if (there || PyErr_Occurred()) {
        Py_DECREF(made);
        return there;
    }
    PyObject *natives = PyTuple_New(nargs), *options = PyDict_New(), *put = NULL;
    bool good = natives && options;
    for (Py_ssize_t i = 0; good && i < nargs; i++)
        PyTuple_SET_ITEM(natives, i, Py_NewRef(args[i]));
    for (Py_ssize_t k = 0; good && kwnames && k < PyTuple_GET_SIZE(kwnames); k++)
        good = !PyDict_SetItem(options, PyTuple_GET_ITEM(kwnames, k), args[nargs + k]);
    if (good)
        put = PyObject_CallFunctionObjArgs(kernel->lay, made, natives, options, NULL);
    Py_XDECREF(natives);
    Py_XDECREF(options);
    Py_DECREF(made);
    return put;
}

enum { MOST = 12, MOST_COPIED = 1 << 22 }; /* arguments; elements of an array that is copied rather than left to NumPy's kernel */

/* An argument in row-major order, a list with all of its arrays so; NULL where one is too large for that, or of a type that no kernel knows. */
static PyObject *dense_of(PyObject *one, bool *changed) {
    if (PyList_CheckExact(one)) {
        PyObject *made = PyList_New(PyList_GET_SIZE(one));
        for (Py_ssize_t i = 0; made && i < PyList_GET_SIZE(made); i++) {
            PyObject *item = i < PyList_GET_SIZE(one) ? dense_of(PyList_GET_ITEM(one, i), changed) : NULL;
            if (item)
                PyList_SET_ITEM(made, i, item);
            else
                Py_CLEAR(made);
        }
        return made;
    }
    if (!PyArray_CheckExact(one) || PyArray_IS_C_CONTIGUOUS((PyArrayObject *)one))
        return Py_NewRef(one);
    if (PyArray_SIZE((PyArrayObject *)one) > MOST_COPIED || native_array_type(one) == TYPE_NONE)
        return NULL;
    *changed = true;
    return (PyObject *)native_dense(one);
}

/* What the kernel makes of arrays that are not in row-major order, by copies that are. */
static PyObject *of_dense(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const Py_ssize_t all = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    PyObject *given[MOST], *made = NULL;
    Py_ssize_t count = 0;
    bool changed = false;
    if (all > MOST)
        return NULL;
    while (count < all && (given[count] = count < nargs ? dense_of(args[count], &changed) : Py_NewRef(args[count])))
        count++;
    if (count == all && changed)
        made = kernel->run(kernel, given, nargs, kwnames);
    while (count)
        Py_DECREF(given[--count]);
    return made;
}

static PyObject *kernel_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    const native_kernel *kernel = (native_kernel *)self;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    PyObject *made = nargs ? kernel->run(kernel, args, nargs, kwnames) : NULL; /* no kernel takes nothing, and `args` may be NULL then */
    if (!made && kernel->dense && nargs && !PyErr_Occurred())
        made = of_dense(kernel, args, nargs, kwnames);
    if (!made && kernel->rounds && nargs && !PyErr_Occurred())
        made = native_widened(kernel, args, nargs, kwnames);
    if (!made && kernel->moves && nargs && !PyErr_Occurred() && (made = native_moved(kernel, args, nargs, kwnames)))
        return made; /* in order: the call went through here */
    if (made && kernel->ordered)
        return made;
    const native_kernel *beneath = Py_IS_TYPE(kernel->fallback, Py_TYPE(self)) ? (native_kernel *)kernel->fallback : NULL;
    if (!made && beneath && beneath->ordered && nargs && !PyErr_Occurred() && (made = beneath->run(beneath, args, nargs, kwnames)))
        return made;
    if (!made && (PyErr_Occurred() || !(made = PyObject_Vectorcall(kernel->fallback, args, nargsf, kwnames))))
        return NULL;
    return !kernel->lay || all_row_major(args, nargs) ? made : laid(kernel, made, args, nargs, kwnames);
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
    made->dense = spec->dense;
    PyObject *rule = lay ? PyObject_GetAttrString(lay, "rule") : NULL;
    made->aligned = rule && PyUnicode_CompareWithASCIIString(rule, "aligned") == 0;
    made->low = false;
    static const char *const channels[] = {"channels_last", "with_weight", "joined", "stacked"}; /* which are innermost in images */
    for (size_t i = 0; rule && i < sizeof channels / sizeof *channels; i++)
        made->low |= PyUnicode_CompareWithASCIIString(rule, channels[i]) == 0;
    made->known = made->aligned || made->low || (rule && PyUnicode_CompareWithASCIIString(rule, "row_major") == 0);
    Py_XDECREF(rule);
    PyErr_Clear();
    made->rounds = native_rounds(spec->name);
    made->moves = native_moves(spec->name);
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
            PyObject *kernel = make_kernel(spec, fallback, lay, spec->ordered || FAMILIES[family] == elementwise_kernels);
            if (!kernel || PyDict_SetItemString(made, spec->name, kernel))
                Py_CLEAR(made);
            Py_XDECREF(kernel);
        }
    }
    if (made && !lay_others(made, layings))
        Py_CLEAR(made);
    return made;
}

/* The module */

/* Takes up a set by name, and lets every family pick its loops; -1 with an exception where there is no such set here. */
static int choose_isa(const char *name) {
    if (native_isa_set(name))
        return -1;
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
    return native_isa_name();
}

static PyMethodDef methods[] = {
    {"over", over, METH_VARARGS, "A copy of a table of kernels in which those that exist in C stand before the given ones."},
    {"isa", set_isa, METH_O, "Takes up an instruction set by name unless None is given; which one is in force."},
    {"set_bfloat16", native_set_bfloat16, METH_O, "Tells which dtype bfloat16 is."},
    {"set_threads", native_set_threads, METH_O, "Sets how many threads a kernel may use."},
    {"get_threads", native_get_threads, METH_NOARGS, "How many threads a kernel may use."},
    {"allocate", (PyCFunction)(void (*)(void))native_allocate, METH_FASTCALL, "A new array of a shape and a dtype."},
    {"memory_statistics", native_memory_statistics, METH_NOARGS, "Counts of the cached blocks, in bytes and blocks."},
    {"reset_peaks", native_memory_reset_peaks, METH_NOARGS, "Makes every peak the current count."},
    {"empty_cache", native_memory_empty_cache, METH_NOARGS, "Unmaps the unused blocks; how many bytes that were."},
    {"memory_limit", native_memory_limit, METH_O, "Sets, unless None, how many bytes may lie unused; how many may."},
    {"multinomial", (PyCFunction)(void (*)(void))native_multinomial, METH_FASTCALL, "Indices drawn by weight, or None."},
    {"serial_normals", (PyCFunction)(void (*)(void))native_serial_normals, METH_FASTCALL, "Normals one by one and the one left over, or None."},
    {"drawing", native_drawing, METH_O, "A method that draws behind a look at what it is given."},
    {"random", (PyCFunction)(void (*)(void))native_random, METH_FASTCALL, "An array of draws from a twister's state, or None."},
    {"overwrite_random", (PyCFunction)(void (*)(void))native_overwrite_random, METH_FASTCALL, "Draws over an array, or None."},
    {"overwrite_normals", (PyCFunction)(void (*)(void))native_overwrite_normals, METH_FASTCALL,
     "Normals one by one over an array and the one left over, or None."},
    {"draw_over", (PyCFunction)(void (*)(void))native_draw_over, METH_FASTCALL | METH_KEYWORDS, "Whether it drew over an array."},
    {"blas_finder", native_blas_finder, METH_O, "Sets what is called before the first large product, to load a library or not."},
    {"blas_load", native_blas_load, METH_O, "Loads oneMKL from a file, for the products to run on."},
    {"blas_unload", native_blas_unload, METH_NOARGS, "Products run on our own kernels."},
    {"blas_in_use", native_blas_in_use, METH_NOARGS, "Whether products run on a library; the finder is asked if it was not."},
    {"lapack_finder", native_lapack_finder, METH_O, "Sets what is called before the first factorisation, for LAPACK's routines."},
    {"strides", native_strides, METH_O, "The strides of an array in elements; row-major ones where it has no elements."},
    {"layout", native_layout, METH_O, "Those strides, and where the array begins in its memory, in elements."},
    {"data_pointer", native_data_pointer, METH_O, "The address of the first element of an array."},
    {"is_contiguous", native_is_contiguous, METH_O, "Whether the elements of an array lie in row-major order without gaps."},
    {"conv_measures", native_conv_measures, METH_O, "Sets, unless None, whether convolutions run as was measured; whether they do."},
    {"conv_way", native_conv_way, METH_O, "Convolutions run that way where it fits, or with None as is chosen; what ways there are."},
    {"conv_choices", native_conv_choices, METH_NOARGS, "How often the ways were measured, and kernels and ways that were chosen."},
    {"is_intel", native_is_intel, METH_NOARGS, "Whether the processor is one of Intel's."},
    {"fuse", native_fuse, METH_VARARGS, "A kernel that runs several ops in one pass, from a description of them."},
    {"fusible", native_fusible, METH_NOARGS, "What a description may name: elementwise ops and activations by name."},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", "Kernels of the CPU plugin in C.", -1, methods,
};

PyMODINIT_FUNC PyInit__native(void) {
    if (native_numpy_init() || native_arrays_init() || native_threads_init() || native_memory_init())
        return NULL;
    if (PyType_Ready(&kernel_type) || choose_isa(getenv("TENSORCORE_NATIVE_ISA")))
        return NULL;
    return PyModule_Create(&definition);
}

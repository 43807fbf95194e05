/* The extension module: the table of its kernels, and the choice of an instruction set when it is imported. */
#include "native.h"

#include <stdlib.h>

/* A new family is named here. */
static const struct {
    const native_spec *specs;
    native_places places;
} FAMILIES[] = {
    {elementwise_kernels, PLACES_ALL},
    {cast_kernels},
    {softmax_kernels},
    {entropy_kernels},
    {losses_kernels},
    {pool_kernels},
    {reduce_kernels},
    {reduce_integers_kernels},
    {index_kernels, PLACES_SOME},
    {at_kernels, PLACES_SOME},
    {view_kernels},
    {fill_kernels},
    {borrowed_kernels},
    {edges_kernels},
    {blend_kernels},
    {conv_kernels},
    {sort_kernels},
    {norm_kernels},
    {statistics_kernels},
    {optim_kernels},
    {gemm_kernels},
    {quantized_kernels},
    {scatter_kernels, PLACES_SOME},
    {embedding_kernels},
    {topk_kernels},
    {triangles_kernels},
    {activate_kernels},
    {recurrent_kernels},
    {attention_kernels},
    {nonzero_kernels},
    {place_kernels, PLACES_SOME},
    {formulas_kernels, PLACES_SOME},
    {norms_kernels},
    {lines_kernels, PLACES_SOME},
    {row_pairs_kernels},
    {mode_kernels},
    {sample_kernels},
    {margins_kernels},
    {ctc_kernels},
    {renorm_kernels, PLACES_SOME},
    {distinct_kernels},
    {unique_kernels},
    {columns_kernels},
    {flat_kernels, PLACES_SOME},
    {counts_kernels},
    {segments_kernels},
    {sparse_kernels},
    {sparse_both_kernels},
    {sparse_order_kernels},
    {sparse_softmax_kernels},
    {bins_kernels},
    {boxes_kernels},
    {lapack_solve_kernels},
    {lapack_triangular_kernels},
    {lapack_values_kernels},
    {lapack_eigen_kernels},
    {lapack_factors_kernels},
    {lapack_reflections_kernels},
    {lapack_squares_kernels},
    {complex_numbers_kernels, PLACES_SOME},
    {complex_formulas_kernels, PLACES_ALL},
    {complex_reductions_kernels},
    {distance_gradients_kernels},
    {division_kernels, PLACES_ALL},
    {scans_kernels},
    {picks_kernels},
    {fft_kernels},
    {compare_kernels},
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
    borrowed_init,
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
    embedding_init,
    topk_init,
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
    renorm_init,
    distinct_init,
    unique_init,
    columns_init,
    flat_init,
    counts_init,
    segments_init,
    sparse_init,
    sparse_both_init,
    sparse_order_init,
    sparse_softmax_init,
    bins_init,
    boxes_init,
    lapack_init,
    complex_numbers_init,
    complex_formulas_init,
    complex_reductions_init,
    distance_gradients_init,
    division_init,
    scans_init,
    picks_init,
    fft_init,
    compare_init,
    fused_init,
};

/* The table of kernels */

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
        if (!other || Py_IS_TYPE(other, &native_kernel_type))
            continue;
        inner = bare(other);
        const native_spec spec = {.name = PyUnicode_AsUTF8(name), .run = declined};
        PyObject *kernel = spec.name ? native_make_kernel(&spec, inner, lay, false, PLACES_SOME) : NULL;
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
        for (const native_spec *spec = FAMILIES[family].specs; made && spec->name; spec++) {
            PyObject *fallback = PyDict_GetItemString(table, spec->name);
            if (!fallback)
                continue;
            PyObject *lay = PyDict_GetItemString(layings, spec->name);
            const bool ordered = spec->ordered || FAMILIES[family].specs == elementwise_kernels;
            PyObject *kernel = native_make_kernel(spec, fallback, lay, ordered, FAMILIES[family].places);
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
    {"rejections", (PyCFunction)(void (*)(void))native_rejections, METH_FASTCALL, "Gamma, Poisson or binomial numbers, and the normal left over, or None."},
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
    {"thirds", native_thirds, METH_O, "Sets, unless None, whether products of floats are those of their thirds by tiles; whether they are."},
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
    if (native_numpy_init() || native_arrays_init() || native_threads_init() || native_memory_init() || native_kernel_init())
        return NULL;
    if (choose_isa(getenv("TENSORCORE_NATIVE_ISA")))
        return NULL;
    return PyModule_Create(&definition);
}

/* Running statistics of batch norm: towards those of a batch. */
#include "rows.h"

static PyObject *names[2];

/* Running statistics towards the mean of the rows of `now`, each times `factor`. */
static void track(PyArrayObject *running, PyArrayObject *now, double momentum, double factor) {
    npy_intp channels = PyArray_SIZE(running), rows = PyArray_SIZE(now) / channels;
    for (npy_intp c = 0; c < channels; c++) {
        double total = 0;
        if (PyArray_TYPE(now) == NPY_FLOAT) {
            for (npy_intp r = 0; r < rows; r++)
                total += ((float *)PyArray_DATA(now))[r * channels + c];
            float *into = (float *)PyArray_DATA(running) + c;
            *into = (float)(*into * (1 - momentum) + total / (double)rows * (momentum * factor));
        } else {
            for (npy_intp r = 0; r < rows; r++)
                total += ((double *)PyArray_DATA(now))[r * channels + c];
            double *into = (double *)PyArray_DATA(running) + c;
            *into = *into * (1 - momentum) + total / (double)rows * (momentum * factor);
        }
    }
}

static bool tracked(PyObject *running, PyObject *now) {
    if (native_is_none(running))
        return true;
    PyArrayObject *into = (PyArrayObject *)running, *from = (PyArrayObject *)now;
    return native_real_type(running) != TYPE_NONE && native_real_type(now) == native_real_type(running) &&
           PyArray_IS_C_CONTIGUOUS(into) && PyArray_IS_C_CONTIGUOUS(from) && PyArray_ISWRITEABLE(into) &&
           PyArray_SIZE(into) && PyArray_SIZE(from) && PyArray_SIZE(from) % PyArray_SIZE(into) == 0;
}

static PyObject *run_track(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[2];
    double momentum, count;
    if (nargs != 4 || !kwnames || !native_options(args, nargs, kwnames, names, 2, options) ||
        !native_double(options[0], &momentum) || !native_double(options[1], &count) || !tracked(args[0], args[2]) ||
        !tracked(args[1], args[3]))
        return NULL;
    if (!native_is_none(args[0]))
        track((PyArrayObject *)args[0], (PyArrayObject *)args[2], momentum, 1);
    if (!native_is_none(args[1]))
        track((PyArrayObject *)args[1], (PyArrayObject *)args[3], momentum, count / (count > 2 ? count - 1 : 1));
    Py_RETURN_NONE;
}

int statistics_init(void) {
    static const char *const words[2] = {"momentum", "count"};
    return native_intern(names, words, 2);
}

const native_spec statistics_kernels[] = {
    {"track_statistics", run_track, NULL},
    {NULL, NULL, NULL},
};

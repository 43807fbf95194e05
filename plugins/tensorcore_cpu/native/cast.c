/* Casts and copies, of elements in their order or in another, and arrays of one value. */
#include "cast.h"

#include "halves.h"
#include "plan.h"
#include "rows.h"

#include <math.h>
#include <string.h>

DECLARE_LOOPS(cast_loops, cast_loops);

static const cast_loops *casts;
static PyObject *zero, *one;

enum { DTYPE, DIMS, SHIFTS, TURNS, OPTIONS };
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"dtype", "dims", "shifts", "k"};

enum {
    GRAIN = 1 << 15,
    BYTES = 1 << 17, /* that are a reason for a second thread where they only move */
    LONG_ROW = 2048, ROLLED = 1 << 13, /* bytes of a row that is worth a call, and of rows that are rolled at a time */
    PIECE = 1024, /* elements that pass through float at a time, between a half type and anything but float */
};

typedef struct {
    native_loop first, second;
} through_float;

static void run_through_float(void *context, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    const through_float *by = context;
    float space[PIECE];
    for (ptrdiff_t begin = 0; begin < count; begin += PIECE) {
        ptrdiff_t piece = count - begin < PIECE ? count - begin : PIECE;
        char *const in[2] = {data[0] + begin * steps[0], (char *)space};
        char *const out[2] = {(char *)space, data[1] + begin * steps[1]};
        const ptrdiff_t in_steps[2] = {steps[0], sizeof *space}, out_steps[2] = {sizeof *space, steps[1]};
        by->first(in, in_steps, piece);
        by->second(out, out_steps, piece);
    }
}

static PyObject *copied(PyArrayObject *array, native_type from, native_type to, PyObject *out) {
    native_loop loop = casts->cast[from][to];
    through_float by = {from == TYPE_F64 && to == TYPE_F16 ? casts->odd : casts->cast[from][TYPE_F32], casts->cast[TYPE_F32][to]};
    if (!loop && (!by.first || !by.second))
        return NULL;
    if (!out && from == to && PyArray_IS_C_CONTIGUOUS(array))
        return (PyObject *)native_copied(array, to);
    native_operand operand = {.array = array};
    PyObject *made = loop && (!out || PyArray_Check(out)) ? native_dense_loop(&operand, 1, to, out, GRAIN, loop, NATIVE_PAST) : NULL;
    native_plan plan;
    if (made || PyErr_Occurred() || !native_plan_inputs(&plan, &operand, 1))
        return made;
    if (out && PyArray_Check(out) && !native_plan_stretch(&plan, (PyArrayObject *)out))
        return NULL;
    if (!(made = native_plan_result(&plan, &operand, to, out)))
        return NULL;
    if (from == to)
        native_plan_copy(&plan, GRAIN);
    else if (loop)
        native_plan_loop(&plan, GRAIN, loop, NATIVE_PAST);
    else
        native_plan_run(&plan, GRAIN, run_through_float, &by);
    return made;
}

PyObject *native_copied_over(PyArrayObject *from, PyArrayObject *to) {
    const native_type type = native_array_type((PyObject *)from);
    return type == TYPE_NONE ? NULL : copied(from, type, type, (PyObject *)to);
}

bool native_copied_into(PyArrayObject *from, char *to, const npy_intp *strides) {
    PyObject *place = PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)Py_NewRef(PyArray_DESCR(from)), PyArray_NDIM(from),
                                           PyArray_DIMS(from), strides, to, NPY_ARRAY_BEHAVED, NULL);
    PyObject *copied = place ? native_copied_over(from, (PyArrayObject *)place) : NULL;
    Py_XDECREF(copied);
    Py_XDECREF(place);
    return copied != NULL;
}

PyObject *native_converted(PyArrayObject *x, native_type from, native_type to) { return copied(x, from, to, NULL); }

static PyObject *run_cast(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *dtype;
    if (nargs != 1 || !kwnames || !native_options(args, nargs, kwnames, &names[DTYPE], 1, &dtype) || !dtype)
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0];
    native_type from = native_array_type(args[0]), to;
    if ((from == TYPE_F32 || from == TYPE_F64 || native_complex_type(args[0]) != TYPE_NONE) && PyArray_IS_C_CONTIGUOUS(x)) {
        const native_type parts = native_dtype_parts(dtype);
        if (parts != TYPE_NONE || PyErr_Occurred())
            return parts == TYPE_NONE ? NULL : PyArray_CastToType(x, PyArray_DescrFromType(parts == TYPE_F32 ? NPY_CFLOAT : NPY_CDOUBLE), 0);
    }
    if (from == TYPE_NONE)
        return NULL;
    return (to = native_dtype_type(dtype)) == TYPE_NONE ? NULL : copied((PyArrayObject *)args[0], from, to, NULL);
}

static PyObject *run_clone(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    native_type type = nargs == 1 && !kwnames ? native_array_type(args[0]) : TYPE_NONE;
    if (nargs == 1 && !kwnames && native_complex_type(args[0]) != TYPE_NONE && PyArray_IS_C_CONTIGUOUS((PyArrayObject *)args[0]))
        return PyArray_NewCopy((PyArrayObject *)args[0], NPY_CORDER);
    return type == TYPE_NONE ? NULL : copied((PyArrayObject *)args[0], type, type, NULL);
}

static PyObject *run_contiguous(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs,
                                PyObject *kwnames) {
    native_type type = nargs == 1 && !kwnames ? native_array_type(args[0]) : TYPE_NONE;
    if (nargs == 1 && !kwnames && native_complex_type(args[0]) != TYPE_NONE)
        return PyArray_NewCopy((PyArrayObject *)args[0], NPY_CORDER);
    if (type == TYPE_NONE)
        return NULL;
    PyArrayObject *array = (PyArrayObject *)args[0], *out = native_empty(PyArray_NDIM(array), PyArray_DIMS(array), type);
    if (!out)
        return NULL;
    PyObject *made = copied(array, type, type, (PyObject *)out);
    Py_DECREF(out);
    return made;
}

/* Into the memory of the first array. */
static PyObject *run_copy(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 2 || kwnames)
        return NULL;
    native_type to = native_array_type(args[0]), from = native_array_type(args[1]);
    return to == TYPE_NONE || from == TYPE_NONE ? NULL : copied((PyArrayObject *)args[1], from, to, args[0]);
}

/* One value */

typedef struct {
    char *to;
    const native_operand *value;
    native_loop loop; /* NULL for zeros */
    int size;
} filling;

static void fill_part(void *context, npy_intp begin, npy_intp end) {
    const filling *run = context;
    if (!run->loop) {
        memset(run->to + begin * run->size, 0, (size_t)((end - begin) * run->size));
        return;
    }
    char *const data[2] = {run->value->data, run->to + begin * run->size};
    const ptrdiff_t steps[2] = {0, run->size};
    run->loop(data, steps, end - begin);
}

/* A number as an element, where NumPy would store that one without a word. */
static bool element_of(PyObject *number, native_type type, native_operand *value) {
    value->data = (char *)&value->number;
    value->number = 0;
    if (PyBool_Check(number))
        number = number == Py_True ? one : zero;
    if (PyLong_CheckExact(number) && PyObject_RichCompareBool(number, zero, Py_EQ) == 1)
        return true; /* the same bits in any type */
    if (type == TYPE_BOOL) {
        value->number = 1;
        return PyLong_CheckExact(number);
    }
    return native_number(number, type, value) &&
           !(type == TYPE_F32 && isinf(*(float *)value->data) && !(PyFloat_CheckExact(number) && isinf(PyFloat_AS_DOUBLE(number))));
}

static void fill_with(PyArrayObject *made, native_type type, const native_operand *value) {
    filling run = {PyArray_BYTES(made), value, value->number ? casts->cast[type][type] : NULL, TYPE_SIZE[type]};
    if (PyArray_SIZE(made))
        native_evenly(PyArray_SIZE(made), BYTES / run.size, fill_part, &run);
}

static PyObject *run_full(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *dtype;
    npy_intp shape[NATIVE_DIMS];
    native_operand value;
    if (nargs != 2 || !kwnames || !native_options(args, nargs, kwnames, &names[DTYPE], 1, &dtype) || !dtype)
        return NULL;
    const int ndim = native_sizes(args[0], shape, NATIVE_DIMS);
    const native_type type = ndim < 0 ? TYPE_NONE : native_dtype_type(dtype);
    if (type == TYPE_NONE || !element_of(args[1], type, &value))
        return NULL;
    for (int i = 0; i < ndim; i++)
        if (shape[i] < 0)
            return NULL;
    PyArrayObject *made = native_empty(ndim, shape, type);
    if (made)
        fill_with(made, type, &value);
    return (PyObject *)made;
}

static PyObject *run_fill(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    native_operand value;
    const native_type type = nargs == 2 && !kwnames ? native_array_type(args[0]) : TYPE_NONE;
    PyArrayObject *target = (PyArrayObject *)args[0];
    if (type == TYPE_NONE || !PyArray_ISONESEGMENT(target) || !PyArray_ISWRITEABLE(target) || !element_of(args[1], type, &value))
        return NULL;
    fill_with(target, type, &value);
    return Py_NewRef(args[0]);
}

/* Another order */

static PyObject *run_flip(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *option;
    npy_intp dims[NATIVE_DIMS];
    const native_type type = nargs == 1 ? native_array_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE || !kwnames || !native_options(args, nargs, kwnames, &names[DIMS], 1, &option))
        return NULL;
    const int count = native_sizes(option, dims, NATIVE_DIMS);
    for (int k = 0; k < count; k++)
        for (int j = 0; j < k; j++)
            if (dims[j] == dims[k])
                return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0];
    int axes[NATIVE_DIMS];
    const bool known = native_kept_order(x, true, args, 1, axes);
    return count < 0 ? NULL : (PyObject *)native_flipped(x, type, dims, count, known ? axes : NULL);
}

/* A flipped copy whose strides are swapped, as PyTorch's are. */
static PyObject *run_rot90(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    npy_intp dims[2];
    double turns;
    const native_type type = nargs == 1 ? native_array_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) ||
        native_sizes(options[DIMS], dims, 2) != 2 || dims[0] == dims[1] || !native_double(options[TURNS], &turns) || turns < 0 ||
        turns > 3)
        return NULL;
    const int k = (int)turns;
    PyArrayObject *made = native_flipped((PyArrayObject *)args[0], type, dims + (k == 1), k == 2 ? 2 : k != 0, NULL);
    if (!made || k % 2 == 0)
        return (PyObject *)made;
    PyObject *turned = PyArray_SwapAxes(made, (int)dims[0], (int)dims[1]);
    Py_DECREF(made);
    return turned;
}

typedef struct {
    const char *from;
    char *to;
    int dims;                    /* up to the last one that is rolled */
    npy_intp shape[NATIVE_DIMS]; /* of those */
    npy_intp moved[NATIVE_DIMS]; /* where along each the first element of the result comes from */
    npy_intp element;            /* bytes of what lies behind them */
} rolling;

/* Where in the source the row of the result lies, in rows along the last of those dims. */
static npy_intp rolled_row(const rolling *run, npy_intp row) {
    npy_intp source = 0, step = 1;
    for (int i = run->dims - 2; i >= 0; i--) {
        source += (row % run->shape[i] + run->moved[i]) % run->shape[i] * step;
        row /= run->shape[i];
        step *= run->shape[i];
    }
    return source;
}

/* Bytes of the result, whose rows are long. */
static void roll_part(void *context, npy_intp begin, npy_intp end) {
    const rolling *run = context;
    const int last = run->dims - 1;
    const npy_intp width = run->shape[last] * run->element, edge = (run->shape[last] - run->moved[last]) * run->element;
    while (begin < end) {
        npy_intp row = begin / width, at = begin % width;
        const char *from = run->from + rolled_row(run, row) * width;
        for (int part = 0; part < 2 && begin < end; part++) { /* up to the edge from where the row was cut, then its beginning */
            npy_intp length = (at < edge ? edge : width) - at;
            length = length < end - begin ? length : end - begin;
            native_copy_rows(from + (at < edge ? at + width - edge : at - edge), length, run->to + begin, length, 1, length);
            begin += length;
            at += length;
            if (at == width)
                break;
        }
    }
}

/* Short rows: as many at a time as follow one another in the source, too. */
static void roll_rows(void *context, npy_intp begin, npy_intp end) {
    const rolling *run = context;
    const int last = run->dims - 1;
    const npy_intp width = run->shape[last] * run->element, edge = (run->shape[last] - run->moved[last]) * run->element;
    const npy_intp most = 1 + ROLLED / width;
    bool outside = false; /* whether any other dim is rolled */
    for (int i = 0; i < last; i++)
        outside |= run->moved[i] > 0;
    const npy_intp size = outside ? run->shape[last - 1] : 1, moved = outside ? run->moved[last - 1] : 0;
    for (npy_intp rows; begin < end; begin += rows) {
        const npy_intp at = begin % size, left = !outside ? end : (at < size - moved ? size - moved : size) - at;
        rows = left < end - begin ? left : end - begin;
        rows = rows < most ? rows : most;
        const char *from = run->from + rolled_row(run, begin) * width;
        char *to = run->to + begin * width;
        native_copy_rows(from + width - edge, width, to, width, rows, edge);
        if (edge < width)
            native_copy_rows(from, width, to + edge, width, rows, width - edge);
    }
}

/* An int, or as many as a tuple has. */
static int whole_numbers(PyObject *option, npy_intp *numbers) {
    if (!option || !PyLong_CheckExact(option))
        return native_sizes(option, numbers, NATIVE_DIMS);
    numbers[0] = PyLong_AsSsize_t(option);
    if (numbers[0] == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return -1;
    }
    return 1;
}

static PyObject *run_roll(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    npy_intp shifts[NATIVE_DIMS], dims[NATIVE_DIMS] = {0};
    const native_type type = nargs == 1 ? native_array_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE || !PyArray_SIZE((PyArrayObject *)args[0]) || !kwnames ||
        !native_options(args, nargs, kwnames, names, OPTIONS, options))
        return NULL;
    const int count = whole_numbers(options[SHIFTS], shifts);
    const bool flat = native_is_none(options[DIMS]);
    if (count < 1 || (flat ? 1 : whole_numbers(options[DIMS], dims)) != count)
        return NULL;
    PyArrayObject *x = native_dense(args[0]);
    if (!x)
        return NULL;
    rolling run = {.from = PyArray_BYTES(x), .dims = 0, .element = TYPE_SIZE[type]};
    const int ndim = flat ? 1 : PyArray_NDIM(x);
    bool inside = true;
    for (int i = 0; i < ndim; i++)
        run.shape[i] = flat ? PyArray_SIZE(x) : PyArray_DIM(x, i);
    for (int k = 0; k < count; k++) {
        inside = inside && dims[k] >= 0 && dims[k] < ndim;
        if (!inside)
            break;
        const npy_intp size = run.shape[dims[k]], back = (shifts[k] % size + size) % size;
        run.moved[dims[k]] = (run.moved[dims[k]] + size - back) % size;
        run.dims = dims[k] >= run.dims ? (int)dims[k] + 1 : run.dims;
    }
    for (int i = run.dims; i < ndim; i++)
        run.element *= run.shape[i];
    PyArrayObject *made = inside ? native_empty(PyArray_NDIM(x), PyArray_DIMS(x), type) : NULL;
    if (made) {
        run.to = PyArray_BYTES(made);
        const npy_intp width = run.shape[run.dims - 1] * run.element;
        if (width < LONG_ROW)
            native_evenly(PyArray_NBYTES(made) / width, BYTES / width + 1, roll_rows, &run);
        else
            native_evenly(PyArray_NBYTES(made), BYTES, roll_part, &run);
    }
    Py_DECREF(x);
    return (PyObject *)made;
}

int cast_init(void) {
    casts = PICK(cast_loops);
    if (native_intern(names, NAMES, OPTIONS))
        return -1;
    zero = PyLong_FromLong(0);
    one = PyLong_FromLong(1);
    return zero && one ? 0 : -1;
}

const native_spec cast_kernels[] = {
    {"cast", run_cast, .ordered = true},
    {"clone", run_clone, .ordered = true},
    {"contiguous", run_contiguous, NULL},
    {"copy", run_copy, NULL},
    {"full", run_full, NULL},
    {"fill", run_fill, NULL},
    {"flip", run_flip, NULL, .ordered = true},
    {"rot90", run_rot90, NULL},
    {"roll", run_roll, NULL},
    {NULL, NULL, NULL},
};

/* Fused kernels: made of a description by compile.py of the plugin, called with arrays.

   A kernel checks its arguments, makes room for the results and runs its nests. What it cannot take, an array of
   another layout than any it knows or a place for a result that does not fit, goes to the fallback it was given. */
#include "fused.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    native_type type;
    int ndim;
    npy_intp shape[NATIVE_DIMS];
} array_spec;

/* Where an array is last read, or written: the nest, and the step in it. */
typedef struct {
    int nest, step;
    bool in_place; /* written one element after the other as the space goes */
} moment;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *fallback;
    int inputs, made, outputs, nests;
    array_spec *specs; /* of the inputs, then of what is made */
    moment *moments;
    int *output;
    fused_nest *nest;
} fused_kernel;

static PyObject *out_name;
static PyTypeObject fused_type;

static PyObject *fused_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames);

/* Parsing. The description is the plugin's own; what does not fit its form is a mistake in there. */

static bool parse_shape(PyObject *from, int *ndim, npy_intp *shape) {
    *ndim = PyTuple_Check(from) ? (int)PyTuple_GET_SIZE(from) : -1;
    if (*ndim < 0 || *ndim > NATIVE_DIMS) {
        PyErr_SetString(PyExc_TypeError, "fuse: expected a shape of few dims");
        return false;
    }
    for (int i = 0; i < *ndim; i++)
        shape[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(from, i));
    return !PyErr_Occurred();
}

static void *room_for(PyObject *tuple, size_t size, int *count) {
    *count = (int)PyTuple_GET_SIZE(tuple);
    void *made = PyMem_RawCalloc(*count ? (size_t)*count : 1, size);
    if (!made)
        PyErr_NoMemory();
    return made;
}

/* The values that a step reads or writes; how many. */
static unsigned char parse_numbers(PyObject *from, int *numbers) {
    Py_ssize_t count = PyTuple_GET_SIZE(from);
    if (count > FUSED_SOURCES) {
        PyErr_SetString(PyExc_ValueError, "fuse: expected a step of few operands");
        return 0;
    }
    for (Py_ssize_t k = 0; k < count; k++)
        numbers[k] = (int)PyLong_AsLong(PyTuple_GET_ITEM(from, k));
    return (unsigned char)count;
}

static bool parse_step(PyObject *from, fused_step *step) {
    int kind, type, row;
    PyObject *sources, *extra;
    if (!PyArg_ParseTuple(from, "iipiiO!O", &kind, &type, &row, &step->op, &step->made, &PyTuple_Type, &sources, &extra))
        return false;
    step->kind = (unsigned char)kind;
    step->type = (unsigned char)type;
    step->row = row;
    step->sources = parse_numbers(sources, step->source);
    if (step->kind == STEP_UFUNC) { /* ufuncs live as long as NumPy does */
        PyUFuncObject *function = (PyUFuncObject *)extra;
        step->loop = function->functions[step->op];
        step->loop_data = function->data ? ((void **)function->data)[step->op] : NULL;
    }
    PyObject *places, *ops;
    if (step->kind == STEP_CHAIN && PyArg_ParseTuple(extra, "O!S", &PyTuple_Type, &places, &ops)) {
        Py_ssize_t bytes = PyBytes_GET_SIZE(ops);
        step->places = parse_numbers(places, step->place);
        if (bytes > (Py_ssize_t)sizeof step->chain) {
            PyErr_SetString(PyExc_ValueError, "fuse: expected a chain of few ops");
            return false;
        }
        step->ops = (unsigned char)(bytes / 2);
        memcpy(step->chain, PyBytes_AS_STRING(ops), (size_t)bytes);
    }
    Py_ssize_t address;
    if (step->kind == STEP_WRITTEN && PyArg_ParseTuple(extra, "O!n", &PyTuple_Type, &places, &address)) {
        step->places = parse_numbers(places, step->place);
        step->written = (written_loop)(uintptr_t)address;
    }
    PyObject *name, *options;
    if (step->kind == STEP_ACTIVATE && PyArg_ParseTuple(extra, "OO!", &name, &PyDict_Type, &options))
        activate_find(name, options, &step->op, step->numbers);
    return !PyErr_Occurred();
}

static fused_step *parse_steps(PyObject *from, int *count) {
    fused_step *made = room_for(from, sizeof *made, count);
    for (int i = 0; made && i < *count; i++)
        if (!parse_step(PyTuple_GET_ITEM(from, i), &made[i]))
            break;
    return made;
}

static bool parse_value(PyObject *from, fused_value *value) {
    int place, type, row;
    const char *number;
    Py_ssize_t bytes;
    if (!PyArg_ParseTuple(from, "iipny#", &place, &type, &row, &value->at, &number, &bytes))
        return false;
    value->place = (unsigned char)place;
    value->type = (unsigned char)type;
    value->row = row;
    memcpy(&value->number, number, bytes < 8 ? (size_t)bytes : 8);
    return true;
}

static bool parse_nest(PyObject *from, fused_nest *nest) {
    PyObject *shape, *values, *loads, *phases;
    int long_rows;
    if (!PyArg_ParseTuple(from, "O!innnnpO!O!O!", &PyTuple_Type, &shape, &nest->row_ndim, &nest->block, &nest->grain,
                          &nest->scratch, &nest->table, &long_rows, &PyTuple_Type, &values, &PyTuple_Type, &loads,
                          &PyTuple_Type, &phases) ||
        !parse_shape(shape, &nest->ndim, nest->shape))
        return false;
    nest->long_rows = long_rows;
    nest->rows = nest->width = 1;
    for (int i = 0; i < nest->ndim; i++)
        *(i < nest->row_ndim ? &nest->rows : &nest->width) *= nest->shape[i];
    nest->count = nest->rows * nest->width;
    if (!(nest->values = room_for(values, sizeof *nest->values, &nest->value_count)) ||
        !(nest->loads = room_for(loads, sizeof *nest->loads, &nest->load_count)) ||
        !(nest->phases = room_for(phases, sizeof *nest->phases, &nest->phase_count)))
        return false;
    for (int i = 0; i < nest->value_count; i++)
        if (!parse_value(PyTuple_GET_ITEM(values, i), &nest->values[i]))
            return false;
    for (int i = 0; i < nest->load_count; i++)
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(loads, i), "ii", &nest->loads[i].array, &nest->loads[i].aligned))
            return false;
    for (int p = 0; p < nest->phase_count; p++) {
        fused_phase *phase = &nest->phases[p];
        PyObject *steps, *row_steps;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(phases, p), "O!O!", &PyTuple_Type, &steps, &PyTuple_Type, &row_steps) ||
            !(phase->steps = parse_steps(steps, &phase->count)) ||
            !(phase->row_steps = parse_steps(row_steps, &phase->row_count)) || PyErr_Occurred())
            return false;
        for (int i = 0; i < phase->count; i++)
            phase->partials += phase->steps[i].kind == STEP_REDUCE;
    }
    return true;
}

static bool parse_specs(PyObject *from, array_spec *specs) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(from); i++) {
        PyObject *shape;
        int type;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(from, i), "iO", &type, &shape) ||
            !parse_shape(shape, &specs[i].ndim, specs[i].shape))
            return false;
        specs[i].type = type;
    }
    return true;
}

/* Where the value comes from or goes to as an array: its number, -1 where it is none. `loaded` says which loads read. */
static int array_of(const fused_nest *nest, const int *loaded, int number) {
    const fused_value *value = &nest->values[number];
    return value->place == PLACE_ARRAY ? (int)value->at : value->place == PLACE_LOADED ? loaded[number] : -1;
}

static void read_and_write(fused_kernel *kernel, int n, const fused_step *step, int when, const int *loaded) {
    const fused_nest *nest = &kernel->nest[n];
    for (int k = 0; k < step->sources; k++) {
        int last = 0, array = array_of(nest, loaded, step->source[k]);
        for (int i = 0; i < step->ops; i++)
            last = !chain_stores(step->chain[i].code) && step->chain[i].operand == k ? i : last;
        if (array >= 0 && array < kernel->inputs)
            kernel->moments[array] = (moment){n, when + last, true};
    }
    const bool chain = step->kind == STEP_CHAIN, written = step->kind == STEP_WRITTEN;
    for (int i = 0; step->kind != STEP_LOAD && i < (chain ? step->ops : written ? step->places : 1); i++) {
        if (chain && !chain_stores(step->chain[i].code))
            continue;
        int made = chain ? step->place[step->chain[i].operand] : written ? step->place[i] : step->made;
        int array = array_of(nest, loaded, made);
        if (array >= 0)
            kernel->moments[array] = (moment){n, when + (chain ? i : 0), !nest->values[made].row && !nest->long_rows};
    }
}

/* When each input is read for the last time, and each made array written; false with an exception. */
static bool find_moments(fused_kernel *kernel) {
    for (int i = 0; i < kernel->inputs + kernel->made; i++)
        kernel->moments[i] = (moment){-1, 0, true};
    for (int n = 0; n < kernel->nests; n++) {
        const fused_nest *nest = &kernel->nest[n];
        int *loaded = PyMem_RawMalloc(((size_t)nest->value_count + 1) * sizeof *loaded), when = 0;
        if (!loaded) {
            PyErr_NoMemory();
            return false;
        }
        for (int p = 0; p < nest->phase_count; p++) {
            const fused_phase *phase = &nest->phases[p];
            for (int s = 0; s < phase->count + phase->row_count; s++, when += CHAIN_OPS) {
                const fused_step *step = s < phase->count ? &phase->steps[s] : &phase->row_steps[s - phase->count];
                if (step->kind == STEP_LOAD)
                    loaded[step->made] = nest->loads[step->op].array;
                read_and_write(kernel, n, step, when, loaded);
            }
        }
        PyMem_RawFree(loaded);
    }
    for (int i = 0; i < kernel->outputs; i++) /* an input that is answered with is needed to the end */
        if (kernel->output[i] < kernel->inputs)
            kernel->moments[kernel->output[i]].nest = kernel->nests;
    return true;
}

PyObject *native_fuse(PyObject *module, PyObject *args) {
    PyObject *inputs, *made, *outputs, *nests, *fallback;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O", &PyTuple_Type, &inputs, &PyTuple_Type, &made, &PyTuple_Type, &outputs,
                          &PyTuple_Type, &nests, &fallback))
        return NULL;
    fused_kernel *kernel = PyObject_GC_New(fused_kernel, &fused_type);
    if (!kernel)
        return NULL;
    memset((char *)kernel + sizeof(PyObject), 0, sizeof *kernel - sizeof(PyObject));
    kernel->vectorcall = fused_call;
    kernel->fallback = Py_NewRef(fallback);
    PyObject_GC_Track(kernel);
    kernel->inputs = (int)PyTuple_GET_SIZE(inputs);
    kernel->made = (int)PyTuple_GET_SIZE(made);
    size_t arrays = (size_t)(kernel->inputs + kernel->made) + 1;
    kernel->specs = PyMem_RawCalloc(arrays, sizeof *kernel->specs);
    kernel->moments = PyMem_RawCalloc(arrays, sizeof *kernel->moments);
    kernel->output = room_for(outputs, sizeof *kernel->output, &kernel->outputs);
    kernel->nest = room_for(nests, sizeof *kernel->nest, &kernel->nests);
    bool good = kernel->specs && kernel->moments && kernel->output && kernel->nest && parse_specs(inputs, kernel->specs) &&
                parse_specs(made, kernel->specs + kernel->inputs);
    for (int i = 0; good && i < kernel->outputs; i++)
        kernel->output[i] = (int)PyLong_AsLong(PyTuple_GET_ITEM(outputs, i));
    for (int i = 0; good && i < kernel->nests; i++)
        good = parse_nest(PyTuple_GET_ITEM(nests, i), &kernel->nest[i]);
    if (!good || PyErr_Occurred()) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        Py_DECREF(kernel);
        return NULL;
    }
    if (!find_moments(kernel))
        Py_CLEAR(kernel);
    return (PyObject *)kernel;
}

/* Calls */

enum { FEW = 24 };

static bool fits(const array_spec *spec, PyObject *object) {
    if (native_array_type(object) != spec->type)
        return false;
    PyArrayObject *array = (PyArrayObject *)object;
    return PyArray_NDIM(array) == spec->ndim && PyArray_CompareLists(PyArray_DIMS(array), spec->shape, spec->ndim);
}

/* Whether a result may be written to an array whose memory that input uses too. */
static bool in_turn(const fused_kernel *kernel, int input, int result, PyArrayObject *from, PyArrayObject *to) {
    const moment *read = &kernel->moments[input], *written = &kernel->moments[result];
    if (read->nest < written->nest)
        return true;
    return read->nest == written->nest && read->step <= written->step && written->in_place &&
           PyArray_BYTES(from) == PyArray_BYTES(to) && PyArray_IS_C_CONTIGUOUS(from) &&
           PyArray_ITEMSIZE(from) == PyArray_ITEMSIZE(to) && PyArray_SIZE(from) == PyArray_SIZE(to);
}

/* Whether the results can go where `out` says at once; `places` gets an array, or NULL, for each that is made. */
static bool take_places(const fused_kernel *kernel, PyObject *out, PyArrayObject **arrays) {
    if (!PyTuple_CheckExact(out) || PyTuple_GET_SIZE(out) != kernel->outputs)
        return false;
    for (int i = 0; i < kernel->outputs; i++) {
        PyObject *place = PyTuple_GET_ITEM(out, i);
        int number = kernel->output[i];
        if (place == Py_None)
            continue;
        if (number < kernel->inputs || arrays[number] || !fits(&kernel->specs[number], place))
            return false;
        PyArrayObject *to = (PyArrayObject *)place;
        if (!PyArray_IS_C_CONTIGUOUS(to) || !PyArray_ISWRITEABLE(to))
            return false;
        for (int k = 0; k < kernel->inputs; k++)
            if (native_overlap(arrays[k], to) && !in_turn(kernel, k, number, arrays[k], to))
                return false;
        for (int k = kernel->inputs; k < kernel->inputs + kernel->made; k++)
            if (arrays[k] && native_overlap(arrays[k], to))
                return false;
        arrays[number] = to;
    }
    return true;
}

/* Runs the nests over arrays[0..inputs), with results in those of the others that are there; fills the rest. */
static PyObject *run_nests(const fused_kernel *kernel, PyArrayObject **arrays) {
    int count = kernel->inputs + kernel->made;
    bool good = true;
    for (int i = kernel->inputs; i < count; i++) {
        const array_spec *spec = &kernel->specs[i];
        if (arrays[i])
            Py_INCREF(arrays[i]);
        else
            good = good && (arrays[i] = native_empty(spec->ndim, spec->shape, spec->type));
    }
    for (int n = 0; good && n < kernel->nests; n++)
        if (!fused_run(&kernel->nest[n], arrays)) {
            PyErr_NoMemory();
            good = false;
        }
    PyObject *made = good ? PyTuple_New(kernel->outputs) : NULL;
    for (int i = 0; made && i < kernel->outputs; i++)
        PyTuple_SET_ITEM(made, i, Py_NewRef((PyObject *)arrays[kernel->output[i]]));
    for (int i = kernel->inputs; i < count; i++)
        Py_XDECREF(arrays[i]);
    return made;
}

static PyObject *fused_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    const fused_kernel *kernel = (fused_kernel *)self;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    PyObject *out = NULL;
    int count = kernel->inputs + kernel->made;
    if (nargs != kernel->inputs || (kwnames && !native_options(args, nargs, kwnames, &out_name, 1, &out)))
        return PyObject_Vectorcall(kernel->fallback, args, nargsf, kwnames);
    for (int i = 0; i < kernel->inputs; i++)
        if (!fits(&kernel->specs[i], args[i]))
            return PyObject_Vectorcall(kernel->fallback, args, nargsf, kwnames);
    PyArrayObject *few[FEW], **arrays = few;
    if (count > FEW && !(arrays = PyMem_Malloc((size_t)count * sizeof *arrays)))
        return PyErr_NoMemory();
    memset(arrays, 0, (size_t)count * sizeof *arrays);
    memcpy(arrays, args, (size_t)nargs * sizeof *arrays);
    PyObject *made = NULL;
    if (!out || out == Py_None || take_places(kernel, out, arrays))
        made = run_nests(kernel, arrays);
    else
        made = PyObject_Vectorcall(kernel->fallback, args, nargsf, kwnames);
    if (arrays != few)
        PyMem_Free(arrays);
    return made;
}

static int fused_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(((fused_kernel *)self)->fallback);
    return 0;
}

static int fused_clear(PyObject *self) {
    Py_CLEAR(((fused_kernel *)self)->fallback);
    return 0;
}

static void fused_dealloc(PyObject *self) {
    fused_kernel *kernel = (fused_kernel *)self;
    PyObject_GC_UnTrack(self);
    fused_clear(self);
    for (int n = 0; kernel->nest && n < kernel->nests; n++) {
        fused_nest *nest = &kernel->nest[n];
        for (int p = 0; nest->phases && p < nest->phase_count; p++) {
            PyMem_RawFree(nest->phases[p].steps);
            PyMem_RawFree(nest->phases[p].row_steps);
        }
        PyMem_RawFree(nest->values);
        PyMem_RawFree(nest->loads);
        PyMem_RawFree(nest->phases);
    }
    PyMem_RawFree(kernel->nest);
    PyMem_RawFree(kernel->specs);
    PyMem_RawFree(kernel->moments);
    PyMem_RawFree(kernel->output);
    PyObject_GC_Del(self);
}

static PyTypeObject fused_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorcore_cpu.native._native.FusedKernel",
    .tp_doc = "Several ops in one pass; calls that it cannot take go to its fallback.",
    .tp_basicsize = sizeof(fused_kernel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(fused_kernel, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_traverse = fused_traverse,
    .tp_clear = fused_clear,
    .tp_dealloc = fused_dealloc,
};

PyObject *native_fusible(PyObject *module, PyObject *unused) {
#define CODE_NAME(name) #name,
    static const char *const CODES[] = {"store", "stream", CHAIN_UNARY(CODE_NAME) CHAIN_FUNCTION(CODE_NAME) CHAIN_BINARY(CODE_NAME)};
    PyObject *codes = PyDict_New();
    for (int code = 0; codes && code < CHAIN_CODES; code++) {
        PyObject *number = PyLong_FromLong(code);
        if (!number || PyDict_SetItemString(codes, CODES[code], number))
            Py_CLEAR(codes);
        Py_XDECREF(number);
    }
    return Py_BuildValue("NNN", elementwise_describe(), activate_describe(), codes);
}

int fused_init(void) {
    out_name = PyUnicode_InternFromString("out");
    return out_name && !PyType_Ready(&fused_type) ? fused_run_init() : -1;
}

/* Kernel objects: what a call goes through before its loops, and after. */
#include "halves.h"
#include "moves.h"
#include "native.h"
#include "rows.h"

#include <string.h>
#include <structmember.h>

/* The order of results */

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
    const native_type parts = native_complex_type(one), type = parts == TYPE_NONE ? native_array_type(one) : parts;
    if (type == TYPE_NONE || (kernel->low && PyArray_NDIM(made) > 3) || !native_kept_order(made, kernel->aligned, args, nargs, axes))
        return NULL;
    if (native_lies_so(made, axes, &but_for_ones))
        return Py_NewRef(one);
    if (but_for_ones)
        return NULL;
    PyArrayObject *to = (parts == TYPE_NONE ? native_empty_ordered : native_empty_complex_ordered)(PyArray_NDIM(made), PyArray_DIMS(made), type, axes);
    if (to && parts != TYPE_NONE) {
        if (PyArray_CopyInto(to, made))
            Py_CLEAR(to);
        return (PyObject *)to;
    }
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

static PyObject *out_name;

/* Which of the keywords gives a place for the result; -1 for none. */
static Py_ssize_t find_out(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, k);
        if (args[nargs + k] != Py_None && (name == out_name || PyUnicode_Compare(name, out_name) == 0))
            return k;
    }
    return -1;
}

/* Takes the reference to `made`. */
static PyObject *laid(const native_kernel *kernel, PyObject *made, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (find_out(args, nargs, kwnames) >= 0)
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

/* Arguments */

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

/* A place for the result, given to a kernel that knows nothing of such */

static PyObject *kernel_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames);

/* Keywords without one of them; the last ones are kept, since one place in a program calls again and again. A new reference, NULL for
   none. */
static PyObject *without(PyObject *kwnames, Py_ssize_t out) {
    static PyObject *last, *made;
    const Py_ssize_t count = PyTuple_GET_SIZE(kwnames);
    if (count == 1)
        return NULL;
    if (last != kwnames) {
        PyObject *fewer = PyTuple_New(count - 1);
        for (Py_ssize_t i = 0; fewer && i < count - 1; i++)
            PyTuple_SET_ITEM(fewer, i, Py_NewRef(PyTuple_GET_ITEM(kwnames, i + (i >= out))));
        Py_XSETREF(last, Py_NewRef(kwnames));
        Py_XSETREF(made, fewer);
    }
    return Py_XNewRef(made);
}

/* Whether a result may be made in an array, and whether it would lie in the memory of one of others. */
static bool is_place(PyObject *one) {
    return PyArray_CheckExact(one) && PyArray_ISBEHAVED((PyArrayObject *)one);
}

static bool lies_in(PyObject *one, PyObject *const *others, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++)
        if (PyArray_Check(others[i]) && native_overlap((PyArrayObject *)one, (PyArrayObject *)others[i]))
            return true;
    return false;
}

/* Whether the kernel may write before it has seen all its arguments: none is a list of arrays, and none may be wrong in a place, which
   shows only while it is used, as where integers stand beside another array. */
static bool may_write(PyObject *const *args, Py_ssize_t count) {
    int arrays = 0, integers = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        const bool list = PyList_CheckExact(args[i]) || PyTuple_CheckExact(args[i]);
        if (list && PySequence_Fast_GET_SIZE(args[i]) && PyArray_Check(PySequence_Fast_GET_ITEM(args[i], 0)))
            return false;
        arrays += PyArray_Check(args[i]);
        integers += PyArray_Check(args[i]) && PyArray_ISINTEGER((PyArrayObject *)args[i]);
    }
    return arrays == 1 || !integers;
}

/* What a kernel made in `out`, an array or a tuple of them: what is not there yet is copied. What it made itself where a shape is another;
   NULL without an exception where a type or the number is. Takes the reference to `made`. */
static PyObject *settled(PyObject *made, PyObject *out) {
    const bool several = PyTuple_CheckExact(out);
    PyObject *const *places = several ? &PyTuple_GET_ITEM(out, 0) : &out, *const *results = several ? &PyTuple_GET_ITEM(made, 0) : &made;
    const Py_ssize_t count = several ? PyTuple_GET_SIZE(out) : 1;
    PyObject *apart[NATIVE_PLACES], *answer = NULL;
    bool usual = several == PyTuple_CheckExact(made) && (!several || PyTuple_GET_SIZE(made) == count), alike = usual;
    for (Py_ssize_t i = 0; usual && i < count; i++) {
        usual = PyArray_CheckExact(results[i]) && PyArray_TYPE((PyArrayObject *)results[i]) == PyArray_TYPE((PyArrayObject *)places[i]);
        alike &= usual && PyArray_SAMESHAPE((PyArrayObject *)results[i], (PyArrayObject *)places[i]);
    }
    for (Py_ssize_t i = 0; alike && i < count; i++) /* a result in another's place, or a view of its own */
        apart[i] = results[i] == places[i]              ? NULL
                   : lies_in(results[i], places, count) ? PyArray_NewCopy((PyArrayObject *)results[i], NPY_CORDER)
                                                        : Py_NewRef(results[i]);
    for (Py_ssize_t i = 0; alike && i < count; i++) {
        PyObject *done = apart[i] ? native_copied_over((PyArrayObject *)apart[i], (PyArrayObject *)places[i]) : Py_NewRef(places[i]);
        if (!done && !PyErr_Occurred() && results[i] != places[i])
            PyArray_CopyInto((PyArrayObject *)places[i], (PyArrayObject *)apart[i]);
        Py_XDECREF(done);
        Py_XDECREF(apart[i]);
    }
    if (usual && !PyErr_Occurred())
        answer = Py_NewRef(alike ? out : made);
    Py_DECREF(made);
    return answer;
}

/* Whether `out` is an array or a tuple of some where results may go; `places` and `count` are those. */
static bool are_places(PyObject *out, PyObject *const **places, Py_ssize_t *count) {
    const bool several = PyTuple_CheckExact(out);
    *count = several ? PyTuple_GET_SIZE(out) : 1;
    if (several)
        *places = &PyTuple_GET_ITEM(out, 0);
    for (Py_ssize_t i = 0; i < *count; i++)
        if (!is_place((*places)[i]))
            return false;
    return *count <= NATIVE_PLACES;
}

/* The result in `out`, or several in a tuple of places, which the kernel is made to write to where that is safe, and which they are copied
   to otherwise. The results themselves where one has another shape; NULL without an exception where one has another type, which is for
   the fallback to convert to. */
static PyObject *into(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, Py_ssize_t at) {
    PyObject *given[MOST], *const *places = args + nargs + at;
    const Py_ssize_t all = nargs + PyTuple_GET_SIZE(kwnames), fewer = all - 1;
    Py_ssize_t count;
    if (all > MOST || !are_places(args[nargs + at], &places, &count))
        return NULL;
    for (Py_ssize_t i = 0; i < fewer; i++)
        given[i] = args[i + (i >= nargs + at)];
    bool writes = may_write(given, fewer);
    for (Py_ssize_t i = 0; writes && i < count; i++)
        writes = !lies_in(places[i], given, fewer) && !lies_in(places[i], places, i);
    PyObject *names = without(kwnames, at);
    if (PyErr_Occurred())
        return NULL;
    native_await(places, writes ? count : 0);
    PyObject *made = kernel_call(self, given, (size_t)nargs, names);
    native_await(NULL, 0);
    Py_XDECREF(names);
    return made ? settled(made, args[nargs + at]) : NULL;
}

static PyObject *kernel_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    const native_kernel *kernel = (native_kernel *)self;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    const Py_ssize_t out = kwnames && nargs ? find_out(args, nargs, kwnames) : -1;
    /* no kernel takes nothing, and `args` may be NULL then */
    PyObject *made = nargs && (out < 0 || kernel->places != PLACES_NONE) ? kernel->run(kernel, args, nargs, kwnames) : NULL;
    if (made && out >= 0 && made != args[nargs + out]) { /* it lets the option pass that others of its family know */
        PyObject *const *places = args + nargs + out, *there;
        Py_ssize_t count;
        there = are_places(*places, &places, &count) ? settled(Py_NewRef(made), args[nargs + out]) : NULL;
        if (!there && !PyErr_Occurred())
            return made;
        Py_DECREF(made);
        return there;
    }
    if (!made && out >= 0 && !PyErr_Occurred() && (kernel->places != PLACES_ALL || (kernel->rounds && native_is_half(native_array_type(args[nargs + out]))))) {
        if ((made = into(self, args, nargs, kwnames, out)) && (kernel->places != PLACES_ALL || made == args[nargs + out]))
            return made;
        Py_CLEAR(made); /* NumPy says what is wrong with a shape */
    }
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
    if (out >= 0 && kernel->places == PLACES_ALL && made != args[nargs + out] && PyArray_Check(made)) { /* as NumPy says it */
        Py_DECREF(made);
        return PyErr_Format(PyExc_ValueError, "%U: could not be broadcast into out, expected it in the result's shape; pass such an array", kernel->name);
    }
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

PyTypeObject native_kernel_type = {
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

PyObject *native_make_kernel(const native_spec *spec, PyObject *fallback, PyObject *lay, bool ordered, native_places places) {
    native_kernel *made = PyObject_GC_New(native_kernel, &native_kernel_type);
    if (!made)
        return NULL;
    made->vectorcall = kernel_call;
    made->run = spec->run;
    made->data = spec->data;
    made->fallback = Py_NewRef(fallback);
    made->lay = Py_XNewRef(lay);
    made->ordered = ordered;
    made->dense = spec->dense;
    made->places = places;
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

int native_kernel_init(void) {
    out_name = PyUnicode_InternFromString("out");
    return out_name ? PyType_Ready(&native_kernel_type) : -1;
}

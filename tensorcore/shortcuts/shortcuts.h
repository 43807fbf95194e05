/* What the short ways share: where the classes of the frontend have their slots, and what they ask. */
#ifndef TENSORCORE_SHORTCUTS_H
#define TENSORCORE_SHORTCUTS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL tensorcore_shortcut_arrays
#ifndef SHORTCUTS_MODULE
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
#include <stdbool.h>

typedef struct shortcut shortcut;

/* Answers as its function would; or NULL with an exception; or NULL without one, with nothing done that shows: the function is
   called with the same arguments then. */
typedef PyObject *(*shortcut_way)(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

enum { KNOWN = 10 };

struct shortcut {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    shortcut_way run;
    PyObject *function;     /* in Python */
    PyObject *code;         /* what it runs: once that was exchanged for something that looks on, it is asked itself; NULL of other callables */
    PyObject *known[KNOWN]; /* what it has to know besides */
};

typedef struct {
    const char *name;
    shortcut_way run;
} shortcut_spec;

/* Tables that end with a NULL name. */
extern const shortcut_spec view_shortcuts[], part_shortcuts[], call_shortcuts[], check_shortcuts[], pointwise_shortcuts[], window_shortcuts[],
    literal_shortcuts[], asked_shortcuts[], making_shortcuts[], record_shortcuts[], write_shortcuts[], place_shortcuts[], reading_shortcuts[], state_shortcuts[], mixed_shortcuts[], reduction_shortcuts[], along_shortcuts[], shown_shortcuts[];

/* The slots of Tensor, Version, Node and of the counters of unusual threads, as bytes from the beginning of an object. A whole
   tensor has the first FILLED of its own; the mark of those made in inference mode is empty on all others. */
enum { NATIVE, DTYPE, DEVICE, NODE, VERSION, TRAIL, FILLED, MARK = FILLED, SLOTS };
enum { COUNT, STAMP, VIEWS, LIMIT, VERSION_SLOTS };
enum {
    N_OP, N_EDGES, N_SAVED, N_OPTIONS, N_EXTRA, N_SHAPE, N_DTYPE, N_ORDER, N_GRAD, N_OUT, N_VERSION, NODE_SLOTS
};
enum { THREADS, INFERENCE, VMAPS, TRACERS, UNUSUAL_SLOTS };
extern Py_ssize_t shortcut_slots[SLOTS], version_slots[VERSION_SLOTS], node_slots[NODE_SLOTS];
extern PyTypeObject *tensor_type, *size_type, *version_type, *node_type;
extern PyObject *next_order;

#define PLACE(object, offset) (*(PyObject **)((char *)(object) + (offset)))
#define SLOT(tensor, slot) PLACE(tensor, shortcut_slots[slot])
#define NODE_SLOT(node, slot) PLACE(node, node_slots[slot])
#define VERSION_SLOT(version, slot) PLACE(version, version_slots[slot])

/* Names of attributes, interned. */
enum {
    A_KERNELS, A_KERNEL, A_VARIADIC, A_GRADS, A_SHAPE, A_BASE, A_KIND, A_FLOATING, A_COMPLEX, A_DTYPE, A_PLAIN, A_SEVERAL,
    A_UNRECORDED, A_INPUT_SHAPE, A_ENABLED, A_KEY, A_PARAMS, A_ARRAY, A_AS_NATIVE, A_OFFSET, A_DIM1, A_DIM2, A_ADDMM, A_BETA, A_ALPHA,
    A_TYPE, A_LEVELS, A_OWN_GENERATOR, A_RANDOM, A_DEVICE, A_HOST, A_DEFAULT, A_COPY, A_LOCK, A_CAPSULE, A_UNUSED, A_NORMAL, A_ACQUIRE,
    A_RELEASE, A_ALLOCATE, A_FULL, A_PROCESS, A_THREADS, A_DRAW_OVER, A_GENERATOR, A_SHARE_HOST, A_WRAPS, A_TRAITS,
    A_KEEPS_INPUTS, A_NEEDED_FOR, A_KEEPS_OUT, A_CAPABILITIES, A_VALUES, A_TO_HOST, A_NARROW_NUMBERS, A_FROM_HOST, A_DIM, A_PROMOTED, A_TAKES_OUT, A_KEEPDIM, A_OUT, NAMES
};
extern PyObject *shortcut_names[NAMES];

static inline bool is_tensor(PyObject *one) { return Py_IS_TYPE(one, tensor_type); }

/* Whether it is exactly a Tensor, with the slots below FILLED filled. */
bool is_whole(PyObject *one);

/* Whether one of those counters is not zero. */
bool counts(int counter);

/* Whether calls of this thread are put on the tape, with nothing unusual switched on. */
typedef enum { RECORDING, NOT_RECORDING, UNUSUAL } taping;
taping taping_of_thread(void);

/* What one of this thread's switches is. */
PyObject *thread_switch(PyObject *name);

/* A Tensor off the tape, of nobody's memory. */
PyObject *new_tensor(PyObject *native, PyObject *dtype, PyObject *device);

/* The version of a tensor, which it gets now if it has none; borrowed. */
PyObject *version_of(PyObject *input);

/* What the origin of a view of `input` is made of once somebody asks, see Tensor.trail; `kind` is that of `input` where NULL. */
PyObject *trail_of(PyObject *input, PyObject *op, PyObject *options, PyObject *kind);

/* A tensor over the memory of `input`, off the tape, by its trail, or of a trail of its own; `options` are of `op`. */
PyObject *view_on_trail(PyObject *input, PyObject *native, PyObject *trail, taping how);
PyObject *view_of(PyObject *input, PyObject *native, PyObject *op, PyObject *options, PyObject *kind, taping how);

/* The trail of many parts of a tensor is one: in the place of options are numbers, which with the memory of a part say where it is. */
static inline bool is_shared_trail(PyObject *trail) {
    return PyTuple_CheckExact(trail) && PyTuple_CheckExact(PyTuple_GET_ITEM(trail, 3));
}

/* The trail of one of those alone, with its own options, which it has from then on. */
PyObject *own_trail(PyObject *tensor);

/* Whether a write changes the tensor's values and surely nothing else. */
bool is_free(PyObject *tensor);

/* Whether the writes to a tensor, of a subclass too, are counted by a Version, or not yet. */
bool is_counted(PyObject *tensor);

/* Notes a write to the memory of a whole tensor; false where output.py has to, or with an exception. */
bool note_write(PyObject *tensor);

/* kernel(*given[:count]), and what follows in `given` by its name where there are `keywords`; `given` are borrowed. NULL without an
   exception where the device lacks the kernel. */
PyObject *run_kernel(PyObject *device, PyObject *name, PyObject **given, Py_ssize_t count, PyObject *keywords);

/* Of calls that write to `input`: whether an operand is no tensor, or one that has no history, and its memory only where it is `input`;
   copy(input, made) on its device; and `answer`, once the write is noted that gave `done`, which is released. */
bool is_aside(PyObject *input, PyObject *one);
PyObject *copied(PyObject *input, PyObject *made);
PyObject *noted(PyObject *input, PyObject *done, PyObject *answer);

/* Whether the second of two arrays broadcasts to the shape of the first. */
bool fits(PyObject *one, PyObject *other);

/* The keywords of a kernel that writes: "out", and behind it the name of one factor, where there is one. */
PyObject *writing_keywords(PyObject *factor);

enum { MOST_ARGUMENTS = 16 }; /* of calls that are handed on */

/* again(device, name, natives, options, error), with the exception that is set; without options where those are NULL. */
PyObject *asked_again(PyObject *again, PyObject *device, PyObject *name, PyObject *const *natives, Py_ssize_t count, PyObject *given_options);

/* The call of an elementwise op whose operands are of dtypes that have met before, see mixed.py; NULL without an exception where the
   function in Python has to look. `again` asks a kernel that found no memory a second time. */
PyObject *known_call(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *options, PyObject *again);

/* apply(op, inputs, options, dtype=dtype), where formulas are told `told` instead of the options; `record` is the function, and
   `again` asks a kernel that found no memory a second time; where it is NULL, apply has to. NULL without an exception where apply has to
   look, and as apply raises. */
PyObject *apply_call(PyObject *record, PyObject *again, PyObject *op, PyObject *given, PyObject *options, PyObject *told, PyObject *dtype);

/* Whether the call is on the tape now, where its op has formulas; false with nothing done where the function in Python has to look. */
bool recorded_call(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *options, PyObject *made);

/* The usual call of an op that puts its result into a tensor, see place_way; None where it is not one, or where the kernel raises. */
PyObject *place_call(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

/* apply_into(op, tensors, options, dtype, out), and what stores a result of another shape. */
PyObject *apply_into_call(PyObject *store, PyObject *op, PyObject *tensors, PyObject *options, PyObject *dtype, PyObject *out);

/* The kernel of given[0] and the options that follow, by those names, into `out`, where that is a place of the shape for a result of the
   first tensor's dtype beside all of them; NULL without an exception where it is not. */
PyObject *kernel_into(PyObject *out, PyObject *tensors, PyObject *name, PyObject *const *given, PyObject *words, int ndim, const npy_intp *shape);

/* The function's results of args[1:] and the keywords in the tensors of args[0], as "placed" says. */
PyObject *placed_call(PyObject *function, PyObject *title, PyObject *store, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

/* What `other` holds in the dtype of `input`, where such a call of the op was made before and gives that dtype; NULL for others. */
PyObject *known_operand(PyObject *op, PyObject *input, PyObject *other);

/* record(op, inputs, options, made) of one result, as a new reference to None; NULL without an exception where the function has to look. */
PyObject *record_call(PyObject *op, PyObject *inputs, PyObject *options, PyObject *made);

/* An item of a shape, or some of them as a shape. */
PyObject *item_of_size(PyObject *self, PyObject *key);

/* What the ways of elementwise ops know, "usual" and "overwritten", see usual_way: the kernel's name, and sets of dtypes, in which None
   has all. */
enum { OP_NAME = 1, OP_ACCEPTS, OP_RESULT, OP_FLOATS, OP_INTEGERS, OP_NARROW = 8 };

/* Whether the kernel of such an op takes that number beside a tensor as it is; whole ones of 32 bits beside integers. */
bool plain_number(const shortcut *self, PyObject *one, PyObject *tensor);

/* A dim of so many counted from the front; NO_DIM where it is none. */
enum { NO_DIM = PY_SSIZE_T_MIN };
Py_ssize_t wrapped(PyObject *dim, Py_ssize_t ndim);

/* Whether it is `:`. */
bool is_whole_slice(PyObject *one);

/* Ints as a tuple; NULL with an exception. */
PyObject *tuple_of(const npy_intp *numbers, int count);

/* show(input, {"shape": shape}, the view that the kernel of that name makes), and takes the reference to the shape; NULL without an
   exception where there is no such view. */
PyObject *shown_in_shape(PyObject *show, PyObject *kernel, PyObject *input, PyObject *shape);

/* parse.py: new_dim(key, ndim), and simple(key, shape), which is NULL without an exception where the function has to look. */
PyObject *new_dim_of(PyObject *key, Py_ssize_t ndim);
PyObject *simple_key(PyObject *key, PyObject *shape);

/* The kernel of that name of a device. */
PyObject *kernel_of(PyObject *device, PyObject *name);

#endif

/* Half types in kernels of single precision: operands are converted, and results rounded once, as the kernels in Python have it. */
#include "halves.h"

#include "cast.h"
#include "plan.h"

#include <string.h>

DECLARE_LOOPS(cast_loops, cast_loops);

enum { MOST = 24 }; /* operands and options of a call */

/* Which kernels, and what of their results is rounded, one letter for each: 'h' always, '=' never (it is kept in single precision
   for the way back), a digit where that operand is of the half type. The last letter holds for what follows. */
static const struct {
    const char *name, *rounds;
} WIDENED[] = {
    {"softmax", "h"}, {"log_softmax", "h"}, {"softmax_backward", "h"}, {"log_softmax_backward", "h"},
    {"cross_entropy", "h="}, {"cross_entropy_backward", "h"}, {"nll_loss", "h="}, {"nll_loss_backward", "h"},
    {"mse_loss", "h"}, {"mse_loss_backward", "h"}, {"smooth_l1_loss", "h"}, {"smooth_l1_loss_backward", "h"},
    {"binary_cross_entropy", "h"}, {"binary_cross_entropy_backward", "h"},
    {"binary_cross_entropy_with_logits", "h"}, {"binary_cross_entropy_with_logits_backward", "h"},
    {"norm", "h"}, {"prod", "h"}, {"cumprod", "h"}, {"cumsum", "h"}, {"cumsum_back", "h"}, {"cummax", "h"}, {"cummin", "h"},
    {"clamp", "h"}, {"clamp_min", "h"}, {"clamp_max", "h"}, {"leaky_relu", "h"}, {"logsumexp", "h"},
    {"frexp", "h"}, {"mode_dim", "h"}, {"isin", "h"}, {"searchsorted", "h"}, {"segment_reduce", "h"}, {"logcumsumexp", "h"},
    {"adaptive_max", "h"}, {"fractional_max", "h"}, {"grid_sample", "h"}, {"grid_sample_backward", "h"}, {"soft_margin_loss", "h"}, {"soft_margin_loss_backward", "h"},
    {"fold", "h"}, {"unfold", "h"}, {"topk", "h"},
    {"add_rows", "h"}, {"index_add", "h"}, {"put_picked", "h"}, {"scatter_reduce", "h"}, {"edge_pad_gradient", "h"}, {"embedding_gradient", "h"},
    {"bag", "h"},
    {"max_pool", "h"}, {"max_pool_indices", "h"}, {"max_pool_gradient", "h"}, {"avg_pool", "h"}, {"avg_pool_gradient", "h"},
    {"adaptive_avg_pool", "h"}, {"adaptive_avg_pool_gradient", "h"},
    {"standardize", "h="}, {"standardize_backward", "123"}, {"standardize_by", "h"},
    {"attention", "h="}, {"attention_backward", "1234"},
    {"matmul", "h"}, {"matmul_nt", "h"}, {"matmul_tn", "h"}, {"linear", "h"}, {"addmm", "h"},
    {"lstm_steps", "hhh="}, {"gru_steps", "hh="}, {"rnn_steps", "hh="},
    {"conv", "h"}, {"conv_input_gradient", "h"}, {"conv_weight_gradient", "h"},
};

const char *native_rounds(const char *name) {
    for (size_t i = 0; i < sizeof WIDENED / sizeof *WIDENED; i++)
        if (!strcmp(name, WIDENED[i].name))
            return WIDENED[i].rounds;
    return NULL;
}

/* The half type of all operands that have one; TYPE_NONE where there are two or none, or where a call is of another kind. */
static native_type common_half(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    native_type found = TYPE_NONE;
    const Py_ssize_t all = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    for (Py_ssize_t i = 0; i < all; i++) {
        const native_type type = native_array_type(args[i]);
        if (type == TYPE_F64 || (native_is_half(type) && found != TYPE_NONE && found != type))
            return TYPE_NONE;
        found = native_is_half(type) ? type : found;
    }
    for (Py_ssize_t k = 0; found != TYPE_NONE && kwnames && k < PyTuple_GET_SIZE(kwnames); k++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, k);
        if (args[nargs + k] != Py_None && (!PyUnicode_CompareWithASCIIString(name, "out") || !PyUnicode_CompareWithASCIIString(name, "dtype")))
            return TYPE_NONE;
    }
    return all <= MOST ? found : TYPE_NONE;
}

void native_retype_number(native_operand *operand, native_type from, native_type to) {
    int64_t number = operand->number;
    PICK(cast_loops)->cast[from][to]((char *[]){(char *)&number, operand->data}, (const ptrdiff_t[]){0, 0}, 1);
}

void native_widen_apart(native_type half, const void *from, npy_intp step, float *to, npy_intp count) {
    char *const ends[2] = {(char *)from, (char *)to};
    PICK(cast_loops)->cast[half][TYPE_F32](ends, (const ptrdiff_t[]){step * TYPE_SIZE[half], sizeof *to}, count);
}

void native_widen(native_type half, const void *from, float *to, npy_intp count) {
    native_widen_apart(half, from, 1, to, count);
}

void native_narrow(native_type half, const float *from, void *to, npy_intp count) {
    char *const ends[2] = {(char *)from, (char *)to};
    PICK(cast_loops)->cast[TYPE_F32][half](ends, (const ptrdiff_t[]){sizeof *from, TYPE_SIZE[half]}, count);
}

double native_rounded(double number, native_type type) {
    uint16_t half;
    float single = (float)number;
    if (!native_is_half(type))
        return number;
    PICK(cast_loops)->cast[TYPE_F32][type]((char *const[]){(char *)&single, (char *)&half}, (const ptrdiff_t[]){0, 0}, 1);
    PICK(cast_loops)->cast[type][TYPE_F32]((char *const[]){(char *)&half, (char *)&single}, (const ptrdiff_t[]){0, 0}, 1);
    return single;
}

/* Takes the reference to `made`. */
static PyObject *rounded(PyObject *made, native_type half) {
    if (!made || native_array_type(made) != TYPE_F32)
        return made;
    PyObject *narrow = native_converted((PyArrayObject *)made, TYPE_F32, half);
    Py_DECREF(made);
    return narrow;
}

static PyObject *all_rounded(PyObject *made, native_type half, const char *rounds, PyObject *const *args) {
    if (!made || !PyTuple_CheckExact(made))
        return rounded(made, half);
    const Py_ssize_t count = PyTuple_GET_SIZE(made), letters = (Py_ssize_t)strlen(rounds);
    PyObject *answer = PyTuple_New(count);
    for (Py_ssize_t i = 0; answer && i < count; i++) {
        const char letter = rounds[i < letters ? i : letters - 1];
        const bool rounds_it = letter == 'h' || (letter != '=' && native_is_half(native_array_type(args[letter - '0'])));
        PyObject *one = Py_NewRef(PyTuple_GET_ITEM(made, i));
        if (rounds_it && !(one = rounded(one, half)))
            Py_CLEAR(answer);
        else
            PyTuple_SET_ITEM(answer, i, one);
    }
    Py_DECREF(made);
    return answer;
}

PyObject *native_widened(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const native_type half = common_half(args, nargs, kwnames);
    if (half == TYPE_NONE)
        return NULL;
    const Py_ssize_t all = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    PyObject *wide[MOST], *made = NULL;
    Py_ssize_t count = 0;
    for (bool good = true; good && count < all; count += good) {
        const bool narrow = native_is_half(native_array_type(args[count]));
        wide[count] = narrow ? native_converted((PyArrayObject *)args[count], half, TYPE_F32) : Py_NewRef(args[count]);
        good = wide[count] != NULL;
    }
    if (count == all && !(made = kernel->run(kernel, wide, nargs, kwnames)) && !PyErr_Occurred())
        made = PyObject_Vectorcall(kernel->fallback, wide, (size_t)nargs, kwnames); /* whose own conversions take longer */
    made = all_rounded(made, half, kernel->rounds, args);
    while (count)
        Py_DECREF(wide[--count]);
    return made;
}

/* Functions of doubles whose loops are SciPy's: found at the first call, run without NumPy's frames around them, and mended where
   PyTorch's corners are others. What is not there is left to NumPy's kernels. */
#include "elementwise.h"
#include "formulas.h"
#include "plan.h"
#include "rows.h"

#include <math.h>

DECLARE_LOOPS(formula_loops, formula_loops);

enum { GRAIN = 1 << 12, PIECE = 512, MOST_ORDER = 20 }; /* elements a thread, and of a piece; orders whose factorial a double holds */

typedef void (*mending)(char *const *data, const ptrdiff_t *steps, ptrdiff_t count);

typedef struct {
    const char *module, *name;
    int inputs;
    mending mend; /* NULL where nothing is to mend */
} borrowed;

static PyObject *out_name, *order_name;

#define IN(k) (*(const double *)(data[k] + i * steps[k]))
#define MADE(k) (*(double *)(data[k] + i * steps[k]))

/* One of the two decides where it can, even beside NaN. */
static void mend_incomplete(char *const *data, const ptrdiff_t *steps, ptrdiff_t count, double upper) {
    for (ptrdiff_t i = 0; i < count; i++) {
        const double a = IN(0), x = IN(1), lower = 1 - upper;
        if (isnan(MADE(2)) && !(x < 0 || a < 0 || a == 0))
            MADE(2) = isinf(x) && !isinf(a) ? lower : x == 0 || (isinf(a) && !isinf(x)) ? upper : MADE(2);
    }
}
static void mend_igamma(char *const *data, const ptrdiff_t *steps, ptrdiff_t count) { mend_incomplete(data, steps, count, 0); }
static void mend_igammac(char *const *data, const ptrdiff_t *steps, ptrdiff_t count) { mend_incomplete(data, steps, count, 1); }

static void mend_zeta(char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    for (ptrdiff_t i = 0; i < count; i++)
        if (IN(1) == INFINITY && IN(0) != 1)
            MADE(2) = NAN;
}

typedef struct {
    const numpy_loop *of;
    mending mend;
    double factor;
    int inputs;
} borrowed_run;

static void run_rows(void *context, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    const borrowed_run *run = context;
    char *at[PLAN_OPERANDS];
    for (int k = 0; k <= run->inputs; k++)
        at[k] = data[k];
    run->of->loop(at, &count, steps, run->of->beside);
    if (run->mend)
        run->mend(data, steps, count);
    for (ptrdiff_t i = 0; run->factor != 1 && i < count; i++)
        MADE(run->inputs) *= run->factor;
}

#define OF_ONE(X)                                                                                             \
    X(bessel_j0, "j0", NULL) X(bessel_j1, "j1", NULL) X(bessel_y0, "y0", NULL) X(bessel_y1, "y1", NULL)       \
    X(modified_bessel_k0, "k0", NULL) X(modified_bessel_k1, "k1", NULL)                                       \
    X(scaled_modified_bessel_k0, "k0e", NULL) X(scaled_modified_bessel_k1, "k1e", NULL)                       \
    X(digamma, "psi", NULL) X(entr, "entr", NULL) X(erfcx, "erfcx", NULL) X(log_ndtr, "log_ndtr", NULL)       \
    X(ndtri, "ndtri", NULL)
#define OF_TWO(X) X(igamma, "gammainc", mend_igamma) X(igammac, "gammaincc", mend_igammac)

#define NUMBERED(name, own, mend) AT_##name,
enum { OF_ONE(NUMBERED) OF_TWO(NUMBERED) AT_zeta };

/* Digamma: SciPy's, of numbers under 0 that of 1 - x, for a loop of ours to reflect. */
static void run_digamma(void *context, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    const borrowed_run *run = context;
    const formula_loop reflect = PICK(formula_loops)->of[FORMULA_digamma_left][TYPE_F64];
    double from[PIECE], right[PIECE];
    for (ptrdiff_t begin = 0, piece; begin < count; begin += piece) {
        bool left = false;
        npy_intp length = piece = count - begin < PIECE ? count - begin : PIECE;
        char *at[3] = {data[0] + begin * steps[0], data[1] + begin * steps[1]};
        for (ptrdiff_t i = 0; i < piece; i++) {
            const double x = *(const double *)(at[0] + i * steps[0]);
            left |= x < 0;
            from[i] = x < 0 ? 1 - x : x;
        }
        if (!left) {
            run->of->loop(at, &length, steps, run->of->beside);
            continue;
        }
        run->of->loop((char *[2]){(char *)from, (char *)right}, &length, (const npy_intp[2]){sizeof *from, sizeof *right}, run->of->beside);
        reflect((const double[3]){0}, (char *const[3]){at[0], (char *)right, at[1]}, (const ptrdiff_t[3]){steps[0], sizeof *right, steps[1]}, piece);
    }
}

/* The loop of that function, looked for once; NULL without an exception where it is not there. */
static const numpy_loop *loop_of(const borrowed *function, numpy_loop *found, bool *tried) {
    if (!*tried && !native_ufunc_loop(function->module, function->name, TYPE_F64, found))
        PyErr_Clear();
    *tried = true;
    return found->loop ? found : NULL;
}

enum { FOUND = 32 }; /* functions, more than there are in the table */
static numpy_loop found[FOUND];
static bool tried[FOUND];

static PyObject *apply(const borrowed *function, int at, PyObject *const *args, double factor, PyObject *out) {
    native_operand operands[PLAN_OPERANDS];
    for (int k = 0; k < function->inputs; k++) {
        const bool array = native_array_type(args[k]) == TYPE_F64;
        operands[k].array = array ? (PyArrayObject *)args[k] : NULL;
        if (!array && !(PyFloat_CheckExact(args[k]) && native_number(args[k], TYPE_F64, &operands[k])))
            return NULL;
    }
    const numpy_loop *loop = loop_of(function, &found[at], &tried[at]);
    native_plan plan;
    if (!loop || !native_plan_inputs(&plan, operands, function->inputs))
        return NULL;
    PyObject *made = native_plan_result(&plan, operands, TYPE_F64, out);
    if (made)
        native_plan_run(&plan, GRAIN, at == AT_digamma ? run_digamma : run_rows, &(borrowed_run){loop, function->mend, factor, function->inputs});
    return made;
}

#define ONE(name, own, mend) [AT_##name] = {"scipy.special", own, 1, mend},
#define TWO(name, own, mend) [AT_##name] = {"scipy.special", own, 2, mend},
static const borrowed FUNCTIONS[] = {OF_ONE(ONE) OF_TWO(TWO)[AT_zeta] = {"scipy.special._ufuncs", "_zeta", 2, mend_zeta}};

static PyObject *run_borrowed(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const int at = *(const int *)kernel->data;
    PyObject *out = NULL;
    if (nargs != FUNCTIONS[at].inputs || (kwnames && !native_options(args, nargs, kwnames, &out_name, 1, &out)))
        return NULL;
    return apply(&FUNCTIONS[at], at, args, 1, native_is_none(out) ? NULL : out);
}

/* Derivatives of digamma, of positive numbers by Hurwitz' zeta function. */
static PyObject *run_polygamma(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[2] = {NULL}, *const words[2] = {order_name, out_name};
    double order, factor = -1;
    if (nargs != 1 || !kwnames || native_array_type(args[0]) != TYPE_F64 ||
        !native_options(args, nargs, kwnames, words, 2, options) || !options[0] || !PyLong_CheckExact(options[0]) ||
        !native_double(options[0], &order) || !(order >= 0) || order > MOST_ORDER)
        return NULL;
    PyObject *out = native_is_none(options[1]) ? NULL : options[1];
    if (order == 0)
        return apply(&FUNCTIONS[AT_digamma], AT_digamma, args, 1, out);
    PyArrayObject *x = native_dense(args[0]);
    if (!x)
        return NULL;
    bool right = true;
    for (npy_intp i = 0; i < PyArray_SIZE(x); i++)
        right &= ((const double *)PyArray_DATA(x))[i] > 0;
    Py_DECREF(x);
    for (int k = 1; k <= (int)order; k++)
        factor *= -k;
    borrowed zeta = FUNCTIONS[AT_zeta];
    zeta.mend = NULL; /* at infinity there is nothing left */
    PyObject *both[2] = {right ? PyFloat_FromDouble(order + 1) : NULL, args[0]};
    PyObject *made = both[0] ? apply(&zeta, AT_zeta, both, factor, out) : NULL;
    Py_XDECREF(both[0]);
    return made;
}

int borrowed_init(void) {
    out_name = PyUnicode_InternFromString("out");
    order_name = PyUnicode_InternFromString("n");
    return out_name && order_name ? 0 : -1;
}

#define SPEC(name, own, mend) {#name "_beneath", run_borrowed, &(const int){AT_##name}, .ordered = true},

const native_spec borrowed_kernels[] = {
    OF_ONE(SPEC) OF_TWO(SPEC) SPEC(zeta, 0, 0)
    {"polygamma_beneath", run_polygamma, NULL, .ordered = true},
    {NULL, NULL, NULL},
};

/* Several ops in one pass: nests of loops whose steps run one after the other over blocks that stay in the first cache.

   A nest has a space of rows * width elements in row-major order. A value has one element for each place of the space,
   or, where `row` is set, one for each row: what a reduction over a row makes, and what is computed of such. */
#ifndef TENSORCORE_NATIVE_FUSED_H
#define TENSORCORE_NATIVE_FUSED_H

#include "native.h"

#define NO_IMPORT_UFUNC /* of its table of functions, which nothing here calls */
#include <numpy/ufuncobject.h>

#include "chain.h"

enum { FUSED_SOURCES = CHAIN_OPERANDS, FUSED_NUMBERS = 3 };

typedef enum {
    PLACE_LOADED,  /* where a load finds it: in an array or, gathered, in the scratch space at `at` */
    PLACE_SCRATCH, /* `at` bytes from the start of the thread's scratch space */
    PLACE_TABLE,   /* a row value of a nest of long rows, `at` bytes from the start of the nest's table */
    PLACE_ARRAY,   /* in the array of number `at`, which has the shape of the space or of its rows */
    PLACE_NUMBER,
} fused_place;

typedef struct {
    unsigned char place, type;
    bool row;
    npy_intp at;
    int64_t number;
} fused_value;

typedef enum {
    STEP_LOAD, STEP_COMPUTE, STEP_CAST, STEP_ACTIVATE, STEP_UFUNC, STEP_EXPAND, STEP_REDUCE, STEP_CHAIN, STEP_WRITTEN
} fused_kind;

typedef enum { REDUCE_SUM, REDUCE_MEAN, REDUCE_AMAX, REDUCE_AMIN, REDUCE_PROD, REDUCE_ANY, REDUCE_ALL } fused_reduction;

typedef struct {
    unsigned char kind, type; /* the type of its sources */
    bool row;                 /* runs once for each row */
    unsigned char sources, places, ops; /* how many; places are those of a chain or a written step, ops a chain's */
    int op;   /* of the elementwise or the activation loops; a fused_reduction; the number of a load's view */
    int made; /* of several places the last one */
    int source[FUSED_SOURCES], place[FUSED_SOURCES];
    chain_op chain[CHAIN_OPS];
    written_loop written;
    double numbers[FUSED_NUMBERS]; /* an activation's */
    PyUFuncGenericFunction loop;   /* NumPy's own, for STEP_UFUNC */
    void *loop_data;
} fused_step;

/* The steps between two reductions of long rows; a nest of short rows, or of none, has one. */
typedef struct {
    fused_step *steps, *row_steps; /* the latter run when the reductions of the phase have ended */
    int count, row_count;
    int first_partial, partials; /* reductions, counted through the nest */
} fused_phase;

typedef struct {
    int array;
    int aligned; /* the array's last dim is the space's dim before this one */
} fused_load;

typedef struct {
    int ndim, row_ndim; /* of the space; the first row_ndim are the rows' */
    npy_intp shape[NATIVE_DIMS];
    npy_intp rows, width, count;
    npy_intp block; /* elements at a time: at most a row, or whole rows where the row is no longer */
    npy_intp grain; /* elements that are worth a thread */
    npy_intp scratch, table; /* bytes */
    bool long_rows; /* rows are cut into blocks, and reduced in pieces */
    int partials;
    int value_count, load_count, phase_count;
    fused_value *values;
    fused_load *loads;
    fused_phase *phases;
} fused_nest;

/* An array as a load walks over it: dims merged where they lie behind one another, outermost first. */
typedef struct {
    char *data;
    int ndim;
    npy_intp shape[NATIVE_DIMS], steps[NATIVE_DIMS];
} fused_view;

int fused_run_init(void);

/* elementwise.c: for each op its number, how many operands it takes, whether it gives bools, and its types. */
PyObject *elementwise_describe(void);

/* activate.c: for each kernel how many operands it takes; and what one of them is with some options: false with an
   exception where it does not take them. */
PyObject *activate_describe(void);
bool activate_find(PyObject *name, PyObject *options, int *loop, double *numbers);

/* Runs a nest over the arrays; false where there is no memory. The GIL is let go where the work is worth a thread. */
bool fused_run(const fused_nest *nest, PyArrayObject *const *arrays);

#endif

/* What the families share: arrays, kernels with their fallbacks, options, instruction sets, threads. */
#ifndef TENSORCORE_NATIVE_H
#define TENSORCORE_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL tensorcore_native_arrays
#ifndef NATIVE_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include "types.h"

/* Kernels */

typedef struct native_kernel native_kernel;

/* Runs a kernel: natives and numbers in args[0..nargs), then the values of the options that kwnames names.
   Answers a new reference; or NULL with an exception; or NULL without one, which means "not for me": the
   NumPy kernel is then called with the same arguments. Nothing may have been written by then. */
typedef PyObject *(*native_run)(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

/* Of the kernels of a family, which know `out`, the place for a result: of none, and where one of some declines, the others are made to
   write there; what one of all declines is for NumPy, which knows it too. */
typedef enum { PLACES_NONE, PLACES_SOME, PLACES_ALL } native_places;

typedef struct {
    const char *name; /* of the kernel in the backend's table */
    native_run run;
    const void *data; /* the family's own */
    bool ordered;     /* whether its results lie as PyTorch's do, however the arguments lie */
    bool dense;       /* whether it declines arrays for their strides: it gets copies in row-major order then */
} native_spec;

struct native_kernel {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    native_run run;
    const void *data;
    PyObject *name;
    PyObject *fallback; /* the NumPy kernel */
    PyObject *lay;      /* puts results in order: called with result, arguments and options; NULL where they need none */
    bool ordered;       /* whether `run` does so itself */
    bool dense;         /* whether `run` declines arrays for their strides */
    native_places places;
    /* Whether `lay` keeps to row-major order, up to three dims alone, or to the order of the arguments: C does it where it can. */
    bool known, low, aligned;
    const char *rounds; /* what halves.c says of its results; NULL where half types are not for `run` */
    const struct native_moving *moves; /* what moves.c says of its arguments; NULL where it does more than move elements or add them up */
};

extern PyTypeObject native_kernel_type;

/* A kernel before another in Python, whose results `lay` puts in order unless they are `ordered`; NULL with an exception. */
PyObject *native_make_kernel(const native_spec *spec, PyObject *fallback, PyObject *lay, bool ordered, native_places places);
int native_kernel_init(void);

/* Makes Python's strings of the texts, but for those that are there: 0, or -1 with an exception. For what runs at a family's start. */
int native_intern(PyObject **names, const char *const *texts, int count);

/* Finds the options called names[0..count) (interned strings): values[i] is a borrowed reference, NULL where not
   given. Answers false where there is an option of any other name. */
bool native_options(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject *const *names, int count,
                    PyObject **values);

/* Whether the object is None or missing. */
static inline bool native_is_none(PyObject *object) { return !object || object == Py_None; }

/* Sizes or dims: a tuple or list of at most `most` ints; how many, -1 where it is something else. */
int native_sizes(PyObject *object, npy_intp *sizes, int most);

/* An int or a float as a double; false for anything else. */
bool native_double(PyObject *object, double *number);

/* Arrays */

#define NATIVE_DIMS 8 /* arrays of more go to NumPy */

/* The element type of an object that is exactly an ndarray, aligned and of native byte order, of at most NATIVE_DIMS
   dims; else TYPE_NONE. */
native_type native_array_type(PyObject *object);

/* The same of a dtype. */
native_type native_descr_type(PyObject *descr);

/* The logarithm of an element's size, which is 1, 2, 4 or 8 bytes. */
static inline int native_log_size(int size) { return size == 8 ? 3 : size / 2; }

/* The same of a dtype of tensorcore; TYPE_NONE with an exception, or without where it is another one. */
native_type native_dtype_type(PyObject *dtype);

/* The type of the parts of such a dtype's complex numbers; TYPE_NONE with an exception, or without where it is another one. */
native_type native_dtype_parts(PyObject *dtype);

/* The type of the parts of an array of complex numbers, TYPE_F32 or TYPE_F64; TYPE_NONE for anything else. */
native_type native_complex_type(PyObject *object);

/* As native_empty and native_empty_ordered, of complex numbers with parts of that type. */
PyArrayObject *native_empty_complex(int ndim, const npy_intp *shape, native_type type);
PyArrayObject *native_empty_complex_ordered(int ndim, const npy_intp *shape, native_type type, const int *axes);

/* An array with one dim more, of two elements that lie `step` bytes apart and have that type, which is taken over; the parts of complex
   numbers so; and complex numbers of such parts. New references to views of at most NATIVE_DIMS dims before. */
PyObject *native_with_pairs(PyArrayObject *x, PyArray_Descr *descr, npy_intp step);
PyObject *native_as_pairs(PyArrayObject *x, native_type type);
PyObject *native_of_pairs(PyArrayObject *pairs, native_type type);

int native_numpy_init(void);
int native_arrays_init(void);
PyObject *native_set_bfloat16(PyObject *module, PyObject *descr);

/* A new C-contiguous array of undefined values; NULL with an exception where there is no memory. */
PyArrayObject *native_empty(int ndim, const npy_intp *shape, native_type type);

/* As native_empty with the dims laid out in the order of `axes`, from the largest stride to the smallest. */
PyArrayObject *native_empty_ordered(int ndim, const npy_intp *shape, native_type type, const int *axes);

/* The next array that this thread makes of the type, shape and strides of one of those is that one, whose values are nothing until then;
   each is used once, and those of the last call no more. */
enum { NATIVE_PLACES = 8 };
void native_await(PyObject *const *places, Py_ssize_t count);

/* A new array of a shape and of a dtype of ours, of any kind: a function of the module. */
PyObject *native_allocate(PyObject *module, PyObject *const *args, Py_ssize_t nargs);

/* The dims of a dense array from the largest stride to the smallest as they should be: row-major, or in the order of the arguments
   that are arrays. False where that is for the rule in Python to say. */
bool native_kept_order(PyArrayObject *made, bool aligned, PyObject *const *args, Py_ssize_t nargs, int *axes);

/* Whether it has the strides of a dense array with its dims in that order; and those of its dims with more than one element. */
bool native_lies_so(PyArrayObject *made, const int *axes, bool *but_for_ones);

/* Copies the elements into another array of the same type and shape, and answers with that; NULL where it is not for such arrays. */
PyObject *native_copied_over(PyArrayObject *from, PyArrayObject *to);

/* Copies the elements to memory that has other strides; false where they are of no type that is known here, or with an exception. */
bool native_copied_into(PyArrayObject *from, char *to, const npy_intp *strides);

/* Whether the memory of two arrays has a byte in common; a cheap test of bounds, which may say yes too often. */
bool native_overlap(PyArrayObject *one, PyArrayObject *other);

/* Instruction sets */

typedef enum { ISA_PLAIN, ISA_AVX2, ISA_AVX512 } native_isa;

extern native_isa native_chosen_isa;

/* Takes up a set by name, or the best of this machine for NULL; -1 with an exception where there is no such set here. The
   families must pick their loops again then. */
int native_isa_set(const char *name);
PyObject *native_isa_name(void);
PyObject *native_is_intel(PyObject *module, PyObject *unused);

/* The family's loops for the chosen set: PICK(elementwise_loops) of what loops/elementwise.c calls ISA(elementwise_loops). */
#ifdef NATIVE_X86
#define DECLARE_LOOPS(type, name) extern const type name##_plain, name##_avx2, name##_avx512
#define PICK(name)                                            \
    (native_chosen_isa == ISA_AVX512 ? &name##_avx512         \
     : native_chosen_isa == ISA_AVX2 ? &name##_avx2           \
                                     : &name##_plain)
#else
#define DECLARE_LOOPS(type, name) extern const type name##_plain
#define PICK(name) (&name##_plain)
#endif

/* Threads */

typedef void (*native_body)(void *context, npy_intp begin, npy_intp end);

/* Runs body over [0, count) in pieces of at least `grain`, on as many threads as set_num_threads allows; each piece
   starts at a multiple of `grain`. Call it with the GIL. Up to one grain it runs here and keeps the GIL; over that it
   lets go of the GIL while it runs. The body touches no Python object, and may call this again (serially). */
void native_parallel(npy_intp count, npy_intp grain, native_body body, void *context);

/* The same for a body that may begin anywhere: what is more than a grain goes in pieces of a fourth of one, so that the threads end
   together. Of little more than three grains one of two threads had two. */
static inline npy_intp native_even_grain(npy_intp count, npy_intp grain) { return count > grain && grain > 3 ? grain / 4 : grain; }
void native_evenly(npy_intp count, npy_intp grain, native_body body, void *context);

/* The same for one that reads and writes so many bytes, each once and in order. */
void native_passing(npy_intp count, npy_intp grain, npy_intp bytes, native_body body, void *context);

/* native_parallel for such a body: one whose pieces start at multiples of `grain`. */
void native_blocks(npy_intp count, npy_intp grain, npy_intp bytes, native_body body, void *context);

/* Lets go of the GIL while body(context, 0, count) runs, which may call native_parallel as if it had it. */
void native_without_gil(npy_intp count, native_body body, void *context);

/* How many threads that would use at most. */
int native_threads(void);

/* How many grains of a loop that many threads take at a time. */
npy_intp native_step(npy_intp grains, npy_intp threads);

int native_threads_init(void);
PyObject *native_set_threads(PyObject *module, PyObject *count);
PyObject *native_get_threads(PyObject *module, PyObject *unused);

/* Memory for a kernel's own use, on a cache line: from the cached blocks of memory.c where it is large, and given back with
   the size that was asked for. NULL where there is none; from any thread. */
enum { NATIVE_CACHED = 1 << 18 };
void *native_scratch(size_t size);
void native_scratch_free(void *data, size_t size);

/* A new array of `size` bytes whose memory begins at a cache line, from the cached blocks of memory.c where it is large; takes
   the reference to the dtype. */
enum { NATIVE_LINES = 1 << 11 }; /* bytes from which on new_array asks for that */
PyArrayObject *native_memory_array(PyArray_Descr *descr, int ndim, const npy_intp *shape, const npy_intp *strides, size_t size);

int native_memory_init(void);
PyObject *native_memory_statistics(PyObject *module, PyObject *unused);
PyObject *native_memory_reset_peaks(PyObject *module, PyObject *unused);
PyObject *native_memory_empty_cache(PyObject *module, PyObject *unused);
PyObject *native_memory_limit(PyObject *module, PyObject *bytes);

/* Another library's matrix products: functions of the module, see blas.h. */
PyObject *native_blas_finder(PyObject *module, PyObject *function);
PyObject *native_blas_load(PyObject *module, PyObject *path);
PyObject *native_blas_unload(PyObject *module, PyObject *unused);
PyObject *native_blas_in_use(PyObject *module, PyObject *unused);

/* Products of floats by thirds: a function of the module, see thirds.h. */
PyObject *native_thirds(PyObject *module, PyObject *wanted);

/* LAPACK's routines: a function of the module, see lapack.h. */
PyObject *native_lapack_finder(PyObject *module, PyObject *function);

/* Where arrays lie, see layout.c: functions of the module, and the array whose memory x shows, which is the end of the chain
   of bases that are arrays. */
PyObject *native_strides(PyObject *module, PyObject *x);
PyObject *native_layout(PyObject *module, PyObject *x);
PyObject *native_data_pointer(PyObject *module, PyObject *x);
PyObject *native_is_contiguous(PyObject *module, PyObject *x);
PyArrayObject *native_owner(PyArrayObject *x);

/* Families: each has a table that ends with a NULL name, and a function that fills what it needs once. */

extern const native_spec elementwise_kernels[]; /* their results lie as PyTorch's do */
int elementwise_init(void);
extern const native_spec conv_kernels[];
int conv_init(void);
PyObject *native_conv_measures(PyObject *module, PyObject *wanted);
PyObject *native_conv_way(PyObject *module, PyObject *name);
PyObject *native_conv_choices(PyObject *module, PyObject *unused);

extern const native_spec cast_kernels[];
int cast_init(void);

int plan_init(void); /* no kernels of their own: what the others share */
int one_row_init(void);
int rows_init(void);

extern const native_spec softmax_kernels[];
int softmax_init(void);

extern const native_spec entropy_kernels[];
int entropy_init(void);

extern const native_spec losses_kernels[];
int losses_init(void);

extern const native_spec pool_kernels[];
int pool_init(void);
extern const native_spec reduce_kernels[];
int reduce_init(void);

extern const native_spec reduce_integers_kernels[];
int reduce_integers_init(void);

extern const native_spec gemm_kernels[];
int gemm_init(void);

extern const native_spec recurrent_kernels[];
int recurrent_init(void);

extern const native_spec attention_kernels[];
int attention_init(void);

extern const native_spec index_kernels[];
int index_init(void);

extern const native_spec at_kernels[];
int at_init(void);

extern const native_spec view_kernels[];
int view_init(void);

extern const native_spec fill_kernels[];
int fill_init(void);

extern const native_spec borrowed_kernels[];
int borrowed_init(void);

extern const native_spec edges_kernels[];
int edges_init(void);

extern const native_spec blend_kernels[];
int blend_init(void);

extern const native_spec norm_kernels[];
int norm_init(void);
extern const native_spec statistics_kernels[];
int statistics_init(void);

extern const native_spec optim_kernels[];
int optim_init(void);

int random_init(void); /* no kernels: functions of the module */
PyObject *native_drawing(PyObject *module, PyObject *method);
PyObject *native_random(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *native_rejections(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *native_serial_normals(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *native_multinomial(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *native_overwrite_random(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *native_overwrite_normals(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *native_draw_over(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

extern const native_spec scatter_kernels[];
int scatter_init(void);

extern const native_spec embedding_kernels[];
int embedding_init(void);

extern const native_spec topk_kernels[];
int topk_init(void);

extern const native_spec triangles_kernels[];
int triangles_init(void);

extern const native_spec activate_kernels[];
int activate_init(void);

extern const native_spec nonzero_kernels[];
int nonzero_init(void);

extern const native_spec place_kernels[];
int place_init(void);

extern const native_spec sort_kernels[];
int sort_init(void);

extern const native_spec formulas_kernels[];
int formulas_init(void);

extern const native_spec norms_kernels[];
int norms_init(void);

extern const native_spec lines_kernels[];
int lines_init(void);

extern const native_spec mode_kernels[];
int mode_init(void);

extern const native_spec sample_kernels[];
int sample_init(void);

extern const native_spec boxes_kernels[];
int boxes_init(void);

extern const native_spec bins_kernels[];
int bins_init(void);

extern const native_spec renorm_kernels[], distinct_kernels[], unique_kernels[];
int renorm_init(void);
int distinct_init(void);
int unique_init(void);

extern const native_spec columns_kernels[];
int columns_init(void);

extern const native_spec flat_kernels[];
int flat_init(void);

extern const native_spec counts_kernels[];
int counts_init(void);

extern const native_spec segments_kernels[];
int segments_init(void);

extern const native_spec sparse_kernels[];
int sparse_init(void);

extern const native_spec sparse_both_kernels[];
int sparse_both_init(void);

extern const native_spec sparse_softmax_kernels[];
int sparse_softmax_init(void);

extern const native_spec sparse_order_kernels[];
int sparse_order_init(void);

extern const native_spec ctc_kernels[];
int ctc_init(void);

extern const native_spec row_pairs_kernels[];
int row_pairs_init(void);

extern const native_spec margins_kernels[];
int margins_init(void);
extern const native_spec lapack_solve_kernels[], lapack_values_kernels[], lapack_factors_kernels[], lapack_squares_kernels[],
    lapack_reflections_kernels[], lapack_eigen_kernels[], lapack_triangular_kernels[];
int lapack_init(void);

extern const native_spec complex_numbers_kernels[];
int complex_numbers_init(void);

extern const native_spec complex_reductions_kernels[];
int complex_reductions_init(void);

extern const native_spec distance_gradients_kernels[];
int distance_gradients_init(void);

extern const native_spec complex_formulas_kernels[];
int complex_formulas_init(void);

extern const native_spec division_kernels[];
int division_init(void);

extern const native_spec scans_kernels[];
int scans_init(void);

extern const native_spec quantized_kernels[];

extern const native_spec picks_kernels[];
int picks_init(void);

extern const native_spec fft_kernels[];
int fft_init(void);

extern const native_spec compare_kernels[];
int compare_init(void);

int fused_init(void); /* no kernels: these functions of the module */
PyObject *native_fuse(PyObject *module, PyObject *args);
PyObject *native_fusible(PyObject *module, PyObject *unused);

#endif

/* Arrays in row-major order over neighbouring dims: all, the last ones, the first ones, some between; and over the first and the
   last ones around others. */
#include "folds.h"

#include "cast.h"
#include "one_row.h"
#include "rows.h"
#include "turn.h"

DECLARE_LOOPS(cast_loops, cast_loops);
DECLARE_LOOPS(turn_loops, turn_loops);

enum { GRAIN = 1 << 15 }; /* elements: what one piece of a long row holds, and a reason for a second thread */
enum { MANY = 64, BLOCK = 8, NEAR = 128 }; /* rows that are turned over at least, elements of a row that are turned over fast, rows near */
enum { LONG = 128 }; /* elements of rows that are apart: shorter ones are turned over, or copied */
enum { TOGETHER = 128 }; /* rows that a loop over columns takes together, see loops/sums.h: eight times as many as a vector has lanes */

static npy_intp multiple(npy_intp count, npy_intp of) { return (count + of - 1) / of * of; }

/* Whether the array is dense in some order of its dims, the largest step first. */
static bool dense_order(PyArrayObject *array, int *axes) {
    const int ndim = PyArray_NDIM(array);
    npy_intp step = PyArray_ITEMSIZE(array);
    for (int i = 0; i < ndim; i++)
        axes[i] = i;
    if (PyArray_IS_C_CONTIGUOUS(array))
        return true;
    for (int i = 1; i < ndim; i++) {
        int j = i;
        for (; j && PyArray_STRIDE(array, axes[j - 1]) < PyArray_STRIDE(array, i); j--)
            axes[j] = axes[j - 1];
        axes[j] = i;
    }
    for (int n = ndim - 1; n >= 0; n--) {
        if (PyArray_DIM(array, axes[n]) != 1 && PyArray_STRIDE(array, axes[n]) != step)
            return false;
        step *= PyArray_DIM(array, axes[n]);
    }
    return true;
}

/* Which dims of the fold's array are reduced, and the result's shape; all sizes become 1. */
static bool read_dims(native_fold *made, PyObject *dim, PyObject *keepdim, bool *reduced) {
    const int ndim = PyArray_NDIM(made->array);
    const bool keep = keepdim && PyObject_IsTrue(keepdim) == 1, all = native_is_none(dim);
    for (int i = 0; i < ndim; i++)
        reduced[i] = all;
    if (!all) {
        bool tuple = PyTuple_CheckExact(dim);
        Py_ssize_t given = tuple ? PyTuple_GET_SIZE(dim) : 1;
        for (Py_ssize_t k = 0; k < given; k++) {
            PyObject *one = tuple ? PyTuple_GET_ITEM(dim, k) : dim;
            if (!PyLong_CheckExact(one))
                return false;
            long i = PyLong_AsLong(one);
            if (!native_has_dim(made->array, i)) {
                PyErr_Clear();
                return false;
            }
            reduced[i] = true;
        }
        if (!given)
            return false;
    }
    made->front = made->outer = made->count = made->inner = 1;
    made->row = made->step = 0;
    made->ndim = 0;
    for (int i = 0; i < ndim; i++)
        if (!reduced[i] || keep)
            made->shape[made->ndim++] = reduced[i] ? 1 : PyArray_DIM(made->array, i);
    return true;
}

bool native_fold_around(native_fold *made, PyObject *object, native_type type, PyObject *dim, PyObject *keepdim) {
    int axes[NATIVE_DIMS], kept = -1;
    bool reduced[NATIVE_DIMS], begun = false, ended = false;
    made->type = type;
    made->array = (PyArrayObject *)object;
    if (type == TYPE_NONE || !PyArray_SIZE(made->array) || !dense_order(made->array, axes) || !read_dims(made, dim, keepdim, reduced))
        return false;
    for (int n = 0; n < PyArray_NDIM(made->array); n++) {
        const int i = axes[n];
        npy_intp size = PyArray_DIM(made->array, i);
        if (size == 1)
            continue;
        if ((!reduced[i] && i < kept) || (reduced[i] ? ended && (made->front > 1 || made->outer > 1) : made->front > 1))
            return false;
        kept = reduced[i] ? kept : i;
        if (reduced[i] && ended) { /* what was reduced stands before what is kept */
            made->front = made->count;
            made->outer = made->inner;
            made->count = made->inner = 1;
            ended = false;
        }
        begun |= reduced[i];
        ended |= begun && !reduced[i];
        *(reduced[i] ? &made->count : begun ? &made->inner : &made->outer) *= size;
    }
    return true;
}

bool native_fold_apart(native_fold *made, PyObject *object, native_type type, PyObject *dim, PyObject *keepdim, npy_intp few) {
    bool reduced[NATIVE_DIMS];
    made->type = type;
    made->array = (PyArrayObject *)object;
    if (type == TYPE_NONE || !PyArray_SIZE(made->array) || !PyArray_ISALIGNED(made->array) || !read_dims(made, dim, keepdim, reduced))
        return false;
    for (int i = PyArray_NDIM(made->array) - 1; i >= 0; i--) {
        const npy_intp size = PyArray_DIM(made->array, i), stride = PyArray_STRIDE(made->array, i);
        if (size == 1)
            continue;
        if (reduced[i] ? made->count > 1 : made->outer > 1 && stride != made->row * made->outer)
            return false;
        if (reduced[i])
            made->step = stride;
        else if (made->outer == 1)
            made->row = stride;
        *(reduced[i] ? &made->count : &made->outer) *= size;
    }
    return made->step && made->count <= few && made->outer >= MANY;
}

bool native_fold_slices(native_fold *made, PyObject *object, native_type type, PyObject *dim, PyObject *keepdim) {
    PyArrayObject *const array = made->array = (PyArrayObject *)object;
    bool reduced[NATIVE_DIMS];
    made->type = type;
    if (type == TYPE_NONE || !PyArray_SIZE(array) || !PyArray_ISALIGNED(array) || !read_dims(made, dim, keepdim, reduced))
        return false;
    int i = PyArray_NDIM(array) - 1;
    for (; i >= 0 && (PyArray_DIM(array, i) == 1 || (reduced[i] && PyArray_STRIDE(array, i) == made->count * TYPE_SIZE[type])); i--)
        made->count *= PyArray_DIM(array, i);
    const bool all = i >= 0 && reduced[i];
    npy_intp *const rows = all ? &made->front : &made->outer;
    for (; i >= 0; i--) {
        const npy_intp size = PyArray_DIM(array, i), stride = PyArray_STRIDE(array, i);
        if (size == 1)
            continue;
        if (reduced[i] != all || !stride || (*rows > 1 && stride != made->row * *rows))
            return false;
        made->row = *rows > 1 ? made->row : stride;
        *rows *= size;
    }
    return made->count >= LONG && made->row;
}

bool native_fold_copied(native_fold *made, PyObject *object, native_type type, PyObject *dim, PyObject *keepdim) {
    PyArrayObject *const array = (PyArrayObject *)object;
    bool reduced[NATIVE_DIMS];
    npy_intp order[NATIVE_DIMS];
    int placed = 0;
    made->type = type;
    made->array = array;
    if (type == TYPE_NONE || !PyArray_SIZE(array) || !read_dims(made, dim, keepdim, reduced))
        return false;
    for (int kind = 0; kind < 2; kind++)
        for (int i = 0; i < PyArray_NDIM(array); i++)
            if (reduced[i] == kind)
                *(kind ? &made->count : &made->outer) *= PyArray_DIM(array, order[placed++] = i);
    PyArrayObject *turned = (PyArrayObject *)PyArray_Transpose(array, &(PyArray_Dims){order, placed});
    made->array = turned ? native_copied(turned, type) : NULL;
    Py_XDECREF(turned);
    return made->array;
}

bool native_folded(native_fold *made, PyObject *object, native_type type, PyObject *dim, PyObject *keepdim) {
    return type != TYPE_NONE && PyArray_IS_C_CONTIGUOUS((PyArrayObject *)object) &&
           native_fold_around(made, object, type, dim, keepdim) && made->front == 1;
}

/* Elements of a short row as it is turned over: of five to seven there are eight, but for those of 8 bytes, which go by four. */
static npy_intp padded(const native_fold *of) {
    return of->count > BLOCK / 2 && of->count < BLOCK && TYPE_SIZE[of->type] < 8 ? BLOCK : of->count;
}

/* Many short rows, so many at a time. */
static bool turn_rows(native_cut *cut, const native_fold *of, npy_intp strip, npy_intp few) {
    const npy_intp rows = of->front * of->outer, fit = TURNED_BYTES / (padded(of) * TYPE_SIZE[of->type]);
    if (of->inner > 1 || of->count < 2 || of->count > few || rows < MANY)
        return false;
    const npy_intp turned = fit < strip ? fit / 8 * 8 : strip, grain = GRAIN / (turned * of->count);
    *cut = (native_cut){.pieces = 1, .length = of->count, .strips = 1, .turned = turned, .units = (rows + turned - 1) / turned,
                        .grain = grain > 0 ? grain : 1};
    return true;
}

native_cut native_cut_fold(const native_fold *of, npy_intp strip, npy_intp few) {
    const npy_intp rows = GRAIN / of->inner < 256 ? 256 : GRAIN / of->inner; /* of a piece */
    native_cut cut = {.strips = (of->inner + strip - 1) / strip, .pieces = (of->count + rows - 1) / rows};
    if (turn_rows(&cut, of, strip, few))
        return cut;
    /* Alike, so that two threads take as long; from a line of the cache to another where elements lie in a row, else of as
       many rows as are added at once, or of those that are taken together too where that is about the same. */
    const npy_intp least = (of->count + cut.pieces - 1) / cut.pieces;
    const npy_intp even = multiple(least, of->inner == 1 ? 64 : 8), more = multiple(least, TOGETHER);
    cut.length = of->inner > 1 && (more - even) * 16 <= even ? more : even;
    cut.pieces = (of->count + cut.length - 1) / cut.length;
    const npy_intp length = of->count < cut.length ? of->count : cut.length, width = of->inner < strip ? of->inner : strip;
    cut.units = of->front * of->outer * cut.pieces * cut.strips;
    cut.grain = GRAIN / (length * width) > 0 ? GRAIN / (length * width) : 1;
    return cut;
}

npy_intp native_turned_rows(const native_fold *of, const native_cut *cut, npy_intp first, char *tile) {
    const npy_intp left = of->front * of->outer - first, rows = left < cut->turned ? left : cut->turned;
    const int size = TYPE_SIZE[of->type];
    const npy_intp row = of->count * size, wide = padded(of), whole = wide * size;
    const char *from = PyArray_BYTES(of->array) + first * row;
    const turn_loop turn = PICK(turn_loops)->turn[native_log_size(size)];
    if (of->step == size && of->count >= BLOCK) {
        turn(PyArray_BYTES(of->array) + first * of->row, of->row, tile, rows * size, of->count, rows);
    } else if (of->step) {
        const ptrdiff_t steps[] = {of->row, size};
        const native_loop copy = PICK(cast_loops)->cast[of->type][of->type];
        for (npy_intp done = 0, few; done < rows; done += few) { /* lines of the cache that hold several elements are used while near */
            few = rows - done < NEAR ? rows - done : NEAR;
            for (npy_intp k = 0; k < of->count; k++) {
                char *const data[] = {PyArray_BYTES(of->array) + (first + done) * of->row + k * of->step, tile + (k * rows + done) * size};
                copy(data, steps, few);
            }
        }
    } else if (wide == of->count) {
        turn(from, row, tile, rows * size, wide, rows);
    } else {
        char room[TURNED_BYTES + SPREAD_VECTOR];
        native_spread(size)(from, row, size, room, whole, rows, of->count);
        turn(room, whole, tile, rows * size, wide, rows);
    }
    return rows;
}

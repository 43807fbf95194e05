/* Indices drawn by weight, bit for bit as tensorcore.backend.weighted. */
#include "random.h"

#include "cast.h"
#include "halves.h"
#include "rows.h"

#include <float.h>
#include <string.h>

DECLARE_LOOPS(random_loops, random_loops);
DECLARE_LOOPS(cast_loops, cast_loops);

/* How many rows of so many numbers are drawn at a time. */
static npy_intp rows_drawn(npy_intp columns) { return columns < 1024 ? 1024 / columns : 1; }

/* Floats that stand for halves to those. */
static void round_floats(float *x, npy_intp count, native_type half) {
    enum { PIECE = 512 };
    uint16_t some[PIECE];
    for (npy_intp begin = 0; native_is_half(half) && begin < count; begin += PIECE) {
        const npy_intp piece = count - begin < PIECE ? count - begin : PIECE;
        char *const ends[3] = {(char *)(x + begin), (char *)some, (char *)(x + begin)};
        PICK(cast_loops)->cast[TYPE_F32][half](ends, (const ptrdiff_t[]){sizeof *x, sizeof *some}, piece);
        PICK(cast_loops)->cast[half][TYPE_F32](ends + 1, (const ptrdiff_t[]){sizeof *some, sizeof *x}, piece);
    }
}

/* The places of the `count` largest of each row's weights over what is drawn, the largest first, and of equal ones the lower
   place; 0 over 0 is the least. `drawn` and `best` are room for rows_drawn(columns) rows and for `count`. */
static void choose(twister_state *state, const float *weights, native_type given, npy_intp rows, npy_intp columns, npy_intp count,
                   float *drawn, float *best, int64_t *places) {
    const npy_intp most = rows_drawn(columns);
    const float *ratio = drawn;
    for (npy_intp row = 0; row < rows; row++, ratio += columns, places += count) {
        if (row % most == 0) {
            const npy_intp together = (rows - row < most ? rows - row : most) * columns;
            PICK(random_loops)->exponential_f32(state, drawn, together, -1.0);
            round_floats(drawn, together, given);
            for (npy_intp i = 0; i < together; i++)
                drawn[i] = weights[row * columns + i] / drawn[i];
            round_floats(drawn, together, given);
            ratio = drawn;
        }
        npy_intp held = 0;
        for (npy_intp i = 0; i < columns; i++) {
            const float value = ratio[i] >= 0 ? ratio[i] : -1.0f;
            if (held == count && !(value > best[count - 1]))
                continue;
            npy_intp at = held < count ? held++ : count - 1;
            for (; at && value > best[at - 1]; at--) {
                best[at] = best[at - 1];
                places[at] = places[at - 1];
            }
            best[at] = value;
            places[at] = i;
        }
    }
}

/* Whether all weights are at least 0 and finite, and some weight of each row is above 0; and the largest. By their bits, which are in
   the order of such numbers, and of others larger. */
static bool weighty(const float *weights, npy_intp rows, npy_intp columns, float *largest) {
    const float finite = FLT_MAX;
    uint32_t limit, least = UINT32_MAX, highest = 0;
    memcpy(&limit, &finite, sizeof limit);
    for (npy_intp row = 0; row < rows; row++, weights += columns) {
        uint32_t most = 0;
        for (npy_intp i = 0; i < columns; i++) {
            const float weight = weights[i] + 0.0f; /* makes of both zeros one */
            uint32_t bits;
            memcpy(&bits, &weight, sizeof bits);
            most = bits > most ? bits : most;
        }
        least = most < least ? most : least;
        highest = most > highest ? most : highest;
    }
    memcpy(largest, &highest, sizeof highest);
    return least > 0 && highest <= limit;
}

/* How many of the numbers, none of which is below the one before it, are below u. */
static npy_intp count_below(const float *numbers, npy_intp count, double u) {
    enum { FEW = 32 }; /* up to which all are looked at */
    npy_intp below = 0;
    if (count <= FEW) {
        for (npy_intp i = 0; i < count; i++)
            below += numbers[i] < u;
        return below;
    }
    for (npy_intp left = count; left > 0;) {
        const npy_intp half = left / 2;
        const bool further = numbers[below + half] < u;
        below = further ? below + half + 1 : below;
        left = further ? left - half - 1 : half;
    }
    return below;
}

/* Places of each row's running sums that uniform numbers fall on. `sums` and `uniforms` are room for a row and for rows_drawn(count)
   of `count`. */
static void choose_again(twister_state *state, const float *weights, npy_intp rows, npy_intp columns, npy_intp count, float *sums,
                         double *uniforms, int64_t *places) {
    const npy_intp most = rows_drawn(count);
    for (npy_intp row = 0; row < rows; row++, weights += columns, places += count) {
        float sum = 0;
        if (row % most == 0)
            PICK(random_loops)->uniform_f64(state, uniforms, (rows - row < most ? rows - row : most) * count, 0, 1);
        for (npy_intp i = 0; i < columns; i++)
            sums[i] = sum += weights[i];
        for (npy_intp i = 0; i < columns; i++)
            sums[i] /= sum;
        sums[columns - 1] = 1;
        for (npy_intp k = 0; k < count; k++)
            places[k] = count_below(sums, columns, uniforms[row % most * count + k]);
    }
}

/* (capsule, weights, count, replacement) -> places drawn of each row; None where these are not drawn here. */
static PyObject *chosen(PyObject *const *args, native_type given) {
    enum { FEW = 64 };
    const npy_intp count = PyLong_AsSsize_t(args[2]);
    const bool again = args[3] == Py_True && count > 1;
    if (native_real_type(args[1]) != TYPE_F32 || count < 1 || count > (again ? 1 << 24 : FEW)) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    PyArrayObject *x = (PyArrayObject *)args[1];
    const int ndim = PyArray_NDIM(x);
    const npy_intp columns = ndim ? PyArray_DIM(x, ndim - 1) : 0, rows = ndim == 2 ? PyArray_DIM(x, 0) : 1;
    const float *weights = PyArray_DATA(x);
    float largest;
    if (ndim < 1 || ndim > 2 || !PyArray_IS_C_CONTIGUOUS(x) || !rows || !columns || (columns < count && !again) || columns > 1 << 24 ||
        !weighty(weights, rows, columns, &largest) || (again && largest > FLT_MAX / (float)(2 * columns))) /* no sum is infinite */
        Py_RETURN_NONE;
    const bit_generator *generator = PyCapsule_GetPointer(args[0], "BitGenerator");
    if (!generator)
        return NULL;
    const npy_intp shape[2] = {ndim == 2 ? rows : count, count};
    const size_t numbers = (size_t)(columns * (again ? 1 : rows_drawn(columns))) * sizeof(float), sums = (numbers + 63) & ~(size_t)63;
    const size_t bytes = sums + (again ? (size_t)(count * rows_drawn(count)) * sizeof(double) : 0);
    PyArrayObject *made = native_empty(ndim, shape, TYPE_I64);
    char *room = native_scratch(bytes);
    float *drawn = (float *)room, best[FEW];
    if (!made || !room) {
        Py_XDECREF(made);
        native_scratch_free(room, bytes);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    PyThreadState *thread = rows * (columns + count) < MANY ? NULL : PyEval_SaveThread();
    if (again)
        choose_again(generator->state, weights, rows, columns, count, drawn, (double *)(room + sums), PyArray_DATA(made));
    else
        choose(generator->state, weights, given, rows, columns, count, drawn, best, PyArray_DATA(made));
    if (thread)
        PyEval_RestoreThread(thread);
    native_scratch_free(room, bytes);
    return (PyObject *)made;
}

/* Weights of a half type are as floats what they are; a draw for each and their quotients are rounded to it. */
PyObject *native_multinomial(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 4 || !PyCapsule_CheckExact(args[0]) || !PyLong_CheckExact(args[2]))
        return PyErr_Format(PyExc_TypeError, "multinomial: expected a capsule, an array, an int and a bool, got %zd arguments", nargs);
    const native_type given = native_array_type(args[1]);
    if (!native_is_half(given))
        return chosen(args, given);
    PyObject *wide[] = {args[0], native_converted((PyArrayObject *)args[1], given, TYPE_F32), args[2], args[3]};
    PyObject *made = wide[1] ? chosen(wide, given) : NULL;
    Py_XDECREF(wide[1]);
    return made;
}

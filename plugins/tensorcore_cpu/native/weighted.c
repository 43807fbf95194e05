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
static void round_f32(float *x, npy_intp count, native_type half) {
    enum { PIECE = 512 };
    uint16_t some[PIECE];
    for (npy_intp begin = 0; native_is_half(half) && begin < count; begin += PIECE) {
        const npy_intp piece = count - begin < PIECE ? count - begin : PIECE;
        char *const ends[3] = {(char *)(x + begin), (char *)some, (char *)(x + begin)};
        PICK(cast_loops)->cast[TYPE_F32][half](ends, (const ptrdiff_t[]){sizeof *x, sizeof *some}, piece);
        PICK(cast_loops)->cast[half][TYPE_F32](ends + 1, (const ptrdiff_t[]){sizeof *some, sizeof *x}, piece);
    }
}

/* No half is held in doubles. */
static void round_f64(double *x, npy_intp count, native_type half) {}

/* For weights of a type: `uint` is an unsigned type as wide as `real`, `most_real` its largest number. */
#define WEIGHTED(suffix, real, uint, most_real)                                                               \
    /* The places of the `count` largest of each row's weights over what is drawn, the largest first, and of equal ones\
       the lower place; 0 over 0 is the least. `drawn` and `best` are room for rows_drawn(columns) rows and `count`. */\
    static void choose_##suffix(twister_state *state, const real *weights, native_type given, npy_intp rows,  \
                                npy_intp columns, npy_intp count, real *drawn, real *best, int64_t *places) { \
        const npy_intp most = rows_drawn(columns);                                                            \
        const real *ratio = drawn;                                                                            \
        for (npy_intp row = 0; row < rows; row++, ratio += columns, places += count) {                        \
            if (row % most == 0) {                                                                            \
                const npy_intp together = (rows - row < most ? rows - row : most) * columns;                  \
                PICK(random_loops)->exponential_##suffix(state, drawn, together, -1.0);                       \
                round_##suffix(drawn, together, given);                                                       \
                for (npy_intp i = 0; i < together; i++)                                                       \
                    drawn[i] = weights[row * columns + i] / drawn[i];                                         \
                round_##suffix(drawn, together, given);                                                       \
                ratio = drawn;                                                                                \
            }                                                                                                 \
            npy_intp held = 0;                                                                                \
            for (npy_intp i = 0; i < columns; i++) {                                                          \
                const real value = ratio[i] >= 0 ? ratio[i] : -1;                                             \
                if (held == count && !(value > best[count - 1]))                                              \
                    continue;                                                                                 \
                npy_intp at = held < count ? held++ : count - 1;                                              \
                for (; at && value > best[at - 1]; at--) {                                                    \
                    best[at] = best[at - 1];                                                                  \
                    places[at] = places[at - 1];                                                              \
                }                                                                                             \
                best[at] = value;                                                                             \
                places[at] = i;                                                                               \
            }                                                                                                 \
        }                                                                                                     \
    }                                                                                                         \
                                                                                                              \
    /* By how much the largest of all weights may be multiplied; 0 where some are not at least 0 and finite, or where a\
       row has none above 0. By their bits, which are in the order of such numbers, and of others larger. */  \
    static double weighty_##suffix(const real *weights, npy_intp rows, npy_intp columns) {                    \
        const real finite = most_real;                                                                        \
        real largest;                                                                                         \
        uint limit, least = (uint)-1, highest = 0;                                                            \
        memcpy(&limit, &finite, sizeof limit);                                                                \
        for (npy_intp row = 0; row < rows; row++, weights += columns) {                                       \
            uint most = 0;                                                                                    \
            for (npy_intp i = 0; i < columns; i++) {                                                          \
                const real weight = weights[i] + 0; /* makes of both zeros one */                             \
                uint bits;                                                                                    \
                memcpy(&bits, &weight, sizeof bits);                                                          \
                most = bits > most ? bits : most;                                                             \
            }                                                                                                 \
            least = most < least ? most : least;                                                              \
            highest = most > highest ? most : highest;                                                        \
        }                                                                                                     \
        memcpy(&largest, &highest, sizeof highest);                                                           \
        return least > 0 && highest <= limit ? (double)most_real / (double)largest : 0;                       \
    }                                                                                                         \
                                                                                                              \
    /* How many of the numbers, none of which is below the one before it, are below u. */                     \
    static npy_intp count_below_##suffix(const real *numbers, npy_intp count, double u) {                     \
        enum { ALL = 32 }; /* up to which all are looked at */                                                \
        npy_intp below = 0;                                                                                   \
        if (count <= ALL) {                                                                                   \
            for (npy_intp i = 0; i < count; i++)                                                              \
                below += numbers[i] < u;                                                                      \
            return below;                                                                                     \
        }                                                                                                     \
        for (npy_intp left = count; left > 0;) {                                                              \
            const npy_intp half = left / 2;                                                                   \
            const bool further = numbers[below + half] < u;                                                   \
            below = further ? below + half + 1 : below;                                                       \
            left = further ? left - half - 1 : half;                                                          \
        }                                                                                                     \
        return below;                                                                                         \
    }                                                                                                         \
                                                                                                              \
    /* Places of each row's running sums that uniform numbers fall on. `sums` and `uniforms` are room for a row and for\
       rows_drawn(count) of `count`. */                                                                       \
    static void choose_again_##suffix(twister_state *state, const real *weights, npy_intp rows, npy_intp columns,\
                                      npy_intp count, real *sums, double *uniforms, int64_t *places) {        \
        const npy_intp most = rows_drawn(count);                                                              \
        for (npy_intp row = 0; row < rows; row++, weights += columns, places += count) {                      \
            real sum = 0;                                                                                     \
            if (row % most == 0)                                                                              \
                PICK(random_loops)->uniform_f64(state, uniforms, (rows - row < most ? rows - row : most) * count, 0, 1); \
            for (npy_intp i = 0; i < columns; i++)                                                            \
                sums[i] = sum += weights[i];                                                                  \
            for (npy_intp i = 0; i < columns; i++)                                                            \
                sums[i] /= sum;                                                                               \
            sums[columns - 1] = 1;                                                                            \
            for (npy_intp k = 0; k < count; k++)                                                              \
                places[k] = count_below_##suffix(sums, columns, uniforms[row % most * count + k]);            \
        }                                                                                                     \
    }
WEIGHTED(f32, float, uint32_t, FLT_MAX)
WEIGHTED(f64, double, uint64_t, DBL_MAX)

/* (capsule, weights, count, replacement) -> places drawn of each row; None where these are not drawn here. */
static PyObject *chosen(PyObject *const *args, native_type given) {
    enum { FEW = 64 };
    const npy_intp count = PyLong_AsSsize_t(args[2]);
    const bool again = args[3] == Py_True && count > 1;
    const native_type type = native_real_type(args[1]);
    if (type == TYPE_NONE || count < 1 || count > (again ? 1 << 24 : FEW)) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    PyArrayObject *x = (PyArrayObject *)args[1];
    const int ndim = PyArray_NDIM(x);
    const npy_intp columns = ndim ? PyArray_DIM(x, ndim - 1) : 0, rows = ndim == 2 ? PyArray_DIM(x, 0) : 1;
    const void *weights = PyArray_DATA(x);
    const bool wide = type == TYPE_F64;
    const size_t size = wide ? sizeof(double) : sizeof(float);
    double limit;
    if (ndim < 1 || ndim > 2 || !PyArray_IS_C_CONTIGUOUS(x) || !rows || !columns || (columns < count && !again) || columns > 1 << 24 ||
        !(limit = wide ? weighty_f64(weights, rows, columns) : weighty_f32(weights, rows, columns)) ||
        (again && !(limit > 2 * columns))) /* no sum is infinite */
        Py_RETURN_NONE;
    const bit_generator *generator = PyCapsule_GetPointer(args[0], "BitGenerator");
    if (!generator)
        return NULL;
    const npy_intp shape[2] = {ndim == 2 ? rows : count, count};
    const size_t numbers = (size_t)(columns * (again ? 1 : rows_drawn(columns))) * size, sums = (numbers + 63) & ~(size_t)63;
    const size_t bytes = sums + (again ? (size_t)(count * rows_drawn(count)) * sizeof(double) : 0);
    PyArrayObject *made = native_empty(ndim, shape, TYPE_I64);
    char *room = native_scratch(bytes);
    float best[FEW];
    double wider[FEW];
    if (!made || !room) {
        Py_XDECREF(made);
        native_scratch_free(room, bytes);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    PyThreadState *thread = rows * (columns + count) < MANY ? NULL : PyEval_SaveThread();
    if (again && wide)
        choose_again_f64(generator->state, weights, rows, columns, count, (double *)room, (double *)(room + sums), PyArray_DATA(made));
    else if (again)
        choose_again_f32(generator->state, weights, rows, columns, count, (float *)room, (double *)(room + sums), PyArray_DATA(made));
    else if (wide)
        choose_f64(generator->state, weights, given, rows, columns, count, (double *)room, wider, PyArray_DATA(made));
    else
        choose_f32(generator->state, weights, given, rows, columns, count, (float *)room, best, PyArray_DATA(made));
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

/* Arrays as reductions see them: what is kept and what is reduced side by side, and how that is cut into work. */
#ifndef TENSORCORE_NATIVE_FOLDS_H
#define TENSORCORE_NATIVE_FOLDS_H

#include "native.h"

/* An array as front x outer x count x inner elements, of which `front` and `count` are reduced; and the shape of the result. */
typedef struct {
    PyArrayObject *array;
    native_type type;
    npy_intp front, outer, count, inner; /* with a front no inner ones */
    npy_intp row, step; /* bytes, of rows that do not lie one after another, and of their elements where those do not; else 0 */
    int ndim;
    npy_intp shape[NATIVE_DIMS];
} native_fold;

/* An array of at least one element, of that type, that is dense in an order of its dims in which those that are kept follow one another
   as they do in the result; `dim` is an int, a tuple of ints or None for all. False where it is another one or where the dims are not of
   that kind: NumPy's turn. */
bool native_fold_around(native_fold *made, PyObject *object, native_type type, PyObject *dim, PyObject *keepdim);

/* Of an array that is dense in no order, short rows that are to be turned over: what is kept has one step, as if it was one dim. `few` as for
   native_cut_fold, whose rows are turned then. */
bool native_fold_apart(native_fold *made, PyObject *object, native_type type, PyObject *dim, PyObject *keepdim, npy_intp few);

/* Of an array whose last dims are reduced and lie in long rows, evenly apart, as those of a slice do: the dims before them are all kept or
   all reduced, and then the front. */
bool native_fold_slices(native_fold *made, PyObject *object, native_type type, PyObject *dim, PyObject *keepdim);

/* Of any array, as a copy in which the dims that are reduced are the last ones: a new reference. False, with an exception or without. */
bool native_fold_copied(native_fold *made, PyObject *object, native_type type, PyObject *dim, PyObject *keepdim);

/* Of an array in row-major order, without a front. */
bool native_folded(native_fold *made, PyObject *object, native_type type, PyObject *dim, PyObject *keepdim);

/* Rows, or strips of columns, both in pieces of a length that does not depend on the number of threads. Many short rows are turned
   over, so many at a time, and reduced as columns. */
typedef struct {
    npy_intp pieces, length; /* of each row or column */
    npy_intp strips;         /* of the columns; 1 where rows are reduced */
    npy_intp turned;         /* rows that are columns of a tile; 0 where none are turned over */
    npy_intp units, grain;   /* of work, and so many of them are worth a thread */
} native_cut;

enum { TURNED_BYTES = 1 << 14 }; /* of a tile */

/* `few`: the elements of a row that is turned over at most. */
native_cut native_cut_fold(const native_fold *of, npy_intp strip, npy_intp few);

/* Turns over the rows of a unit from the first one on, and answers how many they are: so far apart are neighbours in a row of before
   in the tile. */
npy_intp native_turned_rows(const native_fold *of, const native_cut *cut, npy_intp first, char *tile);

/* One of front x outer x pieces x strips pieces, where no rows are turned over. */
typedef struct {
    const char *data;
    npy_intp first, rows; /* along the reduced dim */
    npy_intp width;       /* columns */
    npy_intp part;        /* where its parts are in [front, outer, pieces, inner] */
    npy_intp kept;        /* and where its columns are in [front, outer, inner] */
} native_piece;

static inline native_piece native_piece_of(const native_fold *of, const native_cut *cut, npy_intp strip, npy_intp number) {
    const bool whole = cut->strips == 1 && cut->pieces == 1; /* many short rows have no time for divisions */
    const npy_intp column = whole ? 0 : number % cut->strips * strip, piece = whole ? 0 : number / cut->strips % cut->pieces;
    const npy_intp outer = whole ? number : number / cut->strips / cut->pieces, first = piece * cut->length;
    return (native_piece){
        .data = PyArray_BYTES(of->array) + (of->row ? outer * of->row + first * TYPE_SIZE[of->type]
                                                    : ((outer * of->count + first) * of->inner + column) * TYPE_SIZE[of->type]),
        .first = first,
        .rows = of->count - first < cut->length ? of->count - first : cut->length,
        .width = of->inner - column < strip ? of->inner - column : strip,
        .part = (outer * cut->pieces + piece) * of->inner + column,
        .kept = outer * of->inner + column,
    };
}

#endif

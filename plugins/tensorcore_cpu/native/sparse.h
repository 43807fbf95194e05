/* What products with sparse matrices share: elements in the order of their lines. */
#ifndef TENSORCORE_NATIVE_SPARSE_H
#define TENSORCORE_NATIVE_SPARSE_H

#include "native.h"

/* Elements in the order of their lines, which are rows or columns: where each line begins, and of each element the other number and
   the value. They are in `space`, which is `bytes` long, but for what lies so already. */
typedef struct {
    const int64_t *starts, *others;
    const void *values;
    void *space;
    size_t bytes;
} sparse_lines;

/* Sorts elements of `size` bytes by counting, so that those of one line stay as they came; all numbers of lines are inside. False with
   an exception where there is no memory. */
bool native_by_line(const int64_t *line, const int64_t *other, const void *values, npy_intp stored, npy_intp lines, size_t size,
                    sparse_lines *made);
void native_lines_end(sparse_lines *lines);

/* Whether `starts` rise from 0 to the number of elements. */
bool native_lines_rise(const int64_t *starts, npy_intp lines, npy_intp stored);

/* The line of each element. */
void native_spread_lines(const int64_t *starts, npy_intp lines, int64_t *line);

#endif

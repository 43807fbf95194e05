/* Rows of a table, bag by bag: what is asked for, and the loops that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_BAGS_H
#define TENSORCORE_NATIVE_BAGS_H

#include "types.h"

enum { BAG_SUM, BAG_MEAN, BAG_LARGEST };

typedef struct {
    const void *table, *scales; /* what each row is times; NULL for nothing */
    void *made;
    const int64_t *index, *offsets;
    ptrdiff_t bags, count, width; /* indices, and elements of a row */
    bool last;                    /* the end of the last bag is an offset too */
    int mode, type;
} bag_run;

/* made[i] is the product of a row of one table and a row of another. */
typedef struct {
    const void *left, *right;
    const int64_t *left_index, *right_index;
    void *made;
    ptrdiff_t width;
    int type;
} bag_dots;

typedef struct {
    void (*of[2])(const bag_run *run, ptrdiff_t begin, ptrdiff_t end); /* TYPE_F32, TYPE_F64; bags [begin, end) */
    void (*dots[2])(const bag_dots *run, ptrdiff_t begin, ptrdiff_t end);
    /* Less than 0 where one of the numbers is, or less than the one before it; `begin` is at least 1. */
    int64_t (*falls)(const int64_t *line, ptrdiff_t begin, ptrdiff_t end);
} bag_loops;

#endif

/* The ways through a fold: rows, strips of columns, short rows that are turned over, few columns. A template: reduce.c includes it with
   PART, the type of what is found of each piece (PART_TYPE), as double, and reduce_integers.c as int64_t, with FUNCTIONS, the struct of
   loops, and an enum `what`; each defines the functions that are declared here. */
#include "folds.h"
#include "reduce.h"

#include <string.h>

enum {
    ROOM = 1024,           /* parts that a short call has on the stack: the heap would cost it time */
    NARROW = 40, WIDE = 8, /* columns of which WIDE rows are one, which is no whole page then, */
    MANY = 64,             /* where they are MANY */
};

typedef struct {
    const native_fold *fold;
    const FUNCTIONS *run;
    what kind;
    native_cut cut;
    const double *centre; /* [outer, inner], where sums are of the distances from it */
    PART *parts;          /* [front, outer, pieces, inner] */
    int64_t *places;      /* the same, where they are asked for */
    char *made; /* where the results go, of that type, divided and their root taken; NULL where they are left as parts */
    native_type type;
    double divisor;
    bool root;
    bool direct; /* each thread writes the results, or places, that it found */
} work;

/* All of a piece that is one row; rows of one piece each, of which no places are asked for; columns whose rows are `step` apart. */
static void reduce_row(const work *job, const native_piece *at);
static void reduce_rows(const work *job, const char *data, npy_intp rows, PART *into);
static void reduce_strip(const work *job, const native_piece *at, npy_intp step);
/* Brings `count` rows of parts, `step` apart, together in the first one, which is `width` long; and so their places. */
static void join_rows(const work *job, PART *made, int64_t *places, npy_intp width, npy_intp count, npy_intp step);
/* Whether `reduce_rows` knows this kind. */
static bool goes_by_rows(const work *job);
/* Results from number `to` on of their parts, which may be the results themselves. */
static void write_results(const work *job, const PART *parts, npy_intp to, npy_intp count);

/* Columns that are few: WIDE rows are one of as many times the columns, and what is left of the rows is another. */
static void reduce_narrow(const work *job, const native_piece *at) {
    const native_fold *of = job->fold;
    const npy_intp inner = of->inner, wide = inner * WIDE, whole = at->rows / WIDE, rest = at->rows % WIDE;
    PART parts[(WIDE + 1) * NARROW];
    int64_t places[(WIDE + 1) * NARROW];
    double centre[WIDE * NARROW];
    work part = *job;
    part.parts = parts;
    part.places = job->places ? places : NULL;
    part.centre = job->centre ? centre : NULL;
    for (npy_intp k = 0; job->centre && k < WIDE; k++)
        memcpy(centre + k * inner, job->centre + at->kept, (size_t)inner * sizeof *centre);
    const char *const behind = at->data + whole * wide * TYPE_SIZE[of->type];
    reduce_strip(&part, &(native_piece){.data = at->data, .rows = whole, .width = wide}, wide);
    if (rest)
        reduce_strip(&part, &(native_piece){.data = behind, .rows = rest, .width = inner, .part = wide}, inner);
    const npy_intp count = WIDE + (rest > 0);
    for (npy_intp k = 0; job->places && k < count; k++)
        for (npy_intp j = 0; j < inner; j++) {
            int64_t *place = places + k * inner + j;
            *place = at->first + (k < WIDE ? *place * WIDE + k : *place + whole * WIDE);
        }
    join_rows(job, parts, places, inner, count, inner);
    memcpy(job->parts + at->part, parts, (size_t)inner * sizeof *parts);
    if (job->places)
        memcpy(job->places + at->part, places, (size_t)inner * sizeof *places);
}

static void reduce_piece(const work *job, const native_piece *at) {
    const npy_intp inner = job->fold->inner;
    if (inner == 1)
        reduce_row(job, at);
    else if (inner <= NARROW && at->rows >= MANY)
        reduce_narrow(job, at);
    else
        reduce_strip(job, at, inner);
}

/* The job of those who write results from number `to` on: their parts go to the results where they are of one type. */
static work part_of_work(const work *job, npy_intp to, PART *room) {
    work part = *job;
    part.parts = job->made && job->type == PART_TYPE && job->divisor == 1 && !job->root ? (PART *)job->made + to : room;
    part.places = job->places ? job->places + to : NULL;
    return part;
}

static void reduce_units(void *context, npy_intp begin, npy_intp end) {
    const work *job = context;
    const npy_intp inner = job->fold->inner, together = job->cut.strips > 1 || inner > STRIP / 2 ? 1 : STRIP / inner;
    PART room[STRIP];
    for (npy_intp i = begin; !job->direct && i < end; i++) {
        const native_piece at = native_piece_of(job->fold, &job->cut, STRIP, i);
        reduce_piece(job, &at);
    }
    for (; job->direct && begin < end; begin += together) {
        const npy_intp few = end - begin < together ? end - begin : together;
        native_piece at = native_piece_of(job->fold, &job->cut, STRIP, begin);
        const npy_intp to = at.part;
        const work part = part_of_work(job, to, room);
        for (npy_intp k = 0; k < few; k++) {
            at = native_piece_of(job->fold, &job->cut, STRIP, begin + k);
            at.part -= to;
            reduce_piece(&part, &at);
        }
        if (job->made)
            write_results(&part, part.parts, to, at.part + at.width);
    }
}

/* Short rows, turned over. */
static void reduce_turned(void *context, npy_intp begin, npy_intp end) {
    const work *job = context;
    _Alignas(64) char tile[TURNED_BYTES];
    PART room[STRIP];
    for (npy_intp i = begin; i < end; i++) {
        const npy_intp first = i * job->cut.turned, rows = native_turned_rows(job->fold, &job->cut, first, tile);
        const work part = job->direct ? part_of_work(job, first, room) : *job;
        const native_piece at = {.data = tile, .rows = job->fold->count, .width = rows, .part = job->direct ? 0 : first, .kept = first};
        reduce_strip(&part, &at, rows);
        if (job->direct && job->made)
            write_results(&part, part.parts, first, rows);
    }
}

/* Rows of one piece each from number `first` on, */
static void reduce_few_rows(const work *job, npy_intp first, npy_intp few, PART *into) {
    const native_fold *of = job->fold;
    const char *const data = PyArray_BYTES(of->array) + first * (of->row ? of->row : of->count * TYPE_SIZE[of->type]);
    if (!of->row)
        reduce_rows(job, data, few, into);
    for (npy_intp i = 0; of->row && i < few; i++)
        reduce_rows(job, data + i * of->row, 1, into + i);
}

/* of which nothing is made but parts, */
static void reduce_rows_to_parts(void *context, npy_intp begin, npy_intp end) {
    const work *job = context;
    reduce_few_rows(job, begin, end - begin, job->parts + begin);
}

/* or results. */
static void reduce_rows_alone(void *context, npy_intp begin, npy_intp end) {
    const work *job = context;
    PART room[STRIP];
    for (; begin < end; begin += STRIP) {
        const npy_intp few = end - begin < STRIP ? end - begin : STRIP;
        const work part = part_of_work(job, begin, room);
        reduce_few_rows(job, begin, few, part.parts);
        write_results(&part, part.parts, begin, few);
    }
}

typedef struct {
    PART here[ROOM];
    PART *heap;
} room;

static void join(const work *job) {
    const native_fold *of = job->fold;
    const npy_intp inner = of->inner, rows = job->cut.pieces * inner;
    for (npy_intp i = 0; job->cut.pieces > 1 && i < of->front * of->outer; i++)
        join_rows(job, job->parts + i * rows, job->places ? job->places + i * rows : NULL, inner, job->cut.pieces, inner);
    const npy_intp results = job->cut.pieces == 1 ? of->outer : 1; /* of all that lie side by side */
    for (npy_intp i = 0; of->front > 1 && i < of->outer; i += results)
        join_rows(job, job->parts + i * rows, job->places ? job->places + i * rows : NULL, results, of->front, of->outer * rows);
}

/* The results from the first of their pieces' parts each. */
static void write_from_parts(const work *job, int64_t *places) {
    const npy_intp pieces = job->cut.pieces, inner = job->fold->inner;
    const npy_intp runs = pieces == 1 ? 1 : job->fold->outer, length = job->fold->outer * inner / runs;
    for (npy_intp run = 0; run < runs; run++) {
        const npy_intp from = run * pieces * inner;
        if (places)
            memcpy(places + run * length, job->places + from, (size_t)length * sizeof *places);
        if (job->made)
            write_results(job, job->parts + from, run * length, length);
    }
}

/* Results and places where there is room for them; without `made` and `places`, parts that are left in `space`. */
static bool reduce(work *job, room *space) {
    const native_fold *of = job->fold;
    const npy_intp parts = of->front * of->outer * job->cut.pieces * of->inner;
    int64_t *const places = job->places;
    const bool asked = job->made || places;
    job->direct = asked && job->cut.pieces == 1 && of->front == 1;
    space->heap = NULL;
    if (!job->direct) {
        const npy_intp words = places ? 2 * parts : parts;
        if (words > ROOM && !(space->heap = PyMem_RawMalloc((size_t)words * sizeof(PART)))) {
            PyErr_NoMemory();
            return false;
        }
        job->parts = space->heap ? space->heap : space->here;
        job->places = places ? (int64_t *)(job->parts + parts) : NULL;
    }
    const bool rows = job->cut.pieces == 1 && of->inner == 1 && !places && goes_by_rows(job);
    const native_body by_rows = job->direct ? reduce_rows_alone : reduce_rows_to_parts;
    native_parallel(job->cut.units, job->cut.grain, job->cut.turned ? reduce_turned : rows ? by_rows : reduce_units, job);
    if (!job->direct) {
        join(job);
        if (asked) {
            write_from_parts(job, places);
            PyMem_RawFree(space->heap);
        }
    }
    return true;
}

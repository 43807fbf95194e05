/* Arrays padded by what is within their edges, and the adjoint of that: one to three last dims, row by row. What stands in order is
   moved in one piece. */
#include "native.h"
#include "rows.h"

#include <stdlib.h>
#include <string.h>

enum { MODE, PADS, SHAPE, OPTIONS };
static PyObject *names[OPTIONS];

enum { DIMS = 3, WORK = 1 << 14, MOST = 1 << 30 }; /* elements that are worth a thread; that are padded */

typedef struct {
    char *within, *padded;                /* one is read, the other written */
    npy_intp sizes[DIMS], counts[DIMS];   /* without and with what is padded */
    const npy_intp *at[DIMS];             /* where each padded place is within */
    npy_intp begin, end;                  /* of a padded row what stands in order */
    npy_intp planes;                      /* elements before the padded dims */
    size_t size;
} edges;

/* Where padded places are within `n` elements; false where that is not for us. */
static bool find_places(PyObject *mode, npy_intp n, npy_intp before, npy_intp after, npy_intp count, npy_intp *at) {
    const bool reflect = !PyUnicode_CompareWithASCIIString(mode, "reflect");
    const bool circular = !PyUnicode_CompareWithASCIIString(mode, "circular");
    const npy_intp first = before < 0 ? -before : 0, left = n - first - (after < 0 ? -after : 0);
    if ((!reflect && !circular && PyUnicode_CompareWithASCIIString(mode, "replicate")) || left < 1)
        return false;
    for (npy_intp i = 0; i < count; i++) {
        npy_intp place = i - before;
        if (reflect)
            place = labs(place) < n ? labs(place) : 2 * (n - 1) - labs(place);
        else if (circular)
            place = first + ((i - (before > 0 ? before : 0)) % left + left) % left;
        else
            place = place < 0 ? 0 : place < n ? place : n - 1;
        if (place < 0 || place >= n)
            return false;
        at[i] = place;
    }
    return true;
}

/* The job of a call whose unpadded array has `shape`, and room for its places, to be freed; NULL where it is not for us. */
static npy_intp *read_edges(PyObject *const *given, int ndim, const npy_intp *shape, const npy_intp *padded, edges *job) {
    npy_intp pads[2 * DIMS];
    const int count = given[PADS] ? native_sizes(given[PADS], pads, 2 * DIMS) : -1, dims = count / 2, around = ndim - dims;
    if (count < 2 || count % 2 || around < 0 || !given[MODE] || !PyUnicode_Check(given[MODE]))
        return NULL;
    for (int i = 0; i < count; i++)
        if (pads[i] > MOST || pads[i] < -MOST)
            return NULL;
    npy_intp places = 0;
    job->planes = 1;
    for (int i = 0; i < ndim; i++) {
        const npy_intp more = i < around ? 0 : pads[2 * (i - around)] + pads[2 * (i - around) + 1];
        if (shape[i] < 1 || padded[i] < 1 || padded[i] != shape[i] + more)
            return NULL;
        if (i < around)
            job->planes *= shape[i];
        else
            places += padded[i];
    }
    npy_intp *room = malloc((size_t)(places + DIMS) * sizeof *room), *at = room;
    bool fits = room;
    for (int d = 0; d < DIMS && fits; d++) {
        const int dim = d - (DIMS - dims);
        job->sizes[d] = dim < 0 ? 1 : shape[around + dim];
        job->counts[d] = dim < 0 ? 1 : padded[around + dim];
        job->at[d] = at;
        if (dim < 0)
            *at = 0;
        else
            fits = find_places(given[MODE], job->sizes[d], pads[2 * dim], pads[2 * dim + 1], job->counts[d], at);
        at += job->counts[d];
    }
    if (!fits) {
        free(room);
        return NULL;
    }
    const npy_intp *row = job->at[DIMS - 1], length = job->counts[DIMS - 1], before = pads[count - 2];
    job->begin = before > 0 ? before : 0; /* is there: a circle's begins with what is left, which is one at least */
    job->begin = job->begin < length ? job->begin : length - 1;
    job->end = job->begin + 1;
    while (job->end < length && row[job->end] == row[job->end - 1] + 1)
        job->end++;
    return room;
}

/* A padded row: its place among those of its plane, and the row within that it comes from. */
typedef struct {
    npy_intp y, z;
    char *plane, *row;
} padded_row;

static void find_row(const edges *job, padded_row *at) {
    at->row = at->plane + (size_t)((job->at[0][at->z] * job->sizes[1] + job->at[1][at->y]) * job->sizes[2]) * job->size;
}

static padded_row row_at(const edges *job, npy_intp i) {
    const npy_intp z = i / job->counts[1], plane = z / job->counts[0];
    padded_row at = {.y = i % job->counts[1], .z = z % job->counts[0]};
    at.plane = job->within + (size_t)(plane * job->sizes[0] * job->sizes[1] * job->sizes[2]) * job->size;
    find_row(job, &at);
    return at;
}

static void next_row(const edges *job, padded_row *at) {
    if (++at->y == job->counts[1]) {
        at->y = 0;
        if (++at->z == job->counts[0]) {
            at->z = 0;
            at->plane += (size_t)(job->sizes[0] * job->sizes[1] * job->sizes[2]) * job->size;
        }
    }
    find_row(job, at);
}

#define PUT(type)                                                                                     \
    for (npy_intp i = begin; i < end; i++, to += length * sizeof(type), next_row(job, &row)) {        \
        const char *const from = row.row;                                                             \
        for (npy_intp x = 0; x < job->begin; x++)                                                     \
            ((type *)to)[x] = ((const type *)from)[at[x]];                                            \
        memcpy(to + job->begin * sizeof(type), from + at[job->begin] * sizeof(type), middle);         \
        for (npy_intp x = job->end; x < length; x++)                                                  \
            ((type *)to)[x] = ((const type *)from)[at[x]];                                            \
    }

/* Counts padded rows. */
static void pad_rows(void *context, npy_intp begin, npy_intp end) {
    const edges *job = context;
    const npy_intp *at = job->at[2], length = job->counts[2];
    const size_t middle = (size_t)(job->end - job->begin) * job->size;
    char *to = job->padded + (size_t)(begin * length) * job->size;
    padded_row row = row_at(job, begin);
    switch (job->size) {
    case 1:
        PUT(uint8_t)
        break;
    case 2:
        PUT(uint16_t)
        break;
    case 4:
        PUT(uint32_t)
        break;
    default:
        PUT(uint64_t)
    }
}

/* Adds up the padded elements of planes where they came from. */
#define ADD(type)                                                                                             \
    for (npy_intp i = begin * rows; i < end * rows; i++, next_row(job, &row)) {                               \
        type *to = (type *)row.row;                                                                           \
        const type *sent = (const type *)job->padded + i * length;                                              \
        for (npy_intp x = 0; x < job->begin; x++)                                                             \
            to[at[x]] += sent[x];                                                                             \
        type *const first = to + at[job->begin];                                                              \
        for (npy_intp x = 0; x < job->end - job->begin; x++)                                                  \
            first[x] += sent[job->begin + x];                                                                 \
        for (npy_intp x = job->end; x < length; x++)                                                          \
            to[at[x]] += sent[x];                                                                             \
    }

static void add_planes(void *context, npy_intp begin, npy_intp end) {
    const edges *job = context;
    const npy_intp *at = job->at[2], length = job->counts[2], rows = job->counts[0] * job->counts[1];
    const size_t plane = (size_t)(job->sizes[0] * job->sizes[1] * job->sizes[2]) * job->size;
    padded_row row = row_at(job, begin * rows);
    memset(job->within + (size_t)begin * plane, 0, (size_t)(end - begin) * plane);
    if (job->size == sizeof(float)) {
        ADD(float)
    } else {
        ADD(double)
    }
}

static const char adjoint; /* the data of the kernel that adds up */

static PyObject *run_edges(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const bool back = kernel->data == &adjoint;
    PyObject *given[OPTIONS];
    npy_intp shape[NATIVE_DIMS];
    edges job;
    const native_type type = nargs == 1 ? native_array_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, given) ||
        (back && type != TYPE_F32 && type != TYPE_F64))
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0];
    const int ndim = PyArray_NDIM(x);
    if (!PyArray_IS_C_CONTIGUOUS(x) || !PyArray_SIZE(x) || native_sizes(given[SHAPE], shape, NATIVE_DIMS) != ndim)
        return NULL;
    npy_intp *room = back ? read_edges(given, ndim, shape, PyArray_DIMS(x), &job) : read_edges(given, ndim, PyArray_DIMS(x), shape, &job);
    PyArrayObject *made = room ? native_empty(ndim, shape, type) : NULL;
    if (made) {
        job.size = TYPE_SIZE[type];
        job.within = PyArray_BYTES(back ? made : x);
        job.padded = PyArray_BYTES(back ? x : made);
        const npy_intp rows = job.counts[0] * job.counts[1], row = job.counts[2];
        if (back)
            native_evenly(job.planes, WORK / (rows * row) + 1, add_planes, &job);
        else
            native_evenly(job.planes * rows, WORK / row + 1, pad_rows, &job);
    }
    free(room);
    return (PyObject *)made;
}

int edges_init(void) {
    static const char *const letters[OPTIONS] = {"mode", "pads", "shape"};
    return native_intern(names, letters, OPTIONS);
}

const native_spec edges_kernels[] = {
    {"edge_pad", run_edges, NULL, .dense = true},
    {"edge_pad_gradient", run_edges, &adjoint, .dense = true},
    {NULL},
};

/* The memory of large arrays: cached blocks on huge pages, handed to NumPy as the memory handler of the arrays made here.

   A page that the system gives anew costs more than the arithmetic on it, so a freed block is kept and goes to the next
   array of its size. Blocks that are not very large lie side by side, so that huge pages hold all of them: on small ones an
   optimizer's step over arrays of 0.6 to 0.8 MB took 1.6 times as long. Smaller arrays come from malloc, at a cache line: stores
   of 64 bytes that cross lines take half as long again. The smallest stay with NumPy's own allocator, which keeps theirs. */
#define _GNU_SOURCE
#include "native.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    HUGE_PAGE = 2 << 20,
    REGION = 64 << 20,       /* addresses that blocks side by side are cut from, */
    LARGEST_CUT = 8 << 20,   /* up to this size */
    SMALLEST_STEP = 8 << 10, /* of sizes; a page where that is larger */
    HARDLY = 16, /* one part in so many */
    HEADER = 64, /* keeps the array on a cache line */
    /* Streams that begin at one place of a page each wait for one another's stores: where a result lies 0, 64, 128, 192 or 256
       bytes past its operand, relu of 1e5 took 1.06 to 1.4 of the time on a Zen 4, in a throw-away program. No two places are nearer. */
    COLOURS = 12, COLOUR = 320,
    SIZES = 32, DOUBLINGS = 48, /* classes to each doubling of a size, and how many of those there may be */
    TRACE_DOMAIN = 389047, /* numpy.lib.tracemalloc_domain */
};

typedef struct {
    size_t size;   /* of the whole block */
    char *start;   /* of the mapping */
    size_t asked;
} header;

/* An unused block, written at its own start: in the list of its class, and in that of all, by when they came back. */
typedef struct free_block {
    struct free_block *next, *before, *younger, *older;
    size_t size;
} free_block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static free_block *latest[SIZES * (DOUBLINGS + 1) + 1], *oldest, *youngest; /* of each class the one that came back last */
static int colour;
static char *region; /* where the next block is cut, */
static size_t region_left, smallest_step = SMALLEST_STEP;
typedef struct {
    size_t allocated, allocated_peak, reserved, reserved_peak, cached, limit, active, active_peak, hits, misses;
    size_t ever_allocated, ever_freed;
} block_counts;

static block_counts counts;

/* How far apart sizes are around one, and how often the smallest of such steps was doubled. */
static size_t step_of(size_t size, int *doublings) {
    size_t step = smallest_step;
    int count = 0;
    for (; step * 2 * SIZES < size; step *= 2)
        count++;
    if (doublings)
        *doublings = count;
    return step;
}

/* Thirty-two sizes to each doubling. What is beyond the last whole huge page of a very large one lies on small pages, of which
   those that are used count; where whole ones take hardly more, all are huge: what does not lie in the caches is read and
   written in 0.85 of the time then. */
static size_t size_class(size_t size) {
    const size_t whole = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    if (size > LARGEST_CUT && whole - size <= size / HARDLY)
        return whole;
    const size_t step = step_of(size, NULL);
    return (size + step - 1) / step * step;
}

/* The class of a size: larger for a larger one. */
static int class_of(size_t size) {
    int doublings;
    const size_t step = step_of(size, &doublings), steps = (size + step - 1) / step;
    return doublings < DOUBLINGS ? doublings * SIZES + (int)steps : SIZES * (DOUBLINGS + 1);
}

static void keep(char *start, size_t size) {
    free_block *const block = (free_block *)start, **const first = latest + class_of(size);
    *block = (free_block){.next = *first, .older = youngest, .size = size};
    if (*first)
        (*first)->before = block;
    *first = block;
    *(youngest ? &youngest->younger : &oldest) = block;
    youngest = block;
    counts.cached += size;
}

static void let_go(free_block *block) {
    *(block->before ? &block->before->next : latest + class_of(block->size)) = block->next;
    if (block->next)
        block->next->before = block->before;
    *(block->older ? &block->older->younger : &oldest) = block->younger;
    *(block->younger ? &block->younger->older : &youngest) = block->older;
    counts.cached -= block->size;
}

/* The unused block that fits best, the one that came back last of those; NULL where all are smaller, or larger by more than an
   eighth. */
static free_block *fitting(size_t size) {
    const size_t most = size + size / 8;
    for (int class = class_of(size), last = class_of(most); class <= last; class++)
        for (free_block *block = latest[class]; block; block = block->next)
            if (block->size >= size && block->size <= most)
                return block;
    return NULL;
}

static void unmap(free_block *block) {
    const size_t size = block->size;
    let_go(block);
    munmap(block, size);
    counts.reserved -= size;
}

static char *map_huge(size_t size) {
    /* One huge page more, to begin at a multiple of one. */
    char *start = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    char *aligned = (char *)(((uintptr_t)start + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
    if (aligned > start)
        munmap(start, (size_t)(aligned - start));
    munmap(aligned + size, (size_t)(start + HUGE_PAGE - aligned));
#ifdef MADV_HUGEPAGE
    madvise(aligned, size, MADV_HUGEPAGE);
#endif
    return aligned;
}

static void leave_region(void) {
    if (region_left)
        munmap(region, region_left);
    region_left = 0;
}

/* A new block. Of a region only what is written to takes memory; a block that was cut from it is unmapped by itself. */
static char *map(size_t size) {
    if (size > LARGEST_CUT)
        return map_huge(size);
    if (region_left < size) {
        char *const fresh = map_huge(REGION);
        if (!fresh)
            return map_huge(size);
        leave_region();
        region = fresh;
        region_left = REGION;
    }
    char *const start = region;
    region += size;
    region_left -= size;
    return start;
}

static void *take(void *context, size_t asked) {
    if (asked > SIZE_MAX / 4)
        return NULL;
    size_t size = size_class(asked + HEADER + COLOURS * COLOUR);
    pthread_mutex_lock(&lock);
    free_block *const unused = fitting(size);
    char *start = (char *)unused;
    if (unused) {
        size = unused->size;
        let_go(unused);
        counts.hits++;
    } else {
        start = map(size);
        while (!start && oldest) { /* what lies unused may be what is missing */
            unmap(oldest);
            start = map(size);
        }
        if (!start) {
            pthread_mutex_unlock(&lock);
            return NULL;
        }
        counts.misses++;
        counts.reserved += size;
        counts.reserved_peak = counts.reserved > counts.reserved_peak ? counts.reserved : counts.reserved_peak;
    }
    counts.allocated += asked;
    counts.ever_allocated += asked;
    counts.allocated_peak = counts.allocated > counts.allocated_peak ? counts.allocated : counts.allocated_peak;
    counts.active_peak = ++counts.active > counts.active_peak ? counts.active : counts.active_peak;
    colour = (colour + 1) % COLOURS;
    char *data = start + HEADER + (size_t)colour * COLOUR;
    pthread_mutex_unlock(&lock);
    *(header *)(data - HEADER) = (header){size, start, asked};
    return data;
}

static void give_back(void *context, void *data, size_t unused) {
    if (!data)
        return;
    header of = *(header *)((char *)data - HEADER);
    pthread_mutex_lock(&lock);
    counts.allocated -= of.asked;
    counts.ever_freed += of.asked;
    counts.active--;
    while (oldest && counts.cached + of.size > counts.limit)
        unmap(oldest);
    if (of.size > counts.limit) {
        munmap(of.start, of.size);
        counts.reserved -= of.size;
    } else {
        keep(of.start, of.size);
    }
    pthread_mutex_unlock(&lock);
}

void *native_scratch(size_t size) { return size < NATIVE_CACHED ? aligned_alloc(64, (size + 63) / 64 * 64) : take(NULL, size); }

void native_scratch_free(void *data, size_t size) {
    if (size < NATIVE_CACHED)
        free(data);
    else
        give_back(NULL, data, size);
}

static void *take_zeros(void *context, size_t count, size_t size) {
    void *data = size && count > SIZE_MAX / size ? NULL : take(context, count * size);
    return data ? memset(data, 0, count * size) : NULL;
}

static void *resize(void *context, void *data, size_t size) {
    void *made = take(context, size);
    if (made && data) {
        size_t before = ((header *)((char *)data - HEADER))->asked;
        memcpy(made, data, before < size ? before : size);
        give_back(context, data, 0);
    }
    return made;
}

/* From malloc; its own address and the size stand before the data: aligned_alloc takes three times as long. */
typedef struct {
    void *start;
    size_t asked;
} line_header;

static void *take_line(void *context, size_t asked) {
    char *start = asked > SIZE_MAX / 4 ? NULL : malloc(asked + sizeof(line_header) + HEADER);
    if (!start)
        return NULL;
    line_header *data = (line_header *)(((uintptr_t)start + sizeof(line_header) + HEADER - 1) & ~(uintptr_t)(HEADER - 1));
    data[-1] = (line_header){start, asked};
    return data;
}

static void give_back_line(void *context, void *data, size_t unused) {
    if (data)
        free(((line_header *)data)[-1].start);
}

static void *take_line_zeros(void *context, size_t count, size_t size) {
    void *data = size && count > SIZE_MAX / size ? NULL : take_line(context, count * size);
    return data ? memset(data, 0, count * size) : NULL;
}

static void *resize_line(void *context, void *data, size_t size) {
    void *made = take_line(context, size);
    if (made && data) {
        size_t before = ((line_header *)data)[-1].asked;
        memcpy(made, data, before < size ? before : size);
        give_back_line(context, data, 0);
    }
    return made;
}

static PyDataMem_Handler handler = {"tensorcore", 1, {NULL, take, take_zeros, resize, give_back}};
static PyDataMem_Handler line_handler = {
    "tensorcore lines", 1, {NULL, take_line, take_line_zeros, resize_line, give_back_line}};
static PyObject *capsule, *line_capsule;

PyArrayObject *native_memory_array(PyArray_Descr *descr, int ndim, const npy_intp *shape, const npy_intp *strides, size_t size) {
    const bool large = size >= NATIVE_CACHED;
    void *data = large ? take(NULL, size) : take_line(NULL, size);
    if (!data) {
        Py_DECREF(descr);
        return (PyArrayObject *)PyErr_NoMemory();
    }
    PyObject *made = PyArray_NewFromDescr(&PyArray_Type, descr, ndim, shape, strides, data, NPY_ARRAY_WRITEABLE, NULL);
    if (!made) {
        (large ? give_back : give_back_line)(NULL, data, size);
        return NULL;
    }
    /* The array owns the block and its handler frees it, as if that handler had been NumPy's for a while: to make it so would
       take a look into the context and two changes of it. */
    PyTraceMalloc_Track(TRACE_DOMAIN, (uintptr_t)data, size);
    ((PyArrayObject_fields *)made)->mem_handler = Py_NewRef(large ? capsule : line_capsule);
    PyArray_ENABLEFLAGS((PyArrayObject *)made, NPY_ARRAY_OWNDATA);
    return (PyArrayObject *)made;
}

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

int native_memory_init(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
    smallest_step = page > SMALLEST_STEP ? (size_t)page : SMALLEST_STEP;
    counts.limit = pages > 0 && page > 0 ? (size_t)pages * (size_t)page / 4 : (size_t)2 << 30;
    capsule = PyCapsule_New(&handler, "mem_handler", NULL);
    line_capsule = PyCapsule_New(&line_handler, "mem_handler", NULL);
    return capsule && line_capsule && !pthread_atfork(before_fork, after_fork, after_fork) ? 0 : -1;
}

PyObject *native_memory_statistics(PyObject *module, PyObject *unused) {
    pthread_mutex_lock(&lock);
    const block_counts now = counts; /* a new dict may collect garbage, whose blocks come back here */
    pthread_mutex_unlock(&lock);
    return Py_BuildValue(
        "{s:n,s:n,s:n,s:n,s:n,s:n,s:n,s:n,s:n,s:n,s:n}", "allocated_bytes.current", now.allocated,
        "allocated_bytes.peak", now.allocated_peak, "allocated_bytes.allocated", now.ever_allocated,
        "allocated_bytes.freed", now.ever_freed, "reserved_bytes.current", now.reserved, "reserved_bytes.peak",
        now.reserved_peak, "cached_bytes.current", now.cached, "active.current", now.active, "active.peak",
        now.active_peak, "cache.hits", now.hits, "cache.misses", now.misses);
}

PyObject *native_memory_reset_peaks(PyObject *module, PyObject *unused) {
    pthread_mutex_lock(&lock);
    counts.allocated_peak = counts.allocated;
    counts.reserved_peak = counts.reserved;
    counts.active_peak = counts.active;
    pthread_mutex_unlock(&lock);
    Py_RETURN_NONE;
}

PyObject *native_memory_empty_cache(PyObject *module, PyObject *unused) {
    pthread_mutex_lock(&lock);
    size_t given = counts.cached;
    while (oldest)
        unmap(oldest);
    leave_region();
    pthread_mutex_unlock(&lock);
    return PyLong_FromSize_t(given);
}

/* How many bytes may lie unused in the cache; with a number, sets it. */
PyObject *native_memory_limit(PyObject *module, PyObject *bytes) {
    if (bytes != Py_None) {
        size_t limit = PyLong_AsSize_t(bytes);
        if (limit == (size_t)-1 && PyErr_Occurred())
            return NULL;
        pthread_mutex_lock(&lock);
        counts.limit = limit;
        while (oldest && counts.cached > limit)
            unmap(oldest);
        pthread_mutex_unlock(&lock);
    }
    return PyLong_FromSize_t(counts.limit);
}

/* The one pool of threads: passive, shared by all kernels, and new in the child after a fork. */
#define _GNU_SOURCE
#include "native.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    MOST_THREADS = 256,
    PIECES = 4, /* a thread: who is delayed by other programs then leaves little for the others to wait for */
    SPINS = 2000, /* a few microseconds: shorter than falling asleep and being woken */
};

typedef struct {
    pthread_mutex_t owner; /* one parallel loop at a time; a second caller runs alone */
    pthread_mutex_t lock;  /* of the two conditions */
    pthread_cond_t work, finished;
    int started;                  /* workers, under owner */
    pthread_t threads[MOST_THREADS];
    int placed, beside;           /* so many workers may run anywhere but on processor `beside`; under owner */
    _Atomic int wanted;           /* workers that take part */
    _Atomic int sleepers;
    _Atomic bool caller_sleeps;
    /* The loop's number in the upper half, the next piece in the lower: a worker that comes late claims nothing. */
    _Atomic uint64_t ticket;
    _Atomic uint32_t done;
    /* What the current loop is. Read before a piece is claimed; the claim fails if it was another loop's. */
    _Atomic(native_body) body;
    _Atomic(void *) context;
    _Atomic npy_intp count, step;
    _Atomic uint32_t pieces;
} pool_state;

static pool_state pool;
static _Atomic int thread_count = 1; /* set with the GIL held, read without */
static _Thread_local bool inside;

static inline void relax(void) {
#ifdef NATIVE_X86
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Takes pieces of the current loop until there is none left. */
static void take_part(void) {
    for (;;) {
        uint64_t ticket = atomic_load(&pool.ticket);
        uint32_t piece = (uint32_t)ticket;
        native_body body = atomic_load(&pool.body);
        void *context = atomic_load(&pool.context);
        npy_intp count = atomic_load(&pool.count), step = atomic_load(&pool.step);
        uint32_t pieces = atomic_load(&pool.pieces);
        if (piece >= pieces)
            return;
        if (!atomic_compare_exchange_weak(&pool.ticket, &ticket, ticket + 1))
            continue;
        npy_intp begin = (npy_intp)piece * step, end = begin + step < count ? begin + step : count;
        inside = true;
        body(context, begin, end);
        inside = false;
        if (atomic_fetch_add(&pool.done, 1) + 1 == pieces && atomic_load(&pool.caller_sleeps)) {
            pthread_mutex_lock(&pool.lock);
            pthread_cond_signal(&pool.finished);
            pthread_mutex_unlock(&pool.lock);
        }
    }
}

static void *worker(void *argument) {
    int index = (int)(intptr_t)argument;
    uint32_t seen = 0;
    for (;;) {
        uint32_t now = (uint32_t)(atomic_load(&pool.ticket) >> 32);
        for (int i = 0; now == seen && i < SPINS; i++) {
            relax();
            now = (uint32_t)(atomic_load(&pool.ticket) >> 32);
        }
        if (now == seen) {
            pthread_mutex_lock(&pool.lock);
            atomic_fetch_add(&pool.sleepers, 1);
            while ((now = (uint32_t)(atomic_load(&pool.ticket) >> 32)) == seen)
                pthread_cond_wait(&pool.work, &pool.lock);
            atomic_fetch_sub(&pool.sleepers, 1);
            pthread_mutex_unlock(&pool.lock);
        }
        seen = now;
        if (index < atomic_load(&pool.wanted))
            take_part();
    }
    return NULL;
}

static void start_workers(int wanted) {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes))
        return;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    while (pool.started < wanted) {
        if (pthread_create(&pool.threads[pool.started], &attributes, worker, (void *)(intptr_t)pool.started))
            break; /* with fewer it works as well */
        pool.started++;
    }
    pthread_attr_destroy(&attributes);
}

/* Keeps workers that are about to be woken off the processor that the caller runs on. Linux wakes them there when it finds
   that the cheapest place, as it does on virtual machines that pack their threads: the two then take turns, and a loop
   takes as long as on one thread. The caller's own mask is the limit, as it was when the workers were started. */
static void place_workers(void) {
#ifdef __linux__
    const int here = sched_getcpu();
    cpu_set_t allowed;
    if (here < 0 || here >= CPU_SETSIZE || (here == pool.beside && pool.placed == pool.started) ||
        sched_getaffinity(0, sizeof allowed, &allowed) || CPU_COUNT(&allowed) < 2)
        return;
    CPU_CLR(here, &allowed);
    for (int i = 0; i < pool.started; i++)
        pthread_setaffinity_np(pool.threads[i], sizeof allowed, &allowed);
    pool.beside = here;
    pool.placed = pool.started;
#endif
}

npy_intp native_step(npy_intp grains, npy_intp threads) { return (grains + threads * PIECES - 1) / (threads * PIECES); }

static void run_in_pieces(npy_intp count, npy_intp grain, native_body body, void *context) {
    const int threads = atomic_load(&thread_count);
    const npy_intp step = native_step((count + grain - 1) / grain, threads) * grain;
    start_workers(threads - 1);
    /* No worker may claim between the new fields and the new ticket: with no pieces there is nothing to claim. */
    atomic_store(&pool.pieces, 0);
    uint64_t next = ((atomic_load(&pool.ticket) >> 32) + 1) << 32;
    atomic_store(&pool.ticket, next | UINT32_MAX);
    atomic_store(&pool.body, body);
    atomic_store(&pool.context, context);
    atomic_store(&pool.count, count);
    atomic_store(&pool.step, step);
    atomic_store(&pool.done, 0);
    uint32_t pieces = (uint32_t)((count + step - 1) / step);
    atomic_store(&pool.pieces, pieces);
    atomic_store(&pool.wanted, threads - 1);
    next += (uint64_t)1 << 32;
    atomic_store(&pool.ticket, next);
    if (atomic_load(&pool.sleepers)) {
        place_workers();
        pthread_mutex_lock(&pool.lock);
        pthread_cond_broadcast(&pool.work);
        pthread_mutex_unlock(&pool.lock);
    }
    take_part();
    for (int i = 0; i < SPINS && atomic_load(&pool.done) != pieces; i++)
        relax();
    if (atomic_load(&pool.done) != pieces) {
        pthread_mutex_lock(&pool.lock);
        atomic_store(&pool.caller_sleeps, true);
        while (atomic_load(&pool.done) != pieces)
            pthread_cond_wait(&pool.finished, &pool.lock);
        atomic_store(&pool.caller_sleeps, false);
        pthread_mutex_unlock(&pool.lock);
    }
}

void native_parallel(npy_intp count, npy_intp grain, native_body body, void *context) {
    if (inside || count <= grain) {
        body(context, 0, count);
        return;
    }
    PyThreadState *state = PyEval_SaveThread();
    if (thread_count > 1 && !pthread_mutex_trylock(&pool.owner)) {
        run_in_pieces(count, grain, body, context);
        pthread_mutex_unlock(&pool.owner);
    } else {
        inside = true;
        body(context, 0, count);
        inside = false;
    }
    PyEval_RestoreThread(state);
}

int native_threads(void) { return thread_count; }

/* The pool of a process without workers. The parent's may have been anywhere when it was copied. */
static void start_anew(void) {
    pthread_mutex_init(&pool.owner, NULL);
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.work, NULL);
    pthread_cond_init(&pool.finished, NULL);
    pool.started = pool.placed = 0;
    atomic_store(&pool.wanted, 0);
    atomic_store(&pool.sleepers, 0);
    atomic_store(&pool.caller_sleeps, false);
    atomic_store(&pool.ticket, 0);
    atomic_store(&pool.pieces, 0);
    inside = false;
}

/* Cores that this process may run on, two hardware threads of one core counted once. */
static int core_count(void) {
    int cores = 0;
#ifdef __linux__
    cpu_set_t allowed;
    if (!sched_getaffinity(0, sizeof allowed, &allowed)) {
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
            if (!CPU_ISSET(cpu, &allowed))
                continue;
            char path[96];
            int first = cpu;
            snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
            FILE *file = fopen(path, "r");
            if (file) {
                if (fscanf(file, "%d", &first) != 1)
                    first = cpu;
                fclose(file);
            }
            cores += first == cpu || first < 0 || first >= CPU_SETSIZE || !CPU_ISSET(first, &allowed);
        }
    }
#endif
    if (cores < 1)
        cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : cores;
}

int native_threads_init(void) {
    const char *asked = getenv("OMP_NUM_THREADS");
    int count = asked ? atoi(asked) : 0;
    count = count > 0 ? count : core_count();
    thread_count = count > MOST_THREADS ? MOST_THREADS : count;
    start_anew();
    return pthread_atfork(NULL, NULL, start_anew);
}

PyObject *native_set_threads(PyObject *module, PyObject *count) {
    long wanted = PyLong_AsLong(count);
    if (wanted == -1 && PyErr_Occurred())
        return NULL;
    if (wanted < 1)
        return PyErr_Format(PyExc_ValueError, "set_num_threads: expected a positive number, got %ld", wanted);
    thread_count = wanted > MOST_THREADS ? MOST_THREADS : (int)wanted;
    Py_RETURN_NONE;
}

PyObject *native_get_threads(PyObject *module, PyObject *unused) { return PyLong_FromLong(thread_count); }

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
    LINE = 64,
    SPINS = 2000, /* 50 us on a Zen 4, which takes 15 to fall asleep and be woken */
};

typedef struct {
    pthread_mutex_t owner; /* one parallel loop at a time; a second caller runs alone */
    pthread_mutex_t lock;  /* of the two conditions */
    pthread_cond_t work, finished;
    int started;                  /* workers, under owner */
    pthread_t threads[MOST_THREADS];
    int placed, beside;           /* so many workers may run anywhere but on processor `beside`; under owner */
    _Atomic int sleepers;
    /* A line of memory each for what workers watch, what is written before a loop alone, and what each of them writes. */
    _Alignas(LINE) _Atomic uint32_t loop; /* its number: a new one announces a loop that is ready to be taken part in */
    /* What the current loop is. Read between a ticket and the claim with it, which fails if it was another loop's. */
    _Alignas(LINE) _Atomic(native_body) body;
    _Atomic(void *) context;
    _Atomic npy_intp count, grain;
    _Atomic uint32_t grains, step, shares; /* step: grains of a piece */
    _Atomic int wanted;                    /* workers that take part */
    _Alignas(LINE) _Atomic uint32_t done;
    _Atomic bool caller_sleeps;
    /* For each thread the loop's number in the upper half, in the lower the next grain of the share that it begins with, the
       same one in each loop of one size: what the last loop left in a core's own cache is looked for there. A worker that
       comes late claims nothing. */
    _Alignas(LINE) _Atomic uint64_t tickets[MOST_THREADS];
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

/* The first grain of a thread's share. */
static inline uint32_t share_begin(uint32_t grains, uint32_t shares, uint32_t share) {
    return (uint32_t)((uint64_t)grains * share / shares);
}

/* Takes pieces of the current loop until there is none left: those of the thread's own share, then of the others'. */
static void take_part(uint32_t own) {
    for (uint32_t passed = 0;;) {
        const uint32_t shares = atomic_load(&pool.shares);
        if (passed >= shares)
            return;
        const uint32_t share = (own + passed) % shares;
        uint64_t ticket = atomic_load(&pool.tickets[share]);
        const uint32_t first = (uint32_t)ticket;
        native_body body = atomic_load(&pool.body);
        void *context = atomic_load(&pool.context);
        npy_intp count = atomic_load(&pool.count), grain = atomic_load(&pool.grain);
        const uint32_t grains = atomic_load(&pool.grains), step = atomic_load(&pool.step);
        if (atomic_load(&pool.shares) != shares)
            return; /* another loop has begun */
        const uint32_t last = share_begin(grains, shares, share + 1);
        if (first >= last) {
            passed++;
            continue;
        }
        /* Ever smaller pieces at the end, so that none waits long for the other's last one. */
        const uint32_t half = (last - first + 1) / 2, taken = half < step ? half : step;
        if (!atomic_compare_exchange_weak(&pool.tickets[share], &ticket, ticket + taken))
            continue;
        npy_intp begin = first * grain, end = begin + taken * grain;
        end = end < count ? end : count;
        inside = true;
        body(context, begin, end);
        inside = false;
        if (atomic_fetch_add(&pool.done, taken) + taken == grains && atomic_load(&pool.caller_sleeps)) {
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
        uint32_t now = atomic_load(&pool.loop);
        for (int i = 0; now == seen && i < SPINS; i++) {
            relax();
            now = atomic_load(&pool.loop);
        }
        if (now == seen) {
            pthread_mutex_lock(&pool.lock);
            atomic_fetch_add(&pool.sleepers, 1);
            while ((now = atomic_load(&pool.loop)) == seen)
                pthread_cond_wait(&pool.work, &pool.lock);
            atomic_fetch_sub(&pool.sleepers, 1);
            pthread_mutex_unlock(&pool.lock);
        }
        seen = now;
        if (index < atomic_load(&pool.wanted))
            take_part((uint32_t)index + 1);
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
    while (count / grain >= INT32_MAX)
        grain *= 2;
    const uint32_t grains = (uint32_t)((count + grain - 1) / grain), shares = (uint32_t)threads;
    start_workers(threads - 1);
    /* No worker may claim between the new fields and the new tickets: these have no grain until then. */
    const uint32_t loop = atomic_load(&pool.loop) + 1;
    const uint64_t ticket = (uint64_t)loop << 32;
    const uint32_t before = atomic_load(&pool.shares);
    for (uint32_t share = 0; share < (shares > before ? shares : before); share++)
        atomic_store(&pool.tickets[share], ticket | UINT32_MAX);
    atomic_store(&pool.body, body);
    atomic_store(&pool.context, context);
    atomic_store(&pool.count, count);
    atomic_store(&pool.grain, grain);
    atomic_store(&pool.step, (uint32_t)native_step(grains, shares));
    atomic_store(&pool.done, 0);
    atomic_store(&pool.grains, grains);
    atomic_store(&pool.shares, shares);
    atomic_store(&pool.wanted, threads - 1);
    for (uint32_t share = 0; share < shares; share++)
        atomic_store(&pool.tickets[share], ticket | share_begin(grains, shares, share));
    atomic_store(&pool.loop, loop);
    if (atomic_load(&pool.sleepers)) {
        place_workers();
        pthread_mutex_lock(&pool.lock);
        pthread_cond_broadcast(&pool.work);
        pthread_mutex_unlock(&pool.lock);
    }
    take_part(0);
    for (int i = 0; i < SPINS && atomic_load(&pool.done) != grains; i++)
        relax();
    if (atomic_load(&pool.done) != grains) {
        pthread_mutex_lock(&pool.lock);
        atomic_store(&pool.caller_sleeps, true);
        while (atomic_load(&pool.done) != grains)
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
    atomic_store(&pool.shares, 0);
    atomic_store(&pool.loop, 0);
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

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
    /* Grains up to which every second loop of one thread goes back where the second cache has less than so many bytes: 400 kB or so of each
       operand; on a Zen 4 what follows another loop took up to 3 % longer of more. */
    TO_AND_FRO = 13,
    LARGE_CACHE = 1 << 21,
    SPINS = 2000,  /* 50 us on a Zen 4, which takes 15 to fall asleep and be woken */
    YIELDS = 400,  /* of a worker after these, which leave the processor to whoever waits for it: Python takes 20 to 100 us between two loops */
};

/* A loop's number, and under it the next grain of a share: a ticket. One of an earlier loop is a share that nobody has touched:
   a thread then claims what is its own without asking another core for anything. A share is the same one in each loop of one size,
   so that what the last loop left in a core's own cache is looked for there. */
enum { GRAIN_BITS = 24 };
typedef struct {
    _Alignas(LINE) _Atomic uint64_t ticket;
} share_state;

/* What different threads write lies in different lines of memory: to bring one from core to core takes 40 to 250 ns. */
typedef struct {
    pthread_mutex_t owner; /* one parallel loop at a time; a second caller runs alone */
    pthread_mutex_t lock;  /* of the two conditions */
    pthread_cond_t work, finished;
    int started;                  /* workers, under owner */
    pthread_t threads[MOST_THREADS];
    int placed, beside;           /* so many workers may run anywhere but on processor `beside`; under owner */
    uint64_t loops, passes;       /* so far, and those over more than the caches hold, under owner */
    /* The current loop. What is read while `loop` stays the same is of that one. */
    _Alignas(LINE) _Atomic uint64_t loop; /* its number, which workers watch; 0 while the rest is written */
    _Atomic(native_body) body;
    _Atomic(void *) context;
    _Atomic npy_intp count, grain;
    _Atomic uint32_t grains, end, shares; /* `done` when all grains are */
    _Atomic int wanted;                   /* workers that take part */
    _Atomic bool back;                    /* each share is gone through from its end */
    _Alignas(LINE) _Atomic uint32_t done; /* grains, of all loops */
    _Atomic bool caller_sleeps;
    _Alignas(LINE) _Atomic int sleepers;
    share_state parts[MOST_THREADS];
} pool_state;

static pool_state pool;
static _Atomic int thread_count = 1; /* set with the GIL held, read without */
static npy_intp to_and_fro = TO_AND_FRO;
static _Thread_local bool inside;
static _Thread_local bool released; /* the GIL, by native_without_gil */

static inline void relax(void) {
#ifdef NATIVE_X86
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* What is stored first is seen first, and no store waits for another core. */
#define LOAD(field) atomic_load_explicit(&(field), memory_order_acquire)
#define STORE(field, value) atomic_store_explicit(&(field), value, memory_order_release)

npy_intp native_step(npy_intp grains, npy_intp threads) { return (grains + threads * PIECES - 1) / (threads * PIECES); }

/* A loop as one thread read it. */
typedef struct {
    uint64_t number;
    native_body body;
    void *context;
    npy_intp count, grain;
    uint32_t grains, end, shares;
    bool back;
} loop_state;

/* The first grain of a share. The caller's, who is there before any other thread, has one. */
static inline uint32_t share_begin(const loop_state *loop, uint32_t share) {
    return (uint32_t)(((uint64_t)loop->grains * share + loop->shares - 1) / loop->shares);
}

/* Ever smaller pieces at the end, so that none waits long for the other's last one. */
static inline uint32_t piece_of(const loop_state *loop, uint32_t first, uint32_t last) {
    const uint32_t half = (last - first + 1) / 2, step = (uint32_t)native_step(loop->grains, loop->shares);
    return half < step ? half : step;
}

static void run_piece(const loop_state *loop, uint32_t share, uint32_t first, uint32_t taken) {
    if (loop->back)
        first = share_begin(loop, share) + share_begin(loop, share + 1) - first - taken;
    const npy_intp begin = first * loop->grain, end = begin + taken * loop->grain;
    inside = true;
    loop->body(loop->context, begin, end < loop->count ? end : loop->count);
    inside = false;
}

/* Answers whether the loop is done. */
static bool say_done(const loop_state *loop, uint32_t finished) {
    if (!finished || atomic_fetch_add(&pool.done, finished) + finished != loop->end)
        return false;
    if (atomic_load(&pool.caller_sleeps)) {
        pthread_mutex_lock(&pool.lock);
        pthread_cond_signal(&pool.finished);
        pthread_mutex_unlock(&pool.lock);
    }
    return true;
}

/* Takes pieces of a loop until there is none left: those of the thread's own share, then of the others'. The caller's first one,
   of `begun` grains, is nobody else's, and has been run. */
static void take_part(const loop_state *loop, uint32_t own, uint32_t begun) {
    uint32_t finished = own ? 0 : begun;
    for (uint32_t passed = 0; passed < loop->shares; passed++) {
        const uint32_t share = (own + passed) % loop->shares, last = share_begin(loop, share + 1);
        for (;;) {
            uint64_t ticket = LOAD(pool.parts[share].ticket);
            if (LOAD(pool.loop) != loop->number)
                return; /* it is over, so all is said, and the ticket may be another one's */
            const uint32_t next = (uint32_t)ticket & ((1u << GRAIN_BITS) - 1);
            const uint32_t first = ticket >> GRAIN_BITS == loop->number ? next : share ? share_begin(loop, share) : begun;
            if (first >= last)
                break;
            const uint32_t taken = piece_of(loop, first, last);
            if (!atomic_compare_exchange_strong(&pool.parts[share].ticket, &ticket, (loop->number << GRAIN_BITS) + first + taken))
                continue;
            run_piece(loop, share, first, taken);
            finished += taken;
        }
        if (say_done(loop, finished))
            return;
        finished = 0;
    }
}

static inline bool is_new(uint64_t loop, uint64_t seen) { return loop && loop != seen; }

static void *worker(void *argument) {
    const int index = (int)(intptr_t)argument;
    uint64_t seen = 0;
    for (;;) {
        uint64_t now = LOAD(pool.loop);
        for (int i = 0; !is_new(now, seen) && i < SPINS + YIELDS; i++) {
            if (i < SPINS)
                relax();
            else
                sched_yield();
            now = LOAD(pool.loop);
        }
        if (!is_new(now, seen)) {
            pthread_mutex_lock(&pool.lock);
            atomic_fetch_add(&pool.sleepers, 1);
            while (!is_new(now = LOAD(pool.loop), seen))
                pthread_cond_wait(&pool.work, &pool.lock);
            atomic_fetch_sub(&pool.sleepers, 1);
            pthread_mutex_unlock(&pool.lock);
        }
        seen = now;
        const loop_state loop = {now, LOAD(pool.body), LOAD(pool.context), LOAD(pool.count), LOAD(pool.grain),
                                 LOAD(pool.grains), LOAD(pool.end), LOAD(pool.shares), LOAD(pool.back)};
        const bool wanted = index < LOAD(pool.wanted);
        if (wanted && LOAD(pool.loop) == now)
            take_part(&loop, (uint32_t)index + 1, piece_of(&loop, 0, share_begin(&loop, 1)));
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

/* Lets them run on that processor too, before the caller falls asleep: who waits elsewhere, behind another program's thread, with a
   piece that it has claimed, goes on at once. */
static void free_workers(void) {
#ifdef __linux__
    cpu_set_t allowed;
    if (!pool.placed || sched_getaffinity(0, sizeof allowed, &allowed))
        return;
    for (int i = 0; i < pool.started; i++)
        pthread_setaffinity_np(pool.threads[i], sizeof allowed, &allowed);
    pool.placed = 0;
#endif
}

static void wake_workers(void) {
    place_workers();
    pthread_mutex_lock(&pool.lock);
    pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.lock);
}

static void run_in_pieces(npy_intp count, npy_intp grain, npy_intp bytes, native_body body, void *context) {
    const int threads = atomic_load(&thread_count);
    while (count / grain >= (1 << GRAIN_BITS) - 1)
        grain *= 2;
    const uint32_t grains = (uint32_t)((count + grain - 1) / grain);
    start_workers(threads - 1);
    /* What the threads' caches hold stays there: pieces that one takes from another's share are then the same ones each time. */
    const bool back = bytes / threads > LARGE_CACHE && to_and_fro > TO_AND_FRO && ++pool.passes % 2;
    const loop_state loop = {++pool.loops, body, context, count, grain, grains, LOAD(pool.done) + grains, (uint32_t)threads, back};
    STORE(pool.loop, 0);
    STORE(pool.body, body);
    STORE(pool.context, context);
    STORE(pool.count, count);
    STORE(pool.grain, grain);
    STORE(pool.grains, grains);
    STORE(pool.end, loop.end);
    STORE(pool.shares, loop.shares);
    STORE(pool.wanted, threads - 1);
    STORE(pool.back, back);
    STORE(pool.loop, loop.number);
    const bool asleep = LOAD(pool.sleepers) != 0;
    if (asleep)
        wake_workers();
    else if (!pool.placed) /* the caller fell asleep in the last loop, and may have been woken where a worker runs */
        place_workers();
    /* What is written above is on its way to the others meanwhile: a claim would wait for it. */
    const uint32_t begun = piece_of(&loop, 0, share_begin(&loop, 1));
    run_piece(&loop, 0, 0, begun);
    /* Who fell asleep just then: either that thread has seen the loop, or this one sees the sleeper. */
    if (!asleep && atomic_fetch_add(&pool.sleepers, 0))
        wake_workers();
    take_part(&loop, 0, begun);
    for (int i = 0; i < SPINS && LOAD(pool.done) != loop.end; i++)
        relax();
    if (LOAD(pool.done) != loop.end) {
        free_workers();
        pthread_mutex_lock(&pool.lock);
        atomic_store(&pool.caller_sleeps, true);
        while (atomic_load(&pool.done) != loop.end)
            pthread_cond_wait(&pool.finished, &pool.lock);
        atomic_store(&pool.caller_sleeps, false);
        pthread_mutex_unlock(&pool.lock);
    }
}

static void run_whole(npy_intp count, npy_intp grain, native_body body, void *context) { body(context, 0, count); }

/* Every second loop goes from the last grain to the first, and so begins where the one before it ended: what that has left in the
   core's own cache is used before it is pushed out. On a Zen 4 it takes 3 to 7 % from an op on 400 kB that is repeated, 0 to 2 from chains
   of ops; on a Xeon with a second cache of 2 MB, which waits longer for the third, a ReLU of 1.6 MB took 80 us in the place of 120, a sum 140
   of 190, of 3.2 MB 205 and 315 of 250 and 365, and four ops in a chain 0.86 to 0.94 of their time. Threads do so with
   what is more than all their caches, where the bytes are known. */
static void run_to_and_fro(npy_intp count, npy_intp grain, native_body body, void *context) {
    static _Thread_local bool back;
    back = !back;
    if (!back || count <= grain || count / grain > to_and_fro) {
        body(context, 0, count);
        return;
    }
    for (npy_intp end = count, begin = (count - 1) / grain * grain; end; end = begin, begin -= begin ? grain : 0)
        body(context, begin, end);
}

/* A loop on the threads, or as `alone` runs it. */
static inline void run_loop(npy_intp count, npy_intp grain, npy_intp bytes, native_body body, void *context, __typeof__(run_whole) alone) {
    if (inside || count <= grain) {
        body(context, 0, count);
        return;
    }
    PyThreadState *state = released ? NULL : PyEval_SaveThread();
    if (thread_count > 1 && !pthread_mutex_trylock(&pool.owner)) {
        run_in_pieces(count, grain, bytes, body, context);
        pthread_mutex_unlock(&pool.owner);
    } else {
        inside = true;
        alone(count, grain, body, context);
        inside = false;
    }
    if (state)
        PyEval_RestoreThread(state);
}

void native_parallel(npy_intp count, npy_intp grain, native_body body, void *context) {
    run_loop(count, grain, 0, body, context, run_whole);
}

void native_passing(npy_intp count, npy_intp grain, npy_intp bytes, native_body body, void *context) {
    run_loop(count, native_even_grain(count, grain), bytes, body, context, run_to_and_fro);
}

void native_blocks(npy_intp count, npy_intp grain, npy_intp bytes, native_body body, void *context) {
    run_loop(count, grain, bytes, body, context, run_to_and_fro);
}

void native_evenly(npy_intp count, npy_intp grain, native_body body, void *context) { native_passing(count, grain, 0, body, context); }

void native_without_gil(npy_intp count, native_body body, void *context) {
    PyThreadState *state = PyEval_SaveThread();
    released = true;
    body(context, 0, count);
    released = false;
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
    atomic_store(&pool.loop, 0);
    pool.loops = 0;
    for (int i = 0; i < MOST_THREADS; i++)
        atomic_store(&pool.parts[i].ticket, 0);
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
#ifdef _SC_LEVEL2_CACHE_SIZE
    if (sysconf(_SC_LEVEL2_CACHE_SIZE) >= LARGE_CACHE)
        to_and_fro = NPY_MAX_INTP;
#endif
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

// One block after the other, one fiber for each of its CUDA threads: a thread runs until it waits or ends.
#pragma once
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <tuple>
#include <utility>
#ifndef __x86_64__
#include <ucontext.h>
#endif

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

extern "C" {
extern char __start_emulated_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_emulated_shared[] __attribute__((weak, visibility("hidden")));
}

namespace emulation {

enum { MAX_THREADS = 1024, STACK = 64 << 10, SHARED = 227 << 10 };

// Saved places to run on from

#ifdef __x86_64__
using place = void *;
extern "C" __attribute__((visibility("hidden"))) void emulation_switch(place *save, place load);
asm(".text\n.hidden emulation_switch\n.globl emulation_switch\n.type emulation_switch, @function\n"
    "emulation_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
    ".size emulation_switch, .-emulation_switch\n");
inline void prepare(place &made, char *stack, void (*entry)()) {
    void **top = (void **)(stack + STACK - 64);
    *--top = nullptr;  // where `entry` would return to; keeps the stack aligned as after a call
    *--top = (void *)entry;
    for (int i = 0; i < 6; i++)
        *--top = nullptr;
    made = top;
}
inline void go(place &save, place &load) { emulation_switch(&save, load); }
#else
using place = ucontext_t;
inline void prepare(place &made, char *stack, void (*entry)()) {
    getcontext(&made);
    made.uc_stack.ss_sp = stack;
    made.uc_stack.ss_size = STACK;
    made.uc_link = nullptr;
    makecontext(&made, entry, 0);
}
inline void go(place &save, place &load) { swapcontext(&save, &load); }
#endif

// The block that runs

struct fiber {
    place at;
    uint3 index;
    bool done;
    bool at_barrier;
    unsigned mask;  // the lanes that it waits for; 0 when it does not
};
inline fiber fibers[MAX_THREADS];
inline char *stacks;
inline place scheduler;
inline unsigned shared_bytes;
inline int current, threads, alive, arrived, votes, outcome;
inline bool progressed, failed;
inline char message[512];
inline uint3 block_index;
inline dim3 block_size, grid_size;
inline unsigned long long slots[MAX_THREADS];
alignas(256) inline unsigned char shared[SHARED];
inline void (*body)();

inline const uint3 &thread_index() { return fibers[current].index; }

inline void yield() { go(fibers[current].at, scheduler); }

[[noreturn]] inline void fail(const char *format, ...) {
    int used = snprintf(message, sizeof message, "block (%u, %u, %u), thread (%u, %u, %u): ", block_index.x,
                        block_index.y, block_index.z, thread_index().x, thread_index().y, thread_index().z);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message + used, sizeof message - used, format, arguments);
    va_end(arguments);
    failed = true;
    yield();
    abort();
}

inline void open_barrier() {
    arrived = 0;
    outcome = votes;
    votes = 0;
    progressed = true;
    for (int i = 0; i < threads; i++)
        fibers[i].at_barrier = false;
}

inline int vote_block(int flag) {
    fiber &me = fibers[current];
    me.at_barrier = true;
    votes += flag != 0;
    if (++arrived == alive)
        open_barrier();
    while (me.at_barrier)
        yield();
    return outcome;
}

inline void wait_block() { vote_block(0); }

inline void wait_warp(unsigned mask) {
    const int first = current / 32 * 32;
    fiber &me = fibers[current];
    if (!(mask >> (current - first) & 1u))
        fail("a warp's mask %08x leaves out the lane %d that waits on it", mask, current - first);
    me.mask = mask;
    bool all = true;
    for (int lane = 0; lane < 32; lane++) {
        if (!(mask >> lane & 1u))
            continue;
        if (first + lane >= threads || fibers[first + lane].done)
            fail("a warp's mask %08x names lane %d, which %s", mask, lane,
                 first + lane >= threads ? "this block does not have" : "has ended");
        all = all && fibers[first + lane].mask == mask;
    }
    if (all) {
        progressed = true;
        for (int lane = 0; lane < 32; lane++)
            if (mask >> lane & 1u)
                fibers[first + lane].mask = 0;
    }
    while (me.mask)
        yield();
}

inline void enter() {
    body();
    fibers[current].done = true;
    progressed = true;
    if (--alive && arrived == alive)
        open_barrier();
    yield();
    abort();
}

// Orders: as numbered, backwards, or shuffled from a seed

inline unsigned long long order_state;
inline unsigned random_below(unsigned count) {
    order_state = order_state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)((order_state >> 33) * count >> 31);
}
inline void arrange(unsigned *order, unsigned count, int kind) {
    for (unsigned i = 0; i < count; i++)
        order[i] = kind < 0 ? count - 1 - i : i;
    for (unsigned i = count; kind > 0 && i > 1; i--)
        std::swap(order[i - 1], order[random_below(i)]);
}

inline void run_block(int kind) {
    static unsigned order[MAX_THREADS];
    if (__start_emulated_shared)
        memset(__start_emulated_shared, 0xff, __stop_emulated_shared - __start_emulated_shared);
    memset(shared, 0xff, shared_bytes);
    alive = threads;
    arrived = votes = 0;
    for (int i = 0; i < threads; i++) {
        fiber &one = fibers[i];
        one.done = one.at_barrier = false;
        one.mask = 0;
        one.index = {i % block_size.x, i / block_size.x % block_size.y, i / (block_size.x * block_size.y)};
        prepare(one.at, stacks + (size_t)i * STACK, enter);
    }
    while (alive) {
        progressed = false;
        arrange(order, threads, kind);
        for (int i = 0; i < threads; i++) {
            current = order[i];
            fiber &one = fibers[current];
            if (one.done || one.at_barrier || one.mask)
                continue;
            go(scheduler, one.at);
            if (failed)
                return;
        }
        if (!progressed && alive) {
            int at_barrier = 0, in_warps = 0;
            for (int i = 0; i < threads; i++)
                at_barrier += fibers[i].at_barrier, in_warps += fibers[i].mask != 0;
            snprintf(message, sizeof message,
                     "block (%u, %u, %u): deadlock: of %d threads %d wait at __syncthreads, %d for lanes of their warp, "
                     "%d have ended", block_index.x, block_index.y, block_index.z, threads, at_barrier, in_warps,
                     threads - alive);
            failed = true;
            return;
        }
    }
}

// Runs `kernel` on parameters that lie in `parameters` as in a CUDA parameter buffer; NULL, or what went wrong.
template <class... A> struct launcher {
    static inline void (*kernel)(A...);
    static inline std::tuple<A...> *arguments;
    static void call() { std::apply(kernel, *arguments); }

    template <size_t... I> static std::tuple<A...> read(const char *parameters, std::index_sequence<I...>) {
        size_t offsets[sizeof...(A) + 1], end = 0;
        describe(nullptr, nullptr, offsets, &end);
        std::tuple<A...> made;
        (void)parameters;
        (memcpy((void *)&std::get<I>(made), parameters + offsets[I], sizeof(A)), ...);
        return made;
    }
    static int describe(size_t *sizes, size_t *alignments, size_t *offsets, size_t *end) {
        const size_t all_sizes[] = {sizeof(A)..., 0}, all_alignments[] = {alignof(A)..., 0};
        size_t at = 0;
        for (size_t i = 0; i < sizeof...(A); i++) {
            at = (at + all_alignments[i] - 1) / all_alignments[i] * all_alignments[i];
            if (sizes)
                sizes[i] = all_sizes[i], alignments[i] = all_alignments[i];
            if (offsets)
                offsets[i] = at;
            at += all_sizes[i];
        }
        if (end)
            *end = at;
        return sizeof...(A);
    }
};

template <class... A> int describe(void (*)(A...), size_t *sizes, size_t *alignments, size_t *end) {
    return launcher<A...>::describe(sizes, alignments, nullptr, end);
}

template <class... A> const char *run(void (*kernel)(A...), const unsigned *shape, const char *parameters, int kind) {
    using one = launcher<A...>;
    one::kernel = kernel;
    auto arguments = one::read(parameters, std::index_sequence_for<A...>{});
    one::arguments = &arguments;
    body = one::call;
    grid_size = dim3(shape[0], shape[1], shape[2]);
    block_size = dim3(shape[3], shape[4], shape[5]);
    threads = shape[3] * shape[4] * shape[5];
    shared_bytes = shape[6];
    if (!stacks)
        stacks = (char *)mmap(nullptr, (size_t)MAX_THREADS * STACK, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    failed = false;
    order_state = (unsigned long long)kind;
    const unsigned blocks = shape[0] * shape[1] * shape[2];
    unsigned *order = (unsigned *)malloc(blocks * sizeof *order);
    arrange(order, blocks, kind);
    for (unsigned i = 0; i < blocks && !failed; i++) {
        block_index = {order[i] % shape[0], order[i] / shape[0] % shape[1], order[i] / (shape[0] * shape[1])};
        run_block(kind);
    }
    free(order);
    return failed ? message : nullptr;
}

}  // namespace emulation

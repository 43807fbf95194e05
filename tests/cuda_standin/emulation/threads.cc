// The scheduler behind threads.h: fibers, barriers, and the order in which blocks and threads run. One kernel runs at a time.
#include "threads.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace emulation {

int current;
uint3 indices[MAX_THREADS], block_index;
dim3 block_size, grid_size;
unsigned long long slots[MAX_THREADS];
alignas(256) unsigned char shared[SHARED];
const char *parameters;

enum { STACK = 64 << 10 };

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
void prepare(place &made, char *stack, void (*entry)()) {
    void **top = (void **)(stack + STACK - 64);
    *--top = nullptr;  // where `entry` would return to; keeps the stack aligned as after a call
    *--top = (void *)entry;
    for (int i = 0; i < 6; i++)
        *--top = nullptr;
    made = top;
}
void go(place &save, place &load) { emulation_switch(&save, load); }
#else
using place = ucontext_t;
void prepare(place &made, char *stack, void (*entry)()) {
    getcontext(&made);
    made.uc_stack.ss_sp = stack;
    made.uc_stack.ss_size = STACK;
    made.uc_link = nullptr;
    makecontext(&made, entry, 0);
}
void go(place &save, place &load) { swapcontext(&save, &load); }
#endif

// The block that runs

struct fiber {
    place at;
    bool done;
    bool at_barrier;
    unsigned mask;  // the lanes that it waits for; 0 when it does not
};
fiber fibers[MAX_THREADS];
char *stacks;
place scheduler;
unsigned shared_bytes;
int threads, alive, arrived, votes, outcome;
bool progressed, failed;
char message[512];
char *own_shared, *own_shared_end;  // what the kernel that runs declares __shared__
void (*body)();
alignas(256) char buffer[32 << 10];

void yield() { go(fibers[current].at, scheduler); }

void fail(const char *format, ...) {
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

void open_barrier() {
    arrived = 0;
    outcome = votes;
    votes = 0;
    progressed = true;
    for (int i = 0; i < threads; i++)
        fibers[i].at_barrier = false;
}

int vote_block(int flag) {
    fiber &me = fibers[current];
    me.at_barrier = true;
    votes += flag != 0;
    if (++arrived == alive)
        open_barrier();
    while (me.at_barrier)
        yield();
    return outcome;
}

void wait_warp(unsigned mask) {
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

void enter() {
    body();
    fibers[current].done = true;
    progressed = true;
    if (--alive && arrived == alive)
        open_barrier();
    yield();
    abort();
}

// Orders: as numbered, backwards, or shuffled from a seed

unsigned long long order_state;
unsigned random_below(unsigned count) {
    order_state = order_state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)((order_state >> 33) * count >> 31);
}
void arrange(unsigned *order, unsigned count, int kind) {
    for (unsigned i = 0; i < count; i++)
        order[i] = kind < 0 ? count - 1 - i : i;
    for (unsigned i = count; kind > 0 && i > 1; i--)
        std::swap(order[i - 1], order[random_below(i)]);
}

void run_block(int kind) {
    static unsigned order[MAX_THREADS];
    if (own_shared)
        memset(own_shared, 0xff, own_shared_end - own_shared);
    memset(shared, 0xff, shared_bytes);
    alive = threads;
    arrived = votes = 0;
    for (int i = 0; i < threads; i++) {
        fiber &one = fibers[i];
        one.done = one.at_barrier = false;
        one.mask = 0;
        indices[i] = {i % block_size.x, i / block_size.x % block_size.y, i / (block_size.x * block_size.y)};
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

const char *run(void (*kernel)(), const unsigned *shape, const char *given, size_t size, int kind, char *start, char *stop) {
    if (size > sizeof buffer)
        return "more parameters than a launch takes";
    memcpy(buffer, given, size);
    parameters = buffer;
    body = kernel;
    own_shared = start, own_shared_end = stop;
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

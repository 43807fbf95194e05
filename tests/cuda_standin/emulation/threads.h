// One block after the other, one fiber for each of its CUDA threads: a thread runs until it waits or ends. What a kernel
// sees of it; threads.cc, compiled once for all kernels, has the rest.
#pragma once
#include <cstddef>
#include <cstring>
#include <utility>

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

enum { MAX_THREADS = 1024, SHARED = 227 << 10 };

#pragma GCC visibility push(default)

extern int current;  // the thread that runs
extern uint3 indices[MAX_THREADS], block_index;
extern dim3 block_size, grid_size;
extern unsigned long long slots[MAX_THREADS];
extern unsigned char shared[SHARED];
extern const char *parameters;

inline const uint3 &thread_index() { return indices[current]; }

[[noreturn]] void fail(const char *format, ...);
int vote_block(int flag);
void wait_warp(unsigned mask);

// Runs `body` in each thread, on `size` bytes of parameters; NULL, or what went wrong. The kernel's own shared memory lies
// between `start` and `stop`.
const char *run(void (*body)(), const unsigned *shape, const char *given, size_t size, int order, char *start, char *stop);

#pragma GCC visibility pop

inline void wait_block() { vote_block(0); }

// A kernel's parameters, as they lie in a CUDA parameter buffer.
template <class... A> struct launcher {
    static inline void (*kernel)(A...);
    struct places {
        size_t sizes[sizeof...(A) + 1], alignments[sizeof...(A) + 1], at[sizeof...(A) + 1], end;
    };
    static constexpr places placed() {
        places made{{sizeof(A)..., 0}, {alignof(A)..., 0}, {}, 0};
        for (size_t i = 0; i < sizeof...(A); i++) {
            made.at[i] = (made.end + made.alignments[i] - 1) / made.alignments[i] * made.alignments[i];
            made.end = made.at[i] + made.sizes[i];
        }
        return made;
    }
    static constexpr places where = placed();
    template <size_t... I> static void spread(std::index_sequence<I...>) {
        kernel(*(const A *)(parameters + where.at[I])...);
    }
    static void call() { spread(std::index_sequence_for<A...>{}); }
};

template <class... A> int describe(void (*)(A...), size_t *sizes, size_t *alignments, size_t *end) {
    constexpr auto &where = launcher<A...>::where;
    memcpy(sizes, where.sizes, sizeof...(A) * sizeof *sizes);
    memcpy(alignments, where.alignments, sizeof...(A) * sizeof *alignments);
    *end = where.end;
    return sizeof...(A);
}

template <class... A> const char *run(void (*kernel)(A...), const unsigned *shape, const char *given, int order) {
    using one = launcher<A...>;
    one::kernel = kernel;
    return run(one::call, shape, given, one::where.end, order, __start_emulated_shared, __stop_emulated_shared);
}

}  // namespace emulation

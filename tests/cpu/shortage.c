/* Preloaded: the allocations that code between two addresses asks for fail, one of them or all from one on. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_memalign(size_t, size_t);

static char *first, *last;
static _Atomic long asked, number = -1;
static int all;

/* Lets fail what is asked for as number `which`, and all after it if `also`; which is -1 for none. How many were asked for. */
long shortage(long which, int also, char *begin, char *end) {
    first = begin;
    last = end;
    all = also;
    number = which;
    return atomic_exchange(&asked, 0);
}

static int fails(char *caller) {
    if (caller < first || caller >= last || number < 0)
        return 0;
    const long at = atomic_fetch_add(&asked, 1);
    if (at != number && !(all && at > number))
        return 0;
    errno = ENOMEM;
    return 1;
}

#define CALLER ((char *)__builtin_return_address(0))
void *malloc(size_t size) { return fails(CALLER) ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return fails(CALLER) ? NULL : __libc_calloc(count, size); }
void *aligned_alloc(size_t alignment, size_t size) { return fails(CALLER) ? NULL : __libc_memalign(alignment, size); }
void *mmap64(void *at, size_t size, int rights, int flags, int file, off_t offset) {
    return fails(CALLER) ? MAP_FAILED : (void *)syscall(SYS_mmap, at, size, rights, flags, file, offset);
}

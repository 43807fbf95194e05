/* Which way a convolution is made: by fixed rules, or where programs ask for it the fastest of those that fit, measured once. */
#include "conv_ways.h"

#include "native.h"

#include <math.h>
#include <string.h>
#include <time.h>

enum {
    SETS = 64, EACH = 8, /* choices that are kept: of more, the oldest of a set goes */
    ROUNDS = 3,          /* that each way runs at least, after one that brings everything into the caches, */
    MOST_ROUNDS = 20,    /* and at most, */
    SHORT = 5,           /* where all of them took so many milliseconds; */
    LONG = 300,          /* after so many, what has been measured is enough */
};

static const char *const WAYS[CONV_WAYS] = {"product", "winograd", "depthwise", "folded", "small", "taps", "wide", "direct", "tiles"};
static const char *const WANTED[] = {"conv", "conv_input_gradient", "conv_weight_gradient"};

static bool measures;
static conv_way forced = CONV_WAYS;

/* Fixed rules */

static bool fits(const convolution *c, conv_way way) {
    switch (way) {
    case CONV_PRODUCT:
        return pointwise_fits(c);
    case CONV_WINOGRAD:
        return winograd_fits(c);
    case CONV_DEPTHWISE:
        return depthwise_fits(c);
    case CONV_FOLDED:
        return folded_fits(c);
    case CONV_SMALL:
        return small_fits(c);
    case CONV_WIDE:
        return wide_fits(c);
    default:
        return true;
    }
}

conv_way conv_ruled(const convolution *c) {
    if (forced != CONV_WAYS && fits(c, forced))
        return forced;
    if (small_fits(c) && small_pays(c))
        return CONV_SMALL;
    if (depthwise_fits(c))
        return CONV_DEPTHWISE;
    if (pointwise_fits(c) && pointwise_pays(c))
        return CONV_PRODUCT;
    if (winograd_fits(c) && winograd_pays(c))
        return CONV_WINOGRAD;
    return folded_fits(c) && folded_pays(c) ? CONV_FOLDED : CONV_TAPS;
}

bool conv_make(const convolution *c, conv_way way) {
    switch (way) {
    case CONV_PRODUCT:
        return pointwise_run(c);
    case CONV_WINOGRAD:
        return winograd_run(c);
    case CONV_DEPTHWISE:
        return depthwise_run(c);
    case CONV_FOLDED:
        return folded_run(c);
    case CONV_SMALL:
        return small_run(c);
    default:
        return taps_run(c, (taps_way)(way - CONV_TAPS));
    }
}

/* What was measured. All of it is read and written with the GIL, which is let go of only while a convolution runs. */

enum { NUMBERS = 9 + 6 * 3 };

typedef struct {
    ptrdiff_t numbers[NUMBERS];
    enum { FREE, UNDER_WAY, KNOWN } state;
    conv_way way;
} choice;

static choice choices[SETS][EACH];
static unsigned char oldest[SETS];
static Py_ssize_t measured;

static size_t sizes_of(const convolution *c, ptrdiff_t *numbers) {
    const ptrdiff_t first[9] = {c->wanted, c->type, native_chosen_isa, native_threads(), c->bias != NULL,
                                c->images, c->channels, c->outs, c->groups};
    const ptrdiff_t *const rest[6] = {c->sizes, c->counts, c->kernel, c->stride, c->padding, c->dilation};
    memcpy(numbers, first, sizeof first);
    for (int i = 0; i < 6; i++)
        memcpy(numbers + 9 + 3 * i, rest[i], 3 * sizeof **rest);
    uint64_t mixed = 0;
    for (int i = 0; i < NUMBERS; i++)
        mixed = (mixed ^ (uint64_t)numbers[i]) * 0x9e3779b97f4a7c15u;
    return (size_t)(mixed >> 32) % SETS;
}

static choice *find(const ptrdiff_t *numbers, size_t set) {
    for (choice *one = choices[set]; one < choices[set] + EACH; one++)
        if (one->state != FREE && !memcmp(one->numbers, numbers, sizeof one->numbers))
            return one;
    return NULL;
}

bool conv_recall(const convolution *c, conv_way *way) {
    ptrdiff_t numbers[NUMBERS];
    if (!measures || forced != CONV_WAYS)
        return false;
    const size_t set = sizes_of(c, numbers);
    choice *one = find(numbers, set);
    if (one) {
        *way = one->state == KNOWN ? one->way : *way;
        return false;
    }
    one = &choices[set][oldest[set]++ % EACH];
    memcpy(one->numbers, numbers, sizeof numbers);
    one->state = UNDER_WAY;
    return true;
}

static double milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

conv_way conv_measure(const convolution *c, conv_way ruled) {
    double least[CONV_WAYS], best = HUGE_VAL;
    bool runs[CONV_WAYS];
    for (conv_way way = 0; way < CONV_WAYS; way++) {
        runs[way] = way == ruled || fits(c, way);
        least[way] = HUGE_VAL;
    }
    const double start = milliseconds();
    double spent = 0;
    for (int round = 0; round <= MOST_ROUNDS && (round <= ROUNDS || spent < SHORT) && (!round || spent < LONG); round++) {
        for (conv_way way = 0; way < CONV_WAYS; way++) {
            if (!runs[way] || least[way] > 2 * best)
                continue;
            const double before = milliseconds();
            runs[way] = conv_make(c, way); /* false for want of memory, or where numbers are not finite: this way is left out */
            const double took = milliseconds() - before;
            least[way] = runs[way] && (round == 1 || took < least[way]) ? took : runs[way] ? least[way] : HUGE_VAL;
        }
        best = HUGE_VAL;
        for (conv_way way = 0; way < CONV_WAYS; way++)
            best = least[way] < best ? least[way] : best;
        spent = milliseconds() - start;
    }
    conv_way chosen = ruled;
    for (conv_way way = 0; way < CONV_WAYS; way++)
        if (least[way] < (chosen == ruled ? 0.97 : 1) * least[chosen]) /* by less it is as likely to be chance */
            chosen = way;

    ptrdiff_t numbers[NUMBERS];
    choice *one = find(numbers, sizes_of(c, numbers));
    if (one) { /* unless others have taken its place */
        one->way = chosen;
        one->state = KNOWN;
    }
    measured++;
    return chosen;
}

void conv_forget(void) { memset(choices, 0, sizeof choices); }

/* Functions of the module */

PyObject *native_conv_measures(PyObject *module, PyObject *wanted) {
    int is_wanted = wanted == Py_None ? measures : PyObject_IsTrue(wanted);
    if (is_wanted < 0)
        return NULL;
    measures = is_wanted;
    return PyBool_FromLong(measures);
}

PyObject *native_conv_way(PyObject *module, PyObject *name) {
    const char *letters = name == Py_None ? NULL : PyUnicode_AsUTF8(name);
    if (PyErr_Occurred())
        return NULL;
    conv_way way = letters ? 0 : CONV_WAYS;
    while (way < CONV_WAYS && strcmp(letters, WAYS[way]))
        way++;
    if (letters && way == CONV_WAYS)
        return PyErr_Format(PyExc_ValueError, "native.conv_way: expected a way to make a convolution, or None, got '%s'", letters);
    forced = way;
    PyObject *made = PyTuple_New(CONV_WAYS);
    for (int i = 0; made && i < CONV_WAYS; i++) {
        PyObject *one = PyUnicode_FromString(WAYS[i]);
        if (!one)
            Py_CLEAR(made);
        else
            PyTuple_SET_ITEM(made, i, one);
    }
    return made;
}

PyObject *native_conv_choices(PyObject *module, PyObject *unused) {
    PyObject *made = PyList_New(0);
    for (int i = 0; made && i < SETS * EACH; i++) {
        const choice *one = &choices[i / EACH][i % EACH];
        if (one->state != KNOWN)
            continue;
        PyObject *item = Py_BuildValue("(ss)", WANTED[one->numbers[0]], WAYS[one->way]);
        if (!item || PyList_Append(made, item))
            Py_CLEAR(made);
        Py_XDECREF(item);
    }
    return made ? Py_BuildValue("(nN)", measured, made) : NULL;
}

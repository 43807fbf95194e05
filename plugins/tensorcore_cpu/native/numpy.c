/* NumPy's table of functions: all files use it, this one has it and fills it. */
#define NATIVE_NUMPY
#include "native.h"

int native_numpy_init(void) {
    import_array1(-1);
    return 0;
}

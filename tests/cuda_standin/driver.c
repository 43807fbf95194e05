// A driver library that answers how many devices there are, for probes on machines without one.
#include <stdlib.h>

int cuInit(unsigned flags) { return flags ? 1 : 0; }

int cuDeviceGetCount(int *count) {
    const char *wanted = getenv("TENSORCORE_STANDIN_DEVICES");
    *count = wanted ? atoi(wanted) : 2;
    return *count ? 0 : 100;
}

// A driver library that answers how many devices there are, for probes on machines without one.
#include <stdlib.h>

int cuInit(unsigned flags) { return flags ? 1 : 0; }

int cuDeviceGetCount(int *count) {
    const char *wanted = getenv("TENSORCORE_STANDIN_DEVICES");
    *count = wanted ? atoi(wanted) : 2;
    return *count ? 0 : 100;
}

/* The management library, which starts nothing; one device may be cut into parts. */
int nvmlInit_v2(void) { return getenv("TENSORCORE_STANDIN_WITHOUT_NVML") ? 9 : 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) {
    int found;
    cuDeviceGetCount(&found);
    *count = (unsigned)found;
    return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    *device = (void *)(size_t)(index + 1);
    return 0;
}
int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *later) {
    *now = *later = getenv("TENSORCORE_STANDIN_MIG") != NULL;
    return device ? 0 : 2;
}

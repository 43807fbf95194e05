// Indices that arrays name: one that lies outside its dim is reported in host memory, which the device writes.
struct report {
    int64 set, index, size;
};
// The index counted from the front, or -1 with a report.
template <class I> __device__ __forceinline__ int64 inside(I given, int64 size, bool negative, report *fault) {
    const int64 index = given, at = negative && index < 0 ? index + size : index;
    if (at >= 0 && at < size)
        return at;
    fault->index = index;
    fault->size = size;
    fault->set = 1;
    return -1;
}

// The functions of libcublas that the plugin calls by itself, which is only in a capture: they go on to what was registered.
#include <stddef.h>

#define OPEN extern "C" __attribute__((visibility("default")))
typedef int (*setter)(void *, void *);
typedef int (*workspace)(void *, void *, size_t);
typedef int (*gemm)(void *, int, int, int, int, int, const void *, const void *, int, int, const void *, int, int, const void *,
                    void *, int, int, int, int);
typedef int (*batched)(void *, int, int, int, int, int, const void *, const void *, int, int, long long, const void *, int, int,
                       long long, const void *, void *, int, int, long long, int, int, int);
static setter set_stream;
static workspace set_workspace;
static gemm product;
static batched products;

OPEN void standin_register(setter a, workspace b, gemm c, batched d) {
    set_stream = a, set_workspace = b, product = c, products = d;
}
OPEN int cublasSetStream_v2(void *handle, void *stream) { return set_stream(handle, stream); }
OPEN int cublasSetWorkspace_v2(void *handle, void *at, size_t size) { return set_workspace(handle, at, size); }
OPEN int cublasGemmEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *A, int At, int lda,
                      const void *B, int Bt, int ldb, const void *beta, void *C, int Ct, int ldc, int compute, int algo) {
    return product(handle, ta, tb, m, n, k, alpha, A, At, lda, B, Bt, ldb, beta, C, Ct, ldc, compute, algo);
}
OPEN int cublasGemmStridedBatchedEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *A, int At,
                                    int lda, long long As, const void *B, int Bt, int ldb, long long Bs, const void *beta,
                                    void *C, int Ct, int ldc, long long Cs, int count, int compute, int algo) {
    return products(handle, ta, tb, m, n, k, alpha, A, At, lda, As, B, Bt, ldb, Bs, beta, C, Ct, ldc, Cs, count, compute, algo);
}

"""The kernels' text: C expressions of elements ``a``, ``b`` and ``c``, and the programs that they are put into."""

__all__ = ["BINARY", "CTYPES", "FLOATS", "PROGRAMS", "TESTS", "UNARY"]

CTYPES = {"bool": "uchar", "uint8": "uchar", "int8": "char", "int16": "short", "int32": "int", "int64": "long",
          "float32": "float", "float64": "double"}  # fmt: skip

# C's own functions, of floats alone.
FLOATS = {
    name: f"{name}(a)"
    for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1",
        "floor", "log", "log10", "log1p", "log2", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
    )
} | {
    "abs": "fabs(a)", "round": "rint(a)", "reciprocal": "1 / a", "sigmoid": "1 / (1 + exp(-a))", "div": "a / b",
    "atan2": "atan2(a, b)", "copysign": "copysign(a, b)", "fmax": "fmax(a, b)",
    "fmin": "fmin(a, b)", "fmod": "fmod(a, b)", "hypot": "hypot(a, b)", "nextafter": "nextafter(a, b)",
}  # fmt: skip
UNARY = {"neg": "-a", "positive": "a", "square": "a * a", "relu": "a != a ? a : a > 0 ? a : 0",
         "clone": "a", "contiguous": "a"}  # fmt: skip
BINARY = {"add": "a + b", "sub": "a - b", "mul": "a * b", "maximum": "a != a || a > b ? a : b",
          "minimum": "a != a || a < b ? a : b"}  # fmt: skip
# These answer with bools.
TESTS = {"eq": "a == b", "ne": "a != b", "lt": "a < b", "le": "a <= b", "gt": "a > b", "ge": "a >= b",
         "logical_and": "a && b", "logical_or": "a || b", "logical_xor": "!a != !b", "logical_not": "!a",
         "isnan": "a != a", "isfinite": "a - a == 0", "isinf": "a == a && a - a != 0"}  # fmt: skip

PROGRAMS = {
    "elementwise": """
__kernel void run(__global {out} *out, __global const {a} *pa, __global const {b} *pb, __global const {c} *pc) {{
    size_t i = get_global_id(0); {a} a = pa[i]; {b} b = pb[i]; {c} c = pc[i];
    out[i] = {store};
}}""",
    "gather": """
__kernel void run(__global {t} *out, __global const {t} *data, __global const long *places) {{
    size_t i = get_global_id(0); out[i] = data[places[i]];
}}""",
    "scatter": """
__kernel void run(__global {t} *data, __global const {t} *values, __global const long *places) {{
    size_t i = get_global_id(0); data[places[i]] = values[i];
}}""",
    "reduce": """
__kernel void run(__global {out} *out, __global const {a} *x, long n) {{
    size_t i = get_global_id(0); {wide} a = {start};
    for (long k = 0; k < n; k++) {{ {wide} b = x[i * n + k]; a = {step}; }}
    out[i] = ({out})a;
}}""",
    "matmul": """
__kernel void run(__global {t} *out, __global const {t} *x, __global const {t} *y, long m, long k, long n) {{
    size_t j = get_global_id(0), i = get_global_id(1), batch = get_global_id(2); {t} sum = 0;
    x += (batch * m + i) * k; y += batch * k * n + j;
    for (long l = 0; l < k; l++) sum += x[l] * y[l * n];
    out[(batch * m + i) * n + j] = sum;
}}""",
}

"""The compiled rows once more as JAX programs: the same sizes, the same arithmetic, the whole step in one ``jit``.

Each text defines ``step``, which returns when the result is there. Weights begin with the scales that PyTorch uses, so that no
number overflows; they are not the same numbers.
"""

from __future__ import annotations

__all__ = ["BRANCHES", "CHAIN", "CHEAP", "GPT", "LENET", "PERCEPTRON", "TINY"]

CHAIN = """
import jax, jax.numpy as jnp
x, y = jax.random.uniform(jax.random.key(0), ({count},)), jax.random.uniform(jax.random.key(1), ({count},))
work = jax.jit(lambda x, y: jax.nn.sigmoid(jnp.tanh((jnp.exp(x * y + 1.0) - y) * 0.5) + x) * y - x)

def step():
    return work(x, y).block_until_ready()
"""
CHEAP = """
import jax, jax.numpy as jnp
x, y = jax.random.uniform(jax.random.key(0), ({count},)), jax.random.uniform(jax.random.key(1), ({count},))

def work(x, y):
    t = jnp.maximum(x * y + x, 0.0) * 1.5 - y
    return jnp.sqrt(t * t + 0.1) * x + y

work = jax.jit(work)

def step():
    return work(x, y).block_until_ready()
"""
BRANCHES = """
import jax, jax.numpy as jnp
x, y, z = (jax.random.uniform(jax.random.key(i), ({count},)) + 0.1 * (i == 2) for i in range(3))

def work(x, y, z):
    share = jax.nn.sigmoid(x)
    slope = share * (1 + x * (1 - share))
    near = jnp.exp(jnp.square((y - z) / z) * -0.5)
    return jnp.where(near > 0.9, slope * y, share * z) + near

work = jax.jit(work)

def step():
    return work(x, y, z).block_until_ready()
"""
TINY = """
import jax
x = jax.random.uniform(jax.random.key(0), (8,))

def work(x):
    for _ in range(50):
        x = x * 1.01 + 0.5
    return x

work = jax.jit(work)

def step():
    return work(x).block_until_ready()
"""
_HEAD = """
import jax, jax.numpy as jnp
from jax import lax
keys = iter(jax.random.split(jax.random.key(8), 99))

def uniform(bound, *shape):
    return jax.random.uniform(next(keys), shape, minval=-bound, maxval=bound)

def linear(inputs, outputs):
    return uniform(inputs ** -0.5, inputs, outputs), uniform(inputs ** -0.5, outputs)

def cross_entropy(scores, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(scores), labels[:, None], 1).mean()
"""
_SGD = """
labels = jax.random.randint(next(keys), (len(images),), 0, 10)
moved = jax.tree.map(jnp.zeros_like, params)

def work(params, moved, x, y):
    g = jax.grad(lambda params: cross_entropy(scores_of(params, x), y))(params)
    moved = jax.tree.map(lambda m, g: 0.9 * m + g, moved, g)
    return jax.tree.map(lambda p, m: p - 0.01 * m, params, moved), moved

work = jax.jit(work, donate_argnums=(0, 1))

def step():
    global params, moved
    params, moved = work(params, moved, images, labels)
    jax.block_until_ready(params)
"""
PERCEPTRON = (
    _HEAD
    + """
params = [linear(*sizes) for sizes in [(784, 256), (256, 128), (128, 10)]]
images = uniform(1.0, 128, 784)

def scores_of(params, x):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return x @ w + b
"""
    + _SGD
)
LENET = (
    _HEAD
    + """
def conv(inputs, outputs):
    bound = (25 * inputs) ** -0.5
    return uniform(bound, outputs, inputs, 5, 5), uniform(bound, outputs)

convs = [conv(1, 6), conv(6, 16)]
params = convs, [linear(*sizes) for sizes in [(400, 120), (120, 84), (84, 10)]]
images = uniform(1.0, 64, 1, 28, 28)

def scores_of(params, x):
    convs, layers = params
    for (w, b), padding in zip(convs, (2, 0)):
        x = lax.conv_general_dilated(x, w, (1, 1), [(padding, padding)] * 2) + b[:, None, None]
        x = lax.reduce_window(jax.nn.relu(x), -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    x = x.reshape(len(x), -1)
    for w, b in layers[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = layers[-1]
    return x @ w + b
"""
    + _SGD
)
GPT = (
    _HEAD
    + """
width, heads, batch, length = 128, 4, 16, 64

def norm():
    return jnp.ones(width), jnp.zeros(width)

def layer():
    return norm(), linear(width, 3 * width), linear(width, width), norm(), linear(width, 4 * width), linear(4 * width, width)

embedded = jax.random.normal(next(keys), (65, width)), jax.random.normal(next(keys), (64, width))
params = embedded, [layer() for _ in range(4)], norm(), linear(width, 65)
tokens = jax.random.randint(next(keys), (batch, length), 0, 65)
following = jax.random.randint(next(keys), (batch, length), 0, 65)

def normed(x, scales):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scales[0] + scales[1]

def loss_of(params, tokens, following):
    (words, places), layers, last, scores = params
    x = words[tokens] + places[jnp.arange(length)]
    unseen = ~jnp.tril(jnp.ones((length, length), bool))
    for norm1, qkv, out, norm2, wide, narrow in layers:
        parts = jnp.split(normed(x, norm1) @ qkv[0] + qkv[1], 3, -1)
        q, k, v = [part.reshape(batch, length, heads, width // heads).swapaxes(1, 2) for part in parts]
        weights = jnp.where(unseen, -jnp.inf, q @ k.swapaxes(2, 3) * (width // heads) ** -0.5)
        seen = (jax.nn.softmax(weights) @ v).swapaxes(1, 2).reshape(batch, length, width)
        x = x + seen @ out[0] + out[1]
        x = x + jax.nn.gelu(normed(x, norm2) @ wide[0] + wide[1], approximate=False) @ narrow[0] + narrow[1]
    made = normed(x, last) @ scores[0] + scores[1]
    return cross_entropy(made.reshape(-1, 65), following.reshape(-1))

moments = jax.tree.map(jnp.zeros_like, params), jax.tree.map(jnp.zeros_like, params)

def work(params, moments, count, tokens, following):
    g = jax.grad(loss_of)(params, tokens, following)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], g)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, moments[1], g)

    def moved(p, m, v):
        return p * (1 - 1e-5) - 1e-3 * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-8)

    return jax.tree.map(moved, params, first, second), (first, second), count + 1

work, count = jax.jit(work, donate_argnums=(0, 1)), jnp.float32(1)

def step():
    global params, moments, count
    params, moments, count = work(params, moments, count, tokens, following)
    jax.block_until_ready(params)
"""
)

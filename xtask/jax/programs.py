"""Functions of JAX's libraries and the inputs to try them on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

RNG = np.random.default_rng(20)


@dataclass
class Program:
    """A function and its inputs."""

    name: str
    function: Callable[..., Any]
    inputs: tuple[Any, ...]


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Numbers around zero."""
    return RNG.standard_normal(shape).astype(dtype)


def positive(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Numbers from a quarter to three."""
    return RNG.uniform(0.25, 3.0, shape).astype(dtype)


def integers(*shape: int, high: int = 7, dtype: str = "int32") -> np.ndarray:
    """Whole numbers from zero."""
    return RNG.integers(0, high, shape).astype(dtype)


def matrix(size: int, dtype: str = "float32") -> np.ndarray:
    """A well-conditioned matrix."""
    return (np.eye(size) * 3 + RNG.standard_normal((size, size)) * 0.5).astype(dtype)


def spd(size: int, dtype: str = "float32") -> np.ndarray:
    """A symmetric, positive definite matrix."""
    half = RNG.standard_normal((size, size))
    return (half @ half.T + size * np.eye(size)).astype(dtype)


def numpy_programs() -> Iterator[Program]:
    """Functions of jax.numpy."""
    a, b, v = normal(4, 6), normal(6, 5), normal(12)
    yield Program("numpy.matmul", jnp.matmul, (a, b))
    yield Program("numpy.matmul_batched", jnp.matmul, (normal(3, 4, 6), normal(3, 6, 2)))
    yield Program("numpy.matmul_bf16", jnp.matmul, (a.astype(jnp.bfloat16), b.astype(jnp.bfloat16)))
    yield Program("numpy.einsum", lambda x, y: jnp.einsum("bij,bkj->bik", x, y), (normal(2, 3, 4), normal(2, 5, 4)))
    yield Program("numpy.tensordot", lambda x, y: jnp.tensordot(x, y, axes=([1, 0], [0, 1])), (a, normal(6, 4, 2)))
    yield Program("numpy.sort", jnp.sort, (a,))
    yield Program("numpy.argsort", lambda x: jnp.argsort(x, axis=0), (a,))
    yield Program("numpy.median_percentile", lambda x: (jnp.median(x), jnp.percentile(x, 30.0, axis=0)), (a,))
    yield Program("numpy.unique", lambda x: jnp.unique(x, size=5, fill_value=-1), (integers(12),))
    yield Program("numpy.histogram", lambda x: jnp.histogram(x, bins=4), (v,))
    yield Program("numpy.interp", jnp.interp, (normal(5), np.linspace(-2, 2, 9, dtype="float32"), normal(9)))
    yield Program("numpy.searchsorted", jnp.searchsorted, (np.sort(v), normal(5)))
    yield Program("numpy.cumsum_cumprod", lambda x: (jnp.cumsum(x, axis=1), jnp.cumprod(x, axis=0)), (a,))
    yield Program("numpy.convolve", jnp.convolve, (v, normal(4)))
    yield Program("numpy.gradient", jnp.gradient, (v,))
    yield Program("numpy.where_clip", lambda x: jnp.where(x > 0, jnp.clip(x, 0.1, 1.0), -x), (a,))
    yield Program("numpy.take_along_axis", lambda x, i: jnp.take_along_axis(x, i, axis=1), (a, integers(4, 2, high=6)))
    yield Program("numpy.at_add", lambda x, i: x.at[i].add(1.5), (v, integers(6, high=12)))
    yield Program("numpy.at_set_slice", lambda x: x.at[1:3, ::2].set(7.0), (a,))
    yield Program("numpy.roll_flip_pad", lambda x: jnp.pad(jnp.flip(jnp.roll(x, 2, 1), 0), ((1, 0), (2, 1))), (a,))
    yield Program("numpy.statistics", lambda x: (x.mean(0), x.var(1), x.std(), jnp.corrcoef(x)), (a,))
    yield Program("numpy.trigonometry", lambda x: (jnp.sin(x), jnp.cos(x), jnp.tan(x), jnp.arctan2(x, x * 2 + 1)), (a,))
    yield Program("numpy.hyperbolic", lambda x: (jnp.sinh(x), jnp.tanh(x), jnp.arcsinh(x), jnp.arctanh(x / 9)), (a,))
    yield Program("numpy.powers", lambda x: (jnp.power(x, 1.5), jnp.sqrt(x), jnp.cbrt(x), jnp.log1p(x)), (positive(9),))
    yield Program("numpy.floor_divide", lambda x, y: (x // y, x % y, jnp.fmod(x, y)), (normal(8) * 9, positive(8)))
    yield Program("numpy.bits", lambda x, y: (x & y, x | y, x ^ y, x << 2, y >> 1, ~x), (integers(8), integers(8)))
    yield Program("numpy.kron_outer", lambda x, y: (jnp.kron(x, y), jnp.outer(x, y)), (normal(2, 2), normal(3, 2)))
    yield Program("numpy.fft", jnp.fft.fft, (normal(3, 8),))
    yield Program("numpy.rfft_irfft", lambda x: (jnp.fft.rfft(x), jnp.fft.irfft(jnp.fft.rfft(x))), (normal(2, 10),))
    yield Program("numpy.fft2", jnp.fft.fft2, (normal(4, 6),))
    yield Program(
        "numpy.complex", lambda x, y: (jnp.exp(x + 1j * y), jnp.abs(x - 1j * y), (x + 1j * y) ** 2), (v, v[::-1])
    )


def linalg_programs() -> Iterator[Program]:
    """Functions of jax.numpy.linalg and jax.scipy.linalg. Vectors whose sign is free are multiplied out."""
    m, s, x = matrix(5), spd(5), normal(5, 2)
    tall = normal(6, 4)
    yield Program("linalg.cholesky", jnp.linalg.cholesky, (s,))
    yield Program("linalg.solve", jnp.linalg.solve, (m, x))
    yield Program("linalg.inv_det", lambda a: (jnp.linalg.inv(a), jnp.linalg.det(a), *jnp.linalg.slogdet(a)), (m,))
    yield Program("linalg.inv_batched_f64", jnp.linalg.inv, (np.stack([matrix(3, "float64"), matrix(3, "float64")]),))
    yield Program("linalg.qr", jnp.linalg.qr, (tall,))
    yield Program("linalg.eigh", jnp.linalg.eigh, (s,))
    yield Program("linalg.eigh_complex", jnp.linalg.eigh, ((s + 1j * (m - m.T)).astype("complex64"),))
    yield Program("linalg.eigh_large", lambda a: _rebuilt(*jnp.linalg.eigh(a)), (spd(30),))
    yield Program("linalg.eig", lambda a: _sorted(jnp.linalg.eigvals(a)), (m,))
    yield Program("linalg.svd", lambda a: _composed(*jnp.linalg.svd(a, full_matrices=False)), (tall,))
    yield Program("linalg.pinv_lstsq", lambda a, b: (jnp.linalg.pinv(a), jnp.linalg.lstsq(a, b)[0]), (tall, normal(6)))
    yield Program("linalg.norms", lambda a: (jnp.linalg.norm(a), jnp.linalg.norm(a, 2), jnp.linalg.cond(a)), (m,))
    yield Program("linalg.matrix_power", lambda a: jnp.linalg.matrix_power(a, 3), (m,))
    yield Program("scipy.linalg.expm", jax.scipy.linalg.expm, (m * 0.3,))
    yield Program("scipy.linalg.lu", jax.scipy.linalg.lu, (m,))
    yield Program(
        "scipy.linalg.solve_triangular", lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True), (m, x)
    )
    yield Program(
        "scipy.linalg.cho_solve", lambda a, b: jax.scipy.linalg.cho_solve((a, True), b), (np.linalg.cholesky(s), x)
    )
    yield Program("linalg.cholesky_complex", jnp.linalg.cholesky, ((s + 1j * (m - m.T) * 0.1).astype("complex64"),))


def _rebuilt(values: jax.Array, vectors: jax.Array) -> tuple[jax.Array, jax.Array]:
    return values, (vectors * values) @ vectors.T


def _sorted(values: jax.Array) -> tuple[jax.Array, jax.Array]:
    order = jnp.lexsort((values.imag, values.real))
    return values.real[order], values.imag[order]


def _composed(u: jax.Array, s: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
    return s, (u * s) @ v


def lax_programs() -> Iterator[Program]:
    """Functions of jax.lax, control flow among them."""
    image, kernel = normal(2, 3, 8, 8), normal(4, 3, 3, 3)
    yield Program("lax.scan", lambda x: lax.scan(lambda c, e: (c * 0.9 + e, c), jnp.zeros(3), x), (normal(6, 3),))
    yield Program("lax.associative_scan", lambda x: lax.associative_scan(jnp.add, x), (normal(7, 2),))
    yield Program(
        "lax.while_loop",
        lambda x: lax.while_loop(lambda s: s[0] < s[2], lambda s: (s[0] * 2 + 1, s[1] + s[0], s[2]), (x, x, x * 40)),
        (np.float32(1.5),),
    )
    yield Program("lax.fori_loop", lambda x: lax.fori_loop(0, 5, lambda i, s: s * 1.1 + i, x), (normal(4),))
    yield Program("lax.cond", lambda p, x: lax.cond(p > 0, jnp.sin, jnp.cos, x), (np.int32(-3), normal(4)))
    yield Program("lax.switch", lambda i, x: lax.switch(i, [jnp.sin, jnp.exp, jnp.abs], x), (np.int32(1), normal(4)))
    yield Program("lax.map", lambda x: lax.map(lambda row: row / jnp.linalg.norm(row), x), (normal(3, 4),))
    yield Program("lax.conv", lambda x, k: lax.conv_general_dilated(x, k, (2, 2), "SAME"), (image, kernel))
    yield Program(
        "lax.conv_grouped_dilated",
        lambda x, k: lax.conv_general_dilated(
            x, k, (1, 1), ((1, 1), (2, 0)), rhs_dilation=(2, 1), feature_group_count=3
        ),
        (image, normal(6, 1, 3, 3)),
    )
    yield Program(
        "lax.conv_transpose",
        lambda x, k: lax.conv_transpose(x, k, (2, 2), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW")),
        (image, kernel),
    )
    yield Program(
        "lax.reduce_window",
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), "SAME"),
        (image,),
    )
    yield Program("lax.top_k", lambda x: lax.top_k(x, 3), (normal(4, 8),))
    yield Program("lax.sort_multiple", lambda k, v: lax.sort((k, v), num_keys=1), (integers(9), normal(9)))
    yield Program(
        "lax.dynamic_slice",
        lambda x, i: lax.dynamic_update_slice(x, lax.dynamic_slice(x, (i, 1), (2, 3)) * 2, (0, i)),
        (normal(5, 6), np.int32(2)),
    )
    yield Program(
        "lax.dot_general_int8",
        lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32),
        (integers(4, 6, dtype="int8"), integers(6, 3, dtype="int8")),
    )
    yield Program("lax.bitcast", lambda x: lax.bitcast_convert_type(x, jnp.int32), (normal(5),))
    yield Program("lax.reduce_precision", lambda x: lax.reduce_precision(x, 5, 4), (normal(8),))
    yield Program("lax.population_count", lambda x: (lax.population_count(x), lax.clz(x)), (integers(8, high=1 << 20),))
    yield Program(
        "lax.custom_root",
        lambda y: lax.custom_root(lambda x: x**2 - y, jnp.ones_like(y), _newton, lambda g, b: b / g(1.0)),
        (np.float32(2.0),),
    )
    yield Program(
        "lax.ragged_dot", lambda x, w: lax.ragged_dot(x, w, jnp.array([2, 1, 3])), (normal(6, 4), normal(3, 4, 2))
    )


def _newton(f: Callable[..., Any], x: jax.Array) -> jax.Array:
    return lax.fori_loop(0, 8, lambda _, value: value - f(value) / jax.grad(lambda v: f(v).sum())(value), x)


def nn_programs() -> Iterator[Program]:
    """Functions of jax.nn."""
    x = normal(4, 6)
    yield Program("nn.softmax", jax.nn.softmax, (x,))
    yield Program("nn.log_softmax_logsumexp", lambda a: (jax.nn.log_softmax(a), jax.nn.logsumexp(a, axis=0)), (x,))
    yield Program("nn.gelu", lambda a: (jax.nn.gelu(a), jax.nn.gelu(a, approximate=False)), (x,))
    yield Program(
        "nn.activations",
        lambda a: (jax.nn.silu(a), jax.nn.elu(a), jax.nn.softplus(a), jax.nn.mish(a), jax.nn.selu(a)),
        (x,),
    )
    yield Program(
        "nn.standardize_one_hot", lambda a, i: (jax.nn.standardize(a), jax.nn.one_hot(i, 5)), (x, integers(4, high=5))
    )
    yield Program(
        "nn.attention",
        lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True),
        (normal(2, 5, 2, 4), normal(2, 5, 2, 4), normal(2, 5, 2, 4)),
    )
    yield Program(
        "nn.attention_bf16",
        jax.nn.dot_product_attention,
        tuple(normal(1, 4, 2, 8).astype(jnp.bfloat16) for _ in range(3)),
    )


def scipy_programs() -> Iterator[Program]:
    """Functions of jax.scipy, and random numbers."""
    p = positive(9)
    special = jax.scipy.special
    yield Program("scipy.special.erf", lambda x: (special.erf(x), special.erfc(x), special.erfinv(x / 4)), (p,))
    yield Program("scipy.special.gamma", lambda x: (special.gammaln(x), special.digamma(x), special.gamma(x)), (p,))
    yield Program(
        "scipy.special.gammainc", lambda a, x: (special.gammainc(a, x), special.gammaincc(a, x)), (p, positive(9))
    )
    yield Program(
        "scipy.special.betainc", lambda a, b: special.betainc(a, b, jnp.linspace(0.1, 0.9, 9)), (p, positive(9))
    )
    yield Program("scipy.special.zeta_polygamma", lambda x: (special.zeta(x + 1.5, x), special.polygamma(2, x)), (p,))
    yield Program("scipy.special.bessel", lambda x: (special.i0e(x), special.i1e(x), special.i0(x)), (p,))
    yield Program(
        "scipy.special.ndtri_expit", lambda x: (special.ndtri(x / 4), special.expit(x), special.logit(x / 4)), (p,)
    )
    yield Program(
        "scipy.stats.norm", lambda x: (jax.scipy.stats.norm.cdf(x), jax.scipy.stats.norm.logpdf(x)), (normal(7),)
    )
    yield Program("scipy.signal.convolve2d", jax.scipy.signal.convolve2d, (normal(5, 5), normal(3, 3)))
    yield Program(
        "scipy.ndimage.map_coordinates",
        lambda x, y, i: jax.scipy.ndimage.map_coordinates(i, [x, y], order=1),
        (positive(6), positive(6), normal(5, 5)),
    )
    yield Program("image.resize", lambda x: jax.image.resize(x, (7, 5), "bilinear"), (normal(4, 4),))
    yield Program("random.normal", lambda: jax.random.normal(jax.random.key(3), (5,)), ())
    yield Program("random.permutation", lambda: jax.random.permutation(jax.random.key(3), 11), ())
    yield Program(
        "random.gamma_categorical",
        lambda a: (jax.random.gamma(jax.random.key(1), a), jax.random.categorical(jax.random.key(2), a)),
        (p,),
    )
    yield Program("random.bits_philox", lambda: jax.random.bits(jax.random.key(5, impl="rbg"), (8,)), ())


def training_programs() -> Iterator[Program]:
    """Derivatives and training steps."""
    data, targets = normal(8, 6), integers(8, high=3)
    weights = (normal(6, 10) * 0.3, normal(10) * 0.1, normal(10, 3) * 0.3, normal(3) * 0.1)
    yield Program("training.mlp_step", _mlp_step, (weights, data, targets))
    yield Program(
        "training.cnn_gradient",
        jax.grad(_cnn_loss, argnums=(0, 1)),
        (normal(4, 1, 3, 3) * 0.3, normal(64, 3) * 0.1, normal(8, 1, 8, 8), targets),
    )
    yield Program("training.adam", _adam, (normal(5), normal(5), positive(5) * 0.1))
    yield Program("training.hessian", jax.hessian(lambda x: (jnp.sin(x) * jnp.outer(x, x).sum(0)).sum()), (normal(4),))
    yield Program(
        "training.vmap_jvp",
        jax.vmap(lambda x, t: jax.jvp(lambda v: jnp.tanh(v).sum(), (x,), (t,))),
        (normal(3, 4), normal(3, 4)),
    )
    yield Program("training.rnn_gradient", jax.grad(_rnn_loss), (normal(4, 4) * 0.4, normal(6, 4)))
    yield Program(
        "training.f64_newton",
        lambda x: x - jnp.linalg.solve(jax.hessian(_rosenbrock)(x), jax.grad(_rosenbrock)(x)),
        (normal(3, dtype="float64"),),
    )


def _mlp_loss(parameters: tuple[jax.Array, ...], x: jax.Array, y: jax.Array) -> jax.Array:
    w1, b1, w2, b2 = parameters
    logits = jax.nn.relu(x @ w1 + b1) @ w2 + b2
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1).mean()


def _mlp_step(parameters: tuple[jax.Array, ...], x: jax.Array, y: jax.Array) -> Any:  # noqa: ANN401 (a tree)
    loss, gradients = jax.value_and_grad(_mlp_loss)(parameters, x, y)
    return loss, jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)


def _cnn_loss(kernel: jax.Array, head: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    features = jax.nn.gelu(lax.conv(x, kernel, (1, 1), "SAME"))
    pooled = lax.reduce_window(features, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    logits = pooled.reshape(len(x), -1) @ head
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1).mean()


def _adam(x: jax.Array, m: jax.Array, v: jax.Array) -> tuple[jax.Array, ...]:
    g = jax.grad(lambda p: ((p**2 - 1) ** 2).sum())(x)
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
    return x - 0.01 * m / (jnp.sqrt(v) + 1e-8), m, v


def _rnn_loss(w: jax.Array, xs: jax.Array) -> jax.Array:
    last, _ = lax.scan(lambda h, x: (jnp.tanh(h @ w + x), None), jnp.zeros(4), xs)
    return (last**2).sum()


def _rosenbrock(x: jax.Array) -> jax.Array:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def programs() -> Iterator[Program]:
    """All of them."""
    yield from numpy_programs()
    yield from linalg_programs()
    yield from lax_programs()
    yield from nn_programs()
    yield from scipy_programs()
    yield from training_programs()

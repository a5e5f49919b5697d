"""The workloads as JAX programs."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import torch
import workloads

Weights = dict[str, jax.Array]
Program = tuple[Callable[..., Any], tuple[Any, ...]]


def program(name: str) -> Program | None:
    """The function of a workload and its arguments, or nothing where it is not written in JAX."""
    write = PROGRAMS.get(re.sub(r"_b\d+_s\d+$", "", name))
    if write is None:
        return None
    module, inputs = workloads.make(name)
    weights = {key: value.numpy() for key, value in module.state_dict().items()}
    values = tuple((value.int() if value.dtype == torch.int64 else value).numpy() for value in inputs)
    return write(weights, values, module)


def _plain(function: Callable[..., jax.Array]) -> Callable[..., Program]:
    """A program of the inputs and then the constants."""
    return lambda weights, inputs, _module: (function, (*inputs, *weights.values()))


def _layer_norm(x: jax.Array, scale: jax.Array, shift: jax.Array, epsilon: float) -> jax.Array:
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + epsilon) * scale + shift


def _linear_gelu(x: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
    return jax.nn.gelu(x @ weight.T + bias, approximate=False)


def _attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * q.shape[-1] ** -0.5
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, -1), v)


def _elementwise(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.tanh(jax.nn.relu(x) * y + 0.5) * jax.nn.sigmoid(x)


def _norm_softmax(x: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
    return jax.nn.softmax(_layer_norm(x, weight, bias, 1e-5), -1)


def _conv_bn_relu(weights: Weights, inputs: tuple[Any, ...], _module: torch.nn.Module) -> Program:
    def function(weights: Weights, x: jax.Array) -> jax.Array:
        scale = weights["1.weight"] * jax.lax.rsqrt(weights["1.running_var"] + 1e-5)
        shift = weights["1.bias"] - weights["1.running_mean"] * scale
        y = jax.lax.conv_general_dilated(x, weights["0.weight"], (1, 1), "SAME")
        return jax.nn.relu(y * scale[:, None, None] + shift[:, None, None])

    return function, (weights, *inputs)


def _bert(weights: Weights, inputs: tuple[Any, ...], module: workloads.Bert) -> Program:
    weights = {key.removeprefix("model."): value for key, value in weights.items()}
    return partial(_encode, module.heads), (weights, *inputs)


def _encode(heads: int, w: Weights, tokens: jax.Array, mask: jax.Array) -> tuple[jax.Array, jax.Array]:
    def linear(x: jax.Array, name: str) -> jax.Array:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def norm(x: jax.Array, name: str) -> jax.Array:
        return _layer_norm(x, w[f"{name}.weight"], w[f"{name}.bias"], 1e-12)

    batch, length = tokens.shape
    x = w["embeddings.word_embeddings.weight"][tokens]
    x = x + w["embeddings.token_type_embeddings.weight"][0] + w["embeddings.position_embeddings.weight"][:length]
    x = norm(x, "embeddings.LayerNorm")
    bias = jnp.where(mask[:, None, None, :] != 0, 0.0, -jnp.inf)
    for layer in range(sum(key.endswith("attention.self.query.weight") for key in w)):
        at = f"encoder.layer.{layer}"
        q, k, v = (
            linear(x, f"{at}.attention.self.{part}").reshape(batch, length, heads, -1)
            for part in ("query", "key", "value")
        )
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5 + bias
        mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, -1), v).reshape(batch, length, -1)
        x = norm(x + linear(mixed, f"{at}.attention.output.dense"), f"{at}.attention.output.LayerNorm")
        inner = jax.nn.gelu(linear(x, f"{at}.intermediate.dense"), approximate=False)
        x = norm(x + linear(inner, f"{at}.output.dense"), f"{at}.output.LayerNorm")
    return x, jnp.tanh(linear(x[:, 0], "pooler.dense"))


PROGRAMS: dict[str, Callable[..., Program]] = {
    "matmul_2048": _plain(jnp.matmul),
    "linear_gelu_512x1024x1024": _plain(_linear_gelu),
    "conv_bn_relu_4x128x28": _conv_bn_relu,
    "attention_4x8x256x64": _plain(_attention),
    "elementwise_chain_4M": _plain(_elementwise),
    "layernorm_softmax_4096x1024": _plain(_norm_softmax),
    "minilm": _bert,
    "bert_base": _bert,
}

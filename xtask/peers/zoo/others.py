"""Recommendation, diffusion, recurrent and graph networks, and mixers, by the sizes of their papers."""

from __future__ import annotations

from itertools import pairwise

import torch
from entries import Inputs, add
from torch import nn
from torch.nn import functional


class Dlrm(nn.Module):
    """Deep learning recommendation: embeddings, pairwise products, two perceptrons (the paper's Criteo setting)."""

    TABLES, ROWS, WIDTH = 26, 20000, 64

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(self.ROWS, self.WIDTH) for _ in range(self.TABLES))
        self.bottom = _perceptron([13, 512, 256, self.WIDTH])
        pairs = (self.TABLES + 1) * self.TABLES // 2
        self.top = _perceptron([pairs + self.WIDTH, 1024, 1024, 512, 256, 1], last=False)
        rows, columns = torch.tril_indices(self.TABLES + 1, self.TABLES + 1, -1)
        self.register_buffer("pairs", rows * (self.TABLES + 1) + columns)

    def forward(self, dense: torch.Tensor, sparse: torch.Tensor) -> torch.Tensor:
        """The probability of a click."""
        dense = self.bottom(dense)
        vectors = torch.stack([dense, *(table(sparse[:, at]) for at, table in enumerate(self.tables))], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)[:, self.pairs]
        return torch.sigmoid(self.top(torch.cat([dense, products], 1)))


class Dcn(nn.Module):
    """Deep and cross network, version 2: three cross layers beside a perceptron."""

    TABLES, ROWS, WIDTH = 26, 20000, 32

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(self.TABLES * self.ROWS, self.WIDTH)
        self.register_buffer("offsets", torch.arange(self.TABLES) * self.ROWS)
        width = 13 + self.TABLES * self.WIDTH
        self.cross = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.deep = _perceptron([width, 1024, 1024])
        self.head = nn.Linear(width + 1024, 1)

    def forward(self, dense: torch.Tensor, sparse: torch.Tensor) -> torch.Tensor:
        """The probability of a click."""
        first = torch.cat([dense, self.table(sparse + self.offsets).flatten(1)], 1)
        crossed = first
        for layer in self.cross:
            crossed = first * layer(crossed) + crossed
        return torch.sigmoid(self.head(torch.cat([crossed, self.deep(first)], 1)))


class UnetBlock(nn.Module):
    """A residual block with a time embedding, self-attention and cross-attention, as in latent diffusion."""

    def __init__(self, width: int = 320, context: int = 768, heads: int = 8) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.GroupNorm(32, width) for _ in range(3))
        self.convs = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.time = nn.Linear(1280, width)
        self.layer_norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.queries = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(2))
        self.keys = nn.ModuleList(nn.Linear(source, 2 * width, bias=False) for source in (width, context))
        self.outs = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.up, self.down = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def forward(self, image: torch.Tensor, time: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        """The image after the block."""
        hidden = self.convs[0](functional.silu(self.norms[0](image)))
        hidden = hidden + self.time(functional.silu(time))[:, :, None, None]
        image = image + self.convs[1](functional.silu(self.norms[1](hidden)))
        tokens = self.norms[2](image).flatten(2).transpose(1, 2)
        for at, source in enumerate((None, text)):
            normed = self.layer_norms[at](tokens)
            tokens = tokens + self._attend(at, normed, normed if source is None else source)
        gate, value = self.up(self.layer_norms[2](tokens)).chunk(2, -1)
        tokens = tokens + self.down(value * functional.gelu(gate))
        return image + tokens.transpose(1, 2).reshape(image.shape)

    def _attend(self, at: int, tokens: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        def split(value: torch.Tensor) -> torch.Tensor:
            return value.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        key, value = self.keys[at](source).chunk(2, -1)
        out = functional.scaled_dot_product_attention(split(self.queries[at](tokens)), split(key), split(value))
        return self.outs[at](out.transpose(1, 2).flatten(2))


class Recurrent(nn.Module):
    """Two layers of a recurrent network over a sequence of vectors."""

    def __init__(self, kind: type[nn.RNNBase], width: int = 512) -> None:
        super().__init__()
        self.layers = kind(width, width, num_layers=2, batch_first=True)

    def forward(self, sequence: torch.Tensor) -> torch.Tensor:
        """The states of the last layer."""
        return self.layers(sequence)[0]


class GraphConvolution(nn.Module):
    """Two graph convolutions over an edge list, at the size of Cora."""

    NODES, EDGES, FEATURES, HIDDEN, CLASSES = 2708, 10556, 1433, 64, 7

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(self.FEATURES, self.HIDDEN)
        self.second = nn.Linear(self.HIDDEN, self.CLASSES)

    def forward(self, features: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        """The class scores of each node."""
        source, target = edges
        ones = torch.ones(edges.shape[1], dtype=features.dtype, device=features.device)
        degree = torch.ones(features.shape[0], dtype=features.dtype, device=features.device)
        degree = degree.index_add(0, target, ones).rsqrt()

        def spread(values: torch.Tensor) -> torch.Tensor:
            messages = (values * degree[:, None])[source]
            return (values * degree[:, None]).index_add(0, target, messages) * degree[:, None]

        hidden = torch.relu(spread(self.first(features)))
        return functional.log_softmax(spread(self.second(hidden)), -1)


class Mixer(nn.Module):
    """MLP-Mixer S/16."""

    def __init__(self, width: int = 512, layers: int = 8, tokens: int = 196) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 16, 16)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * layers + 1))
        self.across = nn.ModuleList(_gelu_block(tokens, 256) for _ in range(layers))
        self.along = nn.ModuleList(_gelu_block(width, 2048) for _ in range(layers))
        self.head = nn.Linear(width, 1000)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """The class scores."""
        x = self.stem(image).flatten(2).transpose(1, 2)
        for at, (across, along) in enumerate(zip(self.across, self.along, strict=True)):
            x = x + across(self.norms[2 * at](x).transpose(1, 2)).transpose(1, 2)
            x = x + along(self.norms[2 * at + 1](x))
        return self.head(self.norms[-1](x).mean(1))


def _gelu_block(width: int, inner: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width))


def _perceptron(widths: list[int], *, last: bool = True) -> nn.Module:
    layers: list[nn.Module] = []
    for here, there in pairwise(widths):
        layers += [nn.Linear(here, there), nn.ReLU()]
    return nn.Sequential(*(layers if last else layers[:-1]))


def _clicks(batch: int) -> Inputs:
    return torch.rand(batch, 13), torch.randint(0, 20000, (batch, 26))


def _graph(_batch: int) -> Inputs:
    sizes = GraphConvolution
    return torch.rand(sizes.NODES, sizes.FEATURES), torch.randint(0, sizes.NODES, (2, sizes.EDGES))


def _latent(batch: int) -> Inputs:
    return torch.randn(batch, 320, 32, 32), torch.randn(batch, 1280), torch.randn(batch, 77, 768)


add("dlrm", Dlrm, _clicks, 256)
add("dcn_v2", Dcn, _clicks, 256)
add("unet_block", UnetBlock, _latent, 4)
add("lstm_2x512", lambda: Recurrent(nn.LSTM), lambda batch: (torch.randn(batch, 64, 512),), 16)
add("gru_2x512", lambda: Recurrent(nn.GRU), lambda batch: (torch.randn(batch, 64, 512),), 16)
add("gcn_cora", GraphConvolution, _graph, 1)
add("mixer_s16", Mixer, lambda batch: (torch.randn(batch, 3, 224, 224),), 8)

"""Layers of networks: losses, normalisations, pooling, interpolation, embeddings; and some of their gradients."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from calls import Call
from samples import call, integers, normal, samples, uniform

aten = torch.ops.aten
# PyTorch's codes for what becomes of the losses of single elements: none, mean, sum.
REDUCTIONS = (0, 1, 2)


@samples
def class_losses() -> Iterator[Call]:
    """Losses of scores for classes."""
    scores, classes, weight = normal(5, 4), integers(4, 5), uniform(4)
    maps, places = normal(2, 4, 3, 3), integers(4, 2, 3, 3)
    log = torch.log_softmax(scores, 1)
    for reduction in REDUCTIONS:
        yield call(aten.nll_loss.default, log, classes, weight, reduction, 1)
        yield call(aten.nll_loss_nd.default, log, classes, None, reduction)
        yield call(aten.nll_loss_nd.default, torch.log_softmax(maps, 1), places, weight, reduction, 2)
        yield call(aten.nll_loss2d.default, torch.log_softmax(maps, 1), places, weight, reduction, 2)
        yield call(aten.cross_entropy_loss.default, scores, classes, weight, reduction, 2, 0.1)
        yield call(aten.cross_entropy_loss.default, maps, places, None, reduction)
        yield call(aten.cross_entropy_loss.default, scores, torch.softmax(normal(5, 4), 1), weight, reduction)
    yield call(aten.cross_entropy_loss.default, scores[0], classes[0])
    # Without a reduction there is no total weight.
    yield Call(aten.nll_loss_forward.default, (log, classes, weight, 0, 1), used=1)
    yield Call(aten.nll_loss2d_forward.default, (torch.log_softmax(maps, 1), places, None, 0, -100), used=1)


@samples
def distance_losses() -> Iterator[Call]:
    """Losses of distances and of distributions."""
    x, y, p, q = normal(5, 4), normal(5, 4), uniform(5, 4), uniform(5, 4)
    signs, sides = integers(2, 5, 4) * 2.0 - 1, integers(2, 5) * 2.0 - 1
    for reduction in REDUCTIONS:
        yield call(aten.cosine_embedding_loss.default, x, y, sides, 0.1, reduction)
        yield call(aten.margin_ranking_loss.default, x, y, signs, 0.2, reduction)
        yield call(aten.kl_div.default, torch.log_softmax(x, 1), q, reduction)
        yield call(aten.kl_div.default, x, y, reduction, log_target=True)
        yield call(aten.poisson_nll_loss.default, x, 3 * q, True, True, 1e-8, reduction)
        yield call(aten.poisson_nll_loss.default, p, 3 * q, False, False, 1e-8, reduction)
    yield call(aten.cdist.default, normal(3, 4), normal(5, 4), 2.0)
    yield call(aten.cdist.default, normal(2, 3, 4), normal(5, 4), 1.0, 2)
    yield call(aten.cdist.default, normal(3, 4), normal(5, 4), torch.inf)


@samples
def normalisations() -> Iterator[Call]:
    """Batch, instance and root-mean-square normalisation, with each way of keeping statistics."""
    x, weight, bias = normal(2, 3, 4), normal(3), normal(3)
    mean, variance = normal(3), uniform(3) + 0.5
    for args in ((weight, bias, mean, variance), (None, None, mean, variance)):
        yield call(aten._native_batch_norm_legit_functional.default, x, *args, True, 0.1, 1e-5)
        yield call(aten._native_batch_norm_legit_functional.default, x, *args, False, 0.1, 1e-5)
        yield call(aten._native_batch_norm_legit_no_training.default, x, *args, 0.1, 1e-5)
        yield call(aten._batch_norm_no_update.default, x, *args, 0.1, 1e-5)
        yield call(aten._batch_norm_with_update_functional.default, x, *args, 0.1, 1e-5)
        yield call(aten.batch_norm.default, x, *args, True, 0.1, 1e-5, False)
        yield call(aten.batch_norm.default, x, *args, False, 0.1, 1e-5, False)
        yield call(aten.instance_norm.default, x, *args, False, 0.1, 1e-5, False)
    yield call(aten.batch_norm.default, x, weight, bias, None, None, True, 0.1, 1e-5, False)
    yield call(aten.instance_norm.default, x, weight, bias, None, None, True, 0.1, 1e-5, False)
    yield call(aten.instance_norm.default, x, weight, bias, mean, variance, True, 0.1, 1e-5, False)
    yield call(aten._fused_rms_norm.default, x, [4], normal(4), 1e-5)
    yield call(aten._fused_rms_norm.default, x, [3, 4], None, None)


@samples
def pooling() -> Iterator[Call]:
    """Maxima of windows, and gradients that pick elements."""
    line, x, volume = normal(2, 3, 9), normal(1, 2, 7, 6), normal(1, 2, 4, 5, 4)
    yield call(aten.max_pool1d.default, line, [3], [2], [1])
    yield call(aten.max_pool1d.default, line, [2], [2], [0], [2], True)
    yield call(aten.max_pool1d_with_indices.default, line, [3], [2], [1])
    yield call(aten.max_pool1d_with_indices.default, line, [2], [2], [0], [2], True)
    yield call(aten.max_pool2d.default, x, [3, 2], [2, 2], [1, 0])
    yield call(aten.max_pool2d.default, x, [2], [2], [1], [2], True)
    yield call(aten.max_pool3d.default, volume, [2, 2, 3], [2, 2, 2], [1, 0, 1])
    yield call(aten.adaptive_max_pool1d.default, line, [4])
    grid = uniform(1, 3, 4, 2) * 2.4 - 1.2
    for interpolation in (0, 1, 2):
        for padding in (0, 1, 2):
            yield call(aten.grid_sampler.default, normal(1, 2, 4, 5), grid, interpolation, padding, padding == 1)


@samples
def interpolation() -> Iterator[Call]:
    """Interpolation to a size or by factors, and two gradients."""
    line, x, volume = normal(1, 2, 5), normal(1, 2, 4, 5), normal(1, 2, 3, 4, 2)
    for given in (([9], None), (None, [1.6])):
        yield call(aten.upsample_nearest1d.vec, line, *given)
        yield call(aten._upsample_nearest_exact1d.vec, line, *given)
        yield call(aten.upsample_linear1d.vec, line, given[0], False, given[1])
        yield call(aten.upsample_linear1d.vec, line, given[0], True, given[1])
    for given in (([7, 3], None), (None, [1.5, 0.7])):
        yield call(aten.upsample_nearest2d.vec, x, *given)
        yield call(aten._upsample_nearest_exact2d.vec, x, *given)
        for corners in (False, True):
            for name in (
                "upsample_bilinear2d",
                "upsample_bicubic2d",
                "_upsample_bilinear2d_aa",
                "_upsample_bicubic2d_aa",
            ):
                yield call(getattr(aten, name).vec, x, given[0], corners, given[1])
    for given in (([5, 3, 4], None), (None, [1.5, 0.7, 2.0])):
        yield call(aten.upsample_nearest3d.vec, volume, *given)
        yield call(aten._upsample_nearest_exact3d.vec, volume, *given)
        yield call(aten.upsample_trilinear3d.vec, volume, given[0], False, given[1])
    for name in ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"):
        for corners in (False, True):
            yield call(getattr(aten, name).default, x, [7, 3], corners)
            yield call(getattr(aten, f"{name}_backward").default, normal(1, 2, 7, 3), [7, 3], [1, 2, 4, 5], corners)


@samples
def embeddings() -> Iterator[Call]:
    """Sums of rows of a table, and rows of bounded norm."""
    table, rows, starts = normal(6, 3), integers(6, 7), torch.tensor([0, 2, 2, 5])
    for mode in (0, 1, 2):
        weights = uniform(7) if mode == 0 else None
        settings = (table, rows, starts, False, mode, False, weights)
        # The other results are for the backward pass.
        yield Call(aten.embedding_bag.default, settings, used=1)
        yield Call(aten.embedding_bag.padding_idx, (*settings, False, 2), used=1)
        yield Call(aten._embedding_bag.default, settings, used=1)
        yield Call(aten._embedding_bag_forward_only.default, settings, used=1)
        ends = (table, rows, torch.tensor([0, 2, 2, 7]), False, mode, False, weights)
        yield Call(aten._embedding_bag_forward_only.default, (*ends, True), used=1)
    yield call(aten.one_hot.default, integers(4, 3, 2), 5)
    yield call(aten.embedding_renorm.default, 3 * table, torch.tensor([1, 4, 1]), 1.5, 2.0)
    yield call(aten.embedding_renorm.default, 3 * table, torch.tensor([0, 2]), 1.5, 1.0)


@samples
def convolutions() -> Iterator[Call]:
    """Convolutions by the operator that has all settings, and a transposed one of volumes."""
    tail = (False, False, True, True)
    x, plain, transposed = normal(1, 4, 5, 6), normal(6, 2, 3, 2), normal(4, 3, 3, 2)
    yield call(aten._convolution.default, x, plain, normal(6), [2, 1], [1, 0], [1, 2], False, [0, 0], 2, *tail)
    yield call(aten._convolution.default, x, transposed, None, [2, 1], [1, 0], [1, 1], True, [1, 0], 2, *tail)
    volume, kernel = normal(1, 2, 2, 3, 2), normal(2, 2, 2, 2, 2)
    yield call(aten.conv_transpose3d.input, volume, kernel, normal(2), [1, 2, 1], [0, 1, 0])


@samples
def picked_gradients() -> Iterator[Call]:
    """Gradients of taking elements."""
    rows = torch.tensor([0, 3, 3])
    yield call(aten.index_select_backward.default, normal(4, 3, 2), [4, 5, 2], 1, rows)
    places = integers(5, 4, 3)
    yield call(aten.value_selecting_reduction_backward.default, normal(4, 3), 1, places, [4, 5, 3], False)
    yield call(aten.value_selecting_reduction_backward.default, normal(4, 1, 3), 1, places[:, None], [4, 5, 3], True)

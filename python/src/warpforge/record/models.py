"""The model of a plan, with its first weights."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch
from torch import nn

from warpforge.errors import TraceError
from warpforge.factory import load_model
from warpforge.record import sources


def folder(plan: dict[str, Any]) -> Path | None:
    """The folder of the pretrained weights."""
    weights = plan["model"].get("weights")
    return sources.resolve(weights, "the model's weights") if weights else None


def build(plan: dict[str, Any], vocabulary_size: int) -> nn.Module:
    """The module in training mode; what is not pretrained is made from the seed."""
    model, seed = plan["model"], plan["training"]["seed"]
    torch.manual_seed(seed)
    if model["architecture"] == "factory":
        return load_model(model["factory"], seed).module.train()
    if model["architecture"] == "llama-causal-lm":
        from warpforge.record import llama  # noqa: PLC0415 (each architecture needs its own libraries)

        return llama.build(plan, folder(plan), vocabulary_size)
    return _bert(model, folder(plan), vocabulary_size).train()


def exportable(plan: dict[str, Any], model: nn.Module) -> nn.Module:
    """A copy of the model that PyTorch can export."""
    module = copy.deepcopy(model)
    if plan["model"]["architecture"] == "llama-causal-lm":
        from warpforge.record import nf4  # noqa: PLC0415

        return nf4.exportable(module)
    return module


def _bert(model: dict[str, Any], weights: Path | None, vocabulary_size: int) -> nn.Module:
    import transformers  # noqa: PLC0415 (only models of transformers need it)

    transformers.logging.set_verbosity_error()
    dropout: dict[str, Any] = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), model["dropout"])
    if model["dropout"] > 0:
        # Fused attention does not show its masks.
        dropout["attn_implementation"] = "eager"
    if weights is not None:
        try:
            return transformers.BertForQuestionAnswering.from_pretrained(
                weights, dtype=torch.float32, local_files_only=True, **dropout
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise TraceError(f"{weights} has no BERT: {error}") from error
    try:
        config = transformers.BertConfig(**{"vocab_size": vocabulary_size, **model["config"], **dropout})
    except (TypeError, ValueError) as error:
        raise TraceError(f"[model.config] is no configuration of BERT: {error}") from error
    return transformers.BertForQuestionAnswering(config)

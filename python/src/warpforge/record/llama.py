"""Llama with QLoRA: a base of NF4 that stays as it is, and adapters by peft that are trained."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from warpforge.errors import TraceError
from warpforge.golden import GoldenFolder
from warpforge.record import gguf, nf4, sources
from warpforge.record.instruct import IGNORED

# The linear layers of a block. The embedding and the head are not quantized.
LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
TOKENIZER = "data/tokenizer.json"
# Larger weights are not kept beside the run.
MOST_KEPT = 1 << 30


class Packed(nn.Module):
    """The adapted model on packed sequences: an example sees itself only."""

    def __init__(self, adapted: nn.Module) -> None:
        super().__init__()
        self.adapted = adapted

    def forward(
        self,
        input_ids: torch.Tensor,
        labels: torch.Tensor,
        position_ids: torch.Tensor,
        segment_ids: torch.Tensor,
    ) -> dict[str, torch.Tensor]:
        """The mean loss of all answers in training, else the loss and the tokens of each sequence."""
        length = input_ids.shape[1]
        earlier = torch.ones(length, length, dtype=torch.bool, device=input_ids.device).tril()
        mask = (segment_ids[:, None, :, None] == segment_ids[:, None, None, :]) & earlier
        given = {"input_ids": input_ids, "attention_mask": mask, "position_ids": position_ids, "use_cache": False}
        if self.training:
            return {"loss": self.adapted(**given, labels=labels).loss}
        logits = self.adapted(**given).logits[:, :-1].float()
        wanted = labels[:, 1:]
        losses = functional.cross_entropy(logits.transpose(1, 2), wanted, ignore_index=IGNORED, reduction="none")
        return {"nll": losses.sum(-1), "tokens": (wanted != IGNORED).float().sum(-1)}


def tokenizer(plan: dict[str, Any], weights: Path | None, folder: GoldenFolder) -> Path:
    """The tokenizer as a file of the run's folder, its special tokens written to the plan where nobody named them."""
    path = folder.path / TOKENIZER
    path.parent.mkdir(exist_ok=True)
    data = plan["data"]
    special: dict[str, str | None] = {}
    if data.get("vocabulary"):
        source = sources.resolve(data["vocabulary"], "the tokenizer")
        if source.resolve() != path.resolve():
            shutil.copy(source, path)
    elif weights is not None and weights.suffix == ".gguf":
        special = gguf.Reader(weights).tokenizer(path)
    elif weights is not None:
        special = _of_folder(weights, path)
    else:
        raise TraceError("there is no tokenizer", "name a tokenizer.json in [data] vocabulary")
    for name in ("bos", "eos", "pad"):
        if data.get(f"{name}_token") is None:
            data[f"{name}_token"] = special.get(name)
    return path


def _of_folder(weights: Path, path: Path) -> dict[str, str | None]:
    import transformers  # noqa: PLC0415 (only folders of transformers need it)

    try:
        found = transformers.PreTrainedTokenizerFast.from_pretrained(weights, local_files_only=True)
    except (OSError, ValueError) as error:
        raise TraceError(f"{weights} has no tokenizer: {error}") from error
    found.backend_tokenizer.save(str(path))
    return {"bos": found.bos_token, "eos": found.eos_token, "pad": found.pad_token}


def build(plan: dict[str, Any], weights: Path | None, vocabulary_size: int) -> nn.Module:
    """The adapted model in training mode."""
    import peft  # noqa: PLC0415 (only this architecture needs it)
    import transformers  # noqa: PLC0415

    transformers.logging.set_verbosity_error()
    model = _base(plan["model"], weights, vocabulary_size)
    if vocabulary_size > model.config.vocab_size:
        raise TraceError(f"the tokenizer has {vocabulary_size} tokens, the model {model.config.vocab_size}")
    adapter = plan["adapter"]
    original = nf4.quantize(model, LINEAR)
    model.requires_grad_(requires_grad=False)
    # What transformers sets when it quantizes by itself; peft then takes its layers for bitsandbytes.
    model.is_loaded_in_4bit = True
    torch.manual_seed(plan["training"]["seed"])
    settings = peft.LoraConfig(
        r=adapter["rank"],
        lora_alpha=adapter["alpha"],
        target_modules=sorted(adapter["targets"]),
        lora_dropout=plan["model"]["dropout"],
        bias="none",
        task_type="CAUSAL_LM",
    )
    try:
        packed = Packed(peft.get_peft_model(model, settings))
    except ValueError as error:
        raise TraceError(f"[adapter] does not fit the model: {error}") from error
    packed.original = {} if _bytes(original) > MOST_KEPT else original
    return packed.train()


def _base(model: dict[str, Any], weights: Path | None, vocabulary_size: int) -> nn.Module:
    import transformers  # noqa: PLC0415

    if weights is None:
        try:
            config = transformers.LlamaConfig(**{"vocab_size": vocabulary_size, **model["config"]})
        except (TypeError, ValueError) as error:
            raise TraceError(f"[model.config] is no configuration of Llama: {error}") from error
        return transformers.LlamaForCausalLM(config)
    if weights.suffix == ".gguf":
        return gguf.Reader(weights).llama()
    path = weights / "config.json"
    if not path.is_file():
        raise TraceError(f"{weights} has no config.json", "--model takes a folder of transformers, or a .gguf file")
    kind = json.loads(path.read_text(encoding="utf-8")).get("model_type")
    if kind != "llama":
        raise TraceError(f"{path}: the model is of the type {kind}, not llama")
    try:
        return transformers.LlamaForCausalLM.from_pretrained(weights, dtype=torch.float32, local_files_only=True)
    except (OSError, ValueError, RuntimeError) as error:
        raise TraceError(f"{weights} has no Llama: {error}") from error


def _bytes(tensors: dict[str, torch.Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def write(model: Packed, optimizer: torch.optim.Optimizer, folder: GoldenFolder) -> None:
    """Keeps the adapter as peft saves it, the optimizer's state, and the weights that were quantized."""
    model.adapted.save_pretrained(folder.path / "adapter")
    for path in sorted((folder.path / "adapter").iterdir()):
        folder.add(f"adapter/{path.name}")
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    kept = {}
    for parameter, state in optimizer.state.items():
        for part in ("state1", "state2", "absmax1", "absmax2"):
            if part in state:
                kept[f"{part}.{names[id(parameter)]}"] = state[part].cpu()
    folder.tensors("optimizer", kept)
    folder.add("optimizer.safetensors")
    if model.original:
        prefix = "adapted.base_model.model."
        there = dict(model.named_modules())
        layers = {
            name: f"{prefix}{name}.base_layer" if f"{prefix}{name}.base_layer" in there else f"{prefix}{name}"
            for name in model.original
        }
        folder.tensors("base", {layers[name]: weight for name, weight in model.original.items()})
        folder.add("base.safetensors")

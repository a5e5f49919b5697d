"""Llama from a GGUF file: weights, configuration and tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from warpforge.errors import TraceError

NAMES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
CONFIG = {
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_hidden_layers": "block_count",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "max_position_embeddings": "context_length",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "rope_theta": "rope.freq_base",
}
# Tokens of this type stand for no text.
CONTROL = 3


class Reader:
    """A GGUF file of the architecture llama."""

    def __init__(self, path: Path) -> None:
        import gguf  # noqa: PLC0415 (only files of this form need it)

        self.path = path
        try:
            self.file = gguf.GGUFReader(path)
        except (OSError, ValueError, IndexError, KeyError) as error:
            raise TraceError(f"{path} is no GGUF file: {error}") from error
        self.dequantize = gguf.quants.dequantize
        architecture = self._field("general.architecture")
        if architecture != "llama":
            raise TraceError(f"{path}: the architecture is {architecture}, not llama")

    def _field(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 (a number, a text or a list)
        field = self.file.fields.get(name)
        return default if field is None else field.contents()

    def llama(self) -> nn.Module:
        """The model in f32."""
        import transformers  # noqa: PLC0415

        tensors = {tensor.name: tensor for tensor in self.file.tensors}
        settings = {name: self._field(f"llama.{key}") for name, key in CONFIG.items()}
        settings = {name: value for name, value in settings.items() if value is not None}
        vocabulary_size = len(self._field("tokenizer.ggml.tokens"))
        tied = "output.weight" not in tensors
        config = transformers.LlamaConfig(vocab_size=vocabulary_size, tie_word_embeddings=tied, **settings)
        heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
        state = {}
        for name, tensor in tensors.items():
            weight = np.array(self.dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
            if name.startswith("blk."):
                _, block, kind, part = name.split(".")
                if kind not in NAMES:
                    raise TraceError(f"{self.path}: `{name}` is no tensor of Llama")
                if kind in heads:
                    weight = _halves(weight, heads[kind])
                state[f"model.layers.{block}.{NAMES[kind]}.{part}"] = torch.from_numpy(weight)
            elif name.removesuffix(".weight") in TOP:
                state[f"{TOP[name.removesuffix('.weight')]}.weight"] = torch.from_numpy(weight)
        model = transformers.LlamaForCausalLM(config)
        found = model.load_state_dict(state, strict=False)
        missing = [name for name in found.missing_keys if not (tied and name == "lm_head.weight")]
        if missing or found.unexpected_keys:
            raise TraceError(f"{self.path}: tensors missing: {missing}, not known: {found.unexpected_keys}")
        return model

    def tokenizer(self, path: Path) -> dict[str, str | None]:
        """Writes the tokenizer as a file of the package tokenizers, and gives its special tokens."""
        from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers  # noqa: PLC0415

        kind = self._field("tokenizer.ggml.model")
        if kind != "gpt2":
            raise TraceError(
                f"{self.path}: its tokenizer is of the kind {kind}, and only byte-level BPE (gpt2) is read",
                "name a tokenizer.json in [data] vocabulary",
            )
        tokens, types = self._field("tokenizer.ggml.tokens"), self._field("tokenizer.ggml.token_type")
        merges = [tuple(merge.split(" ")) for merge in self._field("tokenizer.ggml.merges")]
        vocabulary = {token: at for at, token in enumerate(tokens)}
        made = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
        made.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
            ]
        )
        made.decoder = decoders.ByteLevel()
        control = [token for token, one in zip(tokens, types, strict=True) if one == CONTROL]
        made.add_special_tokens([AddedToken(token, special=True) for token in control])
        made.save(str(path))
        special = {"bos": "bos_token_id", "eos": "eos_token_id", "pad": "padding_token_id"}
        ids = {name: self._field(f"tokenizer.ggml.{key}") for name, key in special.items()}
        return {name: None if at is None else tokens[at] for name, at in ids.items()}


def _halves(weight: np.ndarray, heads: int) -> np.ndarray:
    """The rows of a head as transformers orders them: llama.cpp interleaves the two halves that are rotated."""
    split = weight.reshape(heads, weight.shape[0] // heads // 2, 2, *weight.shape[1:])
    return np.ascontiguousarray(split.swapaxes(1, 2).reshape(weight.shape))

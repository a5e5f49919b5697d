"""What a trace writes, and that it is what PyTorch computes."""

from __future__ import annotations

import hashlib
import json
import weakref
import zipfile
from pathlib import Path

import models
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from warpforge import Model, Traced, TraceError, nodes, trace


def golden(path: Path, kind: str) -> dict[str, torch.Tensor]:
    return load_file(path / f"{kind}.safetensors")


def test_outputs_are_those_of_the_module_in_eval_mode(tmp_path: Path) -> None:
    net, args = models.make_net()
    traced = trace(net, args, output=tmp_path / "net.pt2")
    assert traced.golden == tmp_path / "net.golden"
    assert not net.training
    torch.testing.assert_close(golden(traced.golden, "outputs"), {"out0": net(*args).detach()})
    assert torch.equal(golden(traced.golden, "inputs")["image"], args[0])
    assert not (traced.golden / "activations.safetensors").exists()


def test_archive_is_torchs_own(tmp_path: Path) -> None:
    net, args = models.make_net()
    traced = trace(net, args, output=tmp_path / "net.pt2")
    assert any(name.endswith("models/model.json") for name in zipfile.ZipFile(traced.archive).namelist())
    torch.testing.assert_close(torch.export.load(traced.archive).module()(*args), net(*args))


def test_weights_that_are_tensor_subclasses_are_the_tensors_inside_of_them(tmp_path: Path) -> None:
    net, x = models.Restored(), torch.ones(2, 4)
    traced = trace(net, (x,), output=tmp_path / "net.pt2", weights=True)
    with zipfile.ZipFile(traced.archive) as archive:
        config = next(name for name in archive.namelist() if name.endswith("_weights_config.json"))
        weights = json.loads(archive.read(config))["config"]
    assert len(weights) == 2
    assert not any(weight["use_pickle"] for weight in weights.values())
    assert {tensor.dtype for tensor in golden(traced.golden, "weights").values()} == {torch.int8, torch.float32}
    torch.testing.assert_close(golden(traced.golden, "outputs"), {"out0": net(x)})
    assert isinstance(net.weight, models.Codes)


def test_manifest_has_hashes_versions_and_nodes_with_their_source(tmp_path: Path) -> None:
    net, args = models.make_net()
    traced = trace(net, args, output=tmp_path / "net.pt2", seed=7)
    manifest = json.loads((traced.golden / "manifest.json").read_text())
    assert manifest == traced.manifest
    assert (manifest["schema_version"], manifest["seed"], manifest["mode"]) == (1, 7, "inference")
    assert manifest["versions"]["torch"] == torch.__version__.partition("+")[0]
    for name, facts in manifest["files"].items():
        content = (traced.golden / name).read_bytes()
        assert facts == {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    assert manifest["archive"]["sha256"] == hashlib.sha256(traced.archive.read_bytes()).hexdigest()
    conv = manifest["nodes"][0]
    assert (conv["name"], conv["target"], conv["module"]) == ("conv2d", "aten.conv2d.default", "conv")
    file, line = conv["source"].rsplit(":", 1)
    assert "self.conv(image)" in Path(file).read_text().splitlines()[int(line) - 1]


def test_activations_are_one_tensor_for_each_node(tmp_path: Path) -> None:
    net, args = models.make_net()
    traced = trace(net, args, output=tmp_path / "net.pt2", activations=True, decompose=True)
    activations = golden(traced.golden, "activations")
    listed = [name for node in traced.manifest["nodes"] for name in node["tensors"]]
    assert sorted(activations) == sorted(listed)
    torch.testing.assert_close(activations["convolution"], net.conv(*args).detach())
    assert "_native_batch_norm_legit_no_training.0" in activations


def test_values_are_freed_when_no_node_reads_them_any_more(tmp_path: Path) -> None:
    class Chain(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(8):
                x = x.sin()
            return x

    program = trace(Chain(), (torch.ones(4),), output=tmp_path / "chain.pt2").program
    alive: list[weakref.ref[torch.Tensor]] = []
    most = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # noqa: ANN001, ANN204
            nonlocal most
            value = func(*args, **(kwargs or {}))
            if func is torch.ops.aten.sin.default:
                alive.append(weakref.ref(value))
                most = max(most, sum(reference() is not None for reference in alive))
            return value

    with Watch():
        [output] = nodes.run(program)
    torch.testing.assert_close(output, Chain()(torch.ones(4)))
    assert len(alive) == 8
    assert most <= 2


def test_modules_have_activations_by_their_names(tmp_path: Path) -> None:
    net, args = models.make_net()
    traced = trace(net, args, output=tmp_path / "net.pt2", activations=True)
    by_module = golden(traced.golden, "activations/modules")
    assert set(by_module) == {"conv", "norm", "out"}
    assert torch.equal(by_module["conv"], net.conv(*args).detach())
    assert torch.equal(by_module["out"], golden(traced.golden, "outputs")["out0"])
    assert "activations/modules.safetensors" in traced.manifest["files"]


def test_modules_called_again_and_tuples_have_names_of_their_own(tmp_path: Path) -> None:
    net = models.Repeated()
    traced = trace(net, (torch.ones(2, 3),), output=tmp_path / "net.pt2", activations=True)
    by_module = golden(traced.golden, "activations/modules")
    assert set(by_module) == {"layer", "layer@2", "pair[0]", "pair[1]", "same", "given"}
    assert not torch.equal(by_module["layer"], by_module["layer@2"])


def places(traced: Traced) -> dict[str, dict[str, str]]:
    """What the archive says about where the modules' values are."""
    with zipfile.ZipFile(traced.archive) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/extra/warpforge_modules.json")]
        return json.loads(archive.read(name))["modules"]


@pytest.mark.parametrize("decompose", [False, True])
def test_the_archive_says_which_node_gives_a_modules_value(tmp_path: Path, decompose: bool) -> None:
    net = models.Repeated()
    traced = trace(net, (torch.ones(2, 3),), output=tmp_path / "net.pt2", activations=True, decompose=decompose)
    linear = "addmm" if decompose else "linear"
    assert places(traced) == {
        "layer": {"node": linear},
        "layer@2": {"node": f"{linear}_1"},
        "pair[0]": {"node": "add"},
        "pair[1]": {"node": "sub"},
        "same": {"node": "mul"},
        "given": {"unknown": "the module has no operation of its own in the graph"},
    }


def test_a_training_graphs_archive_says_it_of_its_forward_pass(tmp_path: Path) -> None:
    made = models.make_loss()
    model = Model(made["model"], (), made["kwargs"])
    traced = trace(model, output=tmp_path / "loss.pt2", train=True, activations=True)
    found = places(traced)
    assert {name: place["node"] for name, place in found.items()} == {
        "net.conv": "convolution",
        "net.norm": "getitem",
        "net.out": "addmm",
        "net": "addmm",
    }


def test_weights_on_request(tmp_path: Path) -> None:
    net, args = models.make_net()
    traced = trace(net, args, output=tmp_path / "net.pt2", weights=True)
    weights = golden(traced.golden, "weights")
    assert set(weights) == set(net.state_dict())
    assert torch.equal(weights["conv.weight"], net.conv.weight)


@pytest.mark.parametrize("decompose", [False, True])
def test_training_graph_has_loss_gradients_and_changed_buffers(tmp_path: Path, decompose: bool) -> None:
    made = models.make_loss()
    model, kwargs = made["model"], made["kwargs"]
    traced = trace(Model(model, (), kwargs), output=tmp_path / "loss.pt2", train=True, decompose=decompose)
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    assert torch.equal(before["net.norm.running_mean"], torch.zeros(2)), "tracing must not train"
    loss = model(**kwargs)["loss"]
    loss.backward()
    gradients = golden(traced.golden, "gradients")
    assert set(gradients) == {name for name, _ in model.named_parameters()}
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(gradients[name], parameter.grad)
    outputs = golden(traced.golden, "outputs")
    torch.testing.assert_close(outputs.pop("loss"), loss.detach())
    torch.testing.assert_close(outputs, dict(model.named_buffers()))
    assert json.loads((traced.golden / "losses.json").read_text())["loss"] == [pytest.approx(loss.item())]


def test_gradients_of_frozen_parameters_are_left_out(tmp_path: Path) -> None:
    made = models.make_loss()
    made["model"].net.conv.weight.requires_grad_(False)
    traced = trace(Model(made["model"], (), made["kwargs"]), output=tmp_path / "loss.pt2", train=True)
    assert "net.conv.weight" not in golden(traced.golden, "gradients")
    assert "net.out.weight" in golden(traced.golden, "gradients")


def test_gradients_through_fused_attention_and_tied_parameters(tmp_path: Path) -> None:
    model, ids = models.Attention(), torch.tensor([[1, 2, 3], [4, 5, 6]])
    traced = trace(model, (ids,), output=tmp_path / "attention.pt2", train=True)
    model(ids).backward()
    (gradient,) = golden(traced.golden, "gradients").values()
    torch.testing.assert_close(gradient, model.embed.weight.grad)


def test_training_graph_knows_the_sources_of_its_forward_pass(tmp_path: Path) -> None:
    made = models.make_loss()
    traced = trace(Model(made["model"], (), made["kwargs"]), output=tmp_path / "loss.pt2", train=True)
    nodes = {node["name"]: node for node in traced.manifest["nodes"]}
    assert (nodes["convolution"]["module"], nodes["addmm"]["module"]) == ("net.conv", "net.out")
    assert "models.py:" in nodes["convolution"]["source"]
    assert nodes["convolution_backward"]["source"] is None


def test_nested_arguments_and_values_that_are_no_tensors(tmp_path: Path) -> None:
    pair = [torch.ones(3), torch.full((3,), 4.0)]
    args = (torch.arange(6.0).reshape(2, 3), {"pair": pair}, 2.0)
    traced = trace(models.Nested(), args, output=tmp_path / "nested.pt2", activations=True)
    assert set(golden(traced.golden, "inputs")) == {"x", "more_pair_0", "more_pair_1"}
    outputs = golden(traced.golden, "outputs")
    assert torch.equal(outputs["out0"], args[0] * 2 + torch.tensor([1.0, 2.0, 3.0]))
    # The absent value keeps its number.
    assert torch.equal(outputs["out2"], pair[0] - pair[1])
    assert torch.equal(outputs["out3"], torch.tensor([[2.0], [5.0]]))
    assert set(outputs) == {"out0", "out2", "out3"}
    assert torch.equal(golden(traced.golden, "activations")["split.2"], outputs["out3"])


def test_outputs_have_the_names_of_the_model(tmp_path: Path) -> None:
    x = torch.arange(3.0)
    traced = trace(models.Named(), (x,), output=tmp_path / "named.pt2")
    outputs = golden(traced.golden, "outputs")
    assert set(outputs) == {"logits", "past.0.0", "past.0.1", "summary.total"}
    assert torch.equal(outputs["past.0.1"], x * 3)


@pytest.mark.parametrize("decompose", [False, True])
def test_changes_in_place_do_not_reach_what_is_saved(tmp_path: Path, decompose: bool) -> None:
    example = torch.ones(2)
    traced = trace(models.Counter(), (example,), output=tmp_path / "counter.pt2", decompose=decompose)
    assert torch.equal(example, torch.ones(2))
    assert torch.equal(golden(traced.golden, "inputs")["x"], torch.ones(2))
    outputs = golden(traced.golden, "outputs")
    assert torch.equal(outputs["out0"], torch.full((2,), 3.0))
    if decompose:
        assert torch.equal(outputs["count"], torch.ones(2))
        assert torch.equal(outputs["x"], torch.full((2,), 2.0))


def test_a_graph_that_computes_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="does not compute what the module does: out0"):
        trace(models.Fickle(), (torch.ones(2),), output=tmp_path / "random.pt2")
    assert not list(tmp_path.iterdir()), "nothing is written"


def test_a_folder_that_is_no_golden_folder_is_not_touched(tmp_path: Path) -> None:
    net, args = models.make_net()
    (tmp_path / "net.golden").mkdir()
    (tmp_path / "net.golden" / "thesis.txt").write_text("years of work")
    with pytest.raises(TraceError, match="is in the way"):
        trace(net, args, output=tmp_path / "net.pt2")
    assert (tmp_path / "net.golden" / "thesis.txt").exists()


def test_tracing_again_replaces_the_folder(tmp_path: Path) -> None:
    net, args = models.make_net()
    trace(net, args, output=tmp_path / "net.pt2", activations=True)
    traced = trace(net, args, output=tmp_path / "net.pt2")
    assert not (traced.golden / "activations.safetensors").exists()


def test_training_needs_a_loss(tmp_path: Path) -> None:
    net, args = models.make_net()
    with pytest.raises(TraceError, match=r"shape \[2, 3\], not a scalar loss"):
        trace(net, args, output=tmp_path / "net.pt2", train=True)
    assert "forward" not in vars(net), "the module is left as it was"


def test_what_torch_cannot_export_says_what_torch_said(tmp_path: Path) -> None:
    class Branch(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1 if x.sum() > 0 else x

    with pytest.raises(TraceError, match=r"torch\.export.export cannot export .*Branch"):
        trace(Branch(), (torch.ones(2),), output=tmp_path / "branch.pt2")


def test_the_archives_name_must_say_what_it_is(tmp_path: Path) -> None:
    net, args = models.make_net()
    with pytest.raises(TraceError, match=r"does not end in \.pt2"):
        trace(net, args, output=tmp_path / "net.onnx")


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.second = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x)).float()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_types_round_elsewhere_when_decomposed(dtype: torch.dtype, tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = Attention().to(dtype)
    traced = trace(model, (torch.randn(2, 12, 32).to(dtype),), output=tmp_path / "m.pt2", decompose=True)
    assert load_file(traced.golden / "outputs.safetensors")["out0"].dtype == torch.float32

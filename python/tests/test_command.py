"""The command line, and reading what a model function returns."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from warpforge import TraceError, load_model
from warpforge.command import main
from warpforge.factory import as_model

MODELS = str(Path(__file__).with_name("models.py"))


def test_the_command_writes_archive_and_folder(tmp_path: Path) -> None:
    output = tmp_path / "deep" / "model.pt2"
    command = [sys.executable, "-m", "warpforge.trace", "models:make_loss", "-o", str(output), "--train"]
    done = subprocess.run(command, cwd=Path(MODELS).parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "gradients.safetensors" in done.stdout
    assert output.is_file()
    assert (tmp_path / "deep" / "model.golden" / "manifest.json").is_file()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("models", "does not name a function"),
        ("no_such_module:make", "there is no module no_such_module"),
        ("no_such_file.py:make", "there is no file no_such_file.py"),
        (
            f"{MODELS}:absent",
            "make_loss, make_named, make_net, make_nothing, make_pair",
        ),
        (f"{MODELS}:NOT_A_FUNCTION", "has no function `NOT_A_FUNCTION`"),
        (f"{MODELS}:make_nothing", "returned a NoneType"),
    ],
)
def test_errors_say_what_and_exit_with_2(
    spec: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([spec, "-o", str(tmp_path / "model.pt2")]) == 2
    assert message in capsys.readouterr().err


def test_a_module_that_is_missing_inside_the_model_file(tmp_path: Path) -> None:
    (tmp_path / "needs_more.py").write_text("import no_such_library\n")
    with pytest.raises(TraceError, match="needs the module no_such_library, which is not installed"):
        load_model(f"{tmp_path}/needs_more.py:make", seed=0)


def test_the_seed_makes_the_weights() -> None:
    weights = [load_model(f"{MODELS}:make_net", seed=seed).module.conv.weight for seed in (1, 1, 2)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ((nn.ReLU(),), "returned a tuple of 1"),
        ({"module": nn.ReLU()}, "unknown keys 'module'"),
        ({"args": ()}, "no key 'model'"),
        ((3, ()), "returned a int as the model"),
        ((nn.ReLU(), 3), "returned a int as args"),
        ((nn.ReLU(), (), 3), "returned a int as kwargs"),
    ],
)
def test_what_a_function_may_not_return(returned: object, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        as_model(returned, "m:f")


def test_too_many_example_arguments() -> None:
    model = as_model((nn.ReLU(), (torch.ones(1), torch.ones(1))), "m:f")
    with pytest.raises(TraceError, match=r"2 example arguments, but ReLU.forward takes 1"):
        model.named_tensors()


def test_the_function_is_not_hidden_by_the_command() -> None:
    import warpforge  # noqa: PLC0415 (the import is what is tested)

    with pytest.raises(ImportError, match="is a command"):
        __import__("warpforge.trace")
    assert callable(warpforge.trace)

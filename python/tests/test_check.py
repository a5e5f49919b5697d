"""`python -m warpforge.check`: one command from a model to a verdict."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from warpforge import TraceError
from warpforge.check import main
from warpforge.factory import load_inputs

TESTS = Path(__file__).parent
BUILT = (TESTS.parents[1] / "target" / kind / "warpt" for kind in ("debug", "release"))
WARPT = os.environ.get("WARPT") or next((str(path) for path in BUILT if path.is_file()), None) or shutil.which("warpt")

needs_warpt = pytest.mark.skipif(WARPT is None, reason="warpt is not built; set WARPT to the program")


def check(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command as a user runs it."""
    command = [sys.executable, "-m", "warpforge.check", *arguments, "--warpt", str(WARPT)]
    return subprocess.run(command, cwd=TESTS, capture_output=True, text=True, check=False)


@needs_warpt
def test_a_model_is_traced_run_and_compared(tmp_path: Path) -> None:
    done = check("models:make_net", "--out", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS:" in done.stdout
    manifest = json.loads((tmp_path / "candidate" / "manifest.json").read_text())
    assert manifest["run"] == {"device": "cpu", "tier": "production", "precision": "model"}
    assert manifest["clusters"]


@needs_warpt
def test_what_differs_is_the_exit_code_and_is_reduced(tmp_path: Path) -> None:
    done = check("models:make_net", "--precision", "bf16", "--out", str(tmp_path))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "first cluster out of tolerance" in done.stdout
    assert (tmp_path / "reduced" / "subgraph.mlir").is_file()


@needs_warpt
def test_a_module_alone_takes_its_inputs_from_another_function() -> None:
    done = check("models:make_pair", "--inputs", "models:make_vector", "--tier", "correctness")
    assert done.returncode == 0, done.stdout + done.stderr


@needs_warpt
def test_outputs_are_compared_by_the_names_of_the_model(tmp_path: Path) -> None:
    done = check("models:make_named", "--out", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "past.0.1" in done.stdout


@needs_warpt
def test_training_compares_gradients() -> None:
    done = check("models:make_loss", "--train")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "gradients" in done.stdout


@needs_warpt
def test_a_run_that_fails_is_the_exit_code(tmp_path: Path) -> None:
    done = check("models:make_net", "--device", "cuda:77", "--out", str(tmp_path))
    assert done.returncode == 3, done.stdout + done.stderr


@needs_warpt
def test_a_temporary_folder_stays_only_where_the_runs_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for arguments, code, kept in [
        (["models:make_net"], 0, 0),
        (["models:make_net", "--device", "cuda:77"], 3, 0),
        (["models:no_such_function"], 2, 0),
        (["models:make_net", "--precision", "bf16"], 1, 1),
    ]:
        done = check(*arguments)
        assert done.returncode == code, done.stdout + done.stderr
        folders = list(tmp_path.glob("warpforge-check-*"))
        assert len(folders) == kept, (arguments, folders)
        assert [str(folder) in done.stderr for folder in folders] == [True] * kept


def test_a_program_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models:make_net", "--warpt", "no-such-program"]) == 2
    assert "there is no program `no-such-program`" in capsys.readouterr().err


def test_inputs_are_a_tensor_a_tuple_or_names(tmp_path: Path) -> None:
    (tmp_path / "inputs.py").write_text(
        "import torch\n"
        "one = lambda: torch.ones(2)\n"
        "several = lambda: (torch.ones(2), 3)\n"
        "named = lambda: {'x': torch.ones(2)}\n"
        "wrong = lambda: 3\n"
    )
    file = f"{tmp_path}/inputs.py"
    assert torch.equal(load_inputs(f"{file}:one", 0)[0][0], torch.ones(2))
    assert load_inputs(f"{file}:several", 0)[0][1] == 3
    assert list(load_inputs(f"{file}:named", 0)[1]) == ["x"]
    with pytest.raises(TraceError, match="returned a int"):
        load_inputs(f"{file}:wrong", 0)


@needs_warpt
def test_a_module_that_a_branch_calls_is_no_obstacle() -> None:
    done = check("models:make_branch")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS:" in done.stdout

"""What each module of a model gave, by its name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn


@contextmanager
def recorded(module: nn.Module) -> Iterator[dict[str, torch.Tensor]]:
    """Fills a dictionary with the tensors that the modules inside return while they run.

    They are named as in `named_modules()`: `encoder.layer.0`. What is in a tuple, list, dict or dataclass is `name[0]`,
    `name[1]`, … by its place; what a module gives when it is called again is `name@2`, `name@3`, …. Modules that a
    branch or a loop calls are left out: PyTorch compiles those, and what it compiles may write nothing down.
    """
    values: dict[str, torch.Tensor] = {}
    calls: dict[str, int] = {}

    def keep(name: str, returned: object) -> None:
        if torch.compiler.is_compiling():
            return
        calls[name] = calls.get(name, 0) + 1
        call = name if calls[name] == 1 else f"{name}@{calls[name]}"
        leaves = torch.utils._pytree.tree_leaves(returned)
        whole = isinstance(returned, torch.Tensor)
        for place, leaf in enumerate(leaves):
            if isinstance(leaf, torch.Tensor):
                # A copy, since a later module may change it in place.
                values[call if whole else f"{call}[{place}]"] = leaf.detach().clone()

    def hook(name: str) -> Any:  # noqa: ANN401 (what torch takes as a hook)
        return lambda _module, _arguments, returned: keep(name, returned)

    handles = [inner.register_forward_hook(hook(name)) for name, inner in module.named_modules() if name]
    try:
        yield values
    finally:
        for handle in handles:
            handle.remove()

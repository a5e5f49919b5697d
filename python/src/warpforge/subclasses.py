"""Parameters that are tensor subclasses, such as torchao's quantized weights: an archive holds the tensors inside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from torch._functorch._aot_autograd.subclass_parametrization import UnwrapTensorSubclass
from torch.nn.utils import parametrize
from torch.utils._python_dispatch import is_traceable_wrapper_subclass


@contextmanager
def plain_parameters(module: nn.Module) -> Iterator[None]:
    """Lets parameters and buffers that are subclasses be made of plain tensors, which an export then has as parameters.

    `torch.export.save` pickles a subclass as a whole, and nothing but Python can read that.
    """
    found = [(owner, name) for owner in module.modules() for name in _subclasses(owner)]
    for owner, name in found:
        parametrize.register_parametrization(owner, name, UnwrapTensorSubclass())
    try:
        yield
    finally:
        for owner, name in found:
            parametrize.remove_parametrizations(owner, name, leave_parametrized=True)


def _subclasses(module: nn.Module) -> list[str]:
    own = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
    return [name for name, tensor in own if is_traceable_wrapper_subclass(tensor)]

"""Traces PyTorch models for `warpt` and keeps PyTorch's own results beside them.

    from warpforge import trace
    trace(model, (example,), output="model.pt2")

The same from the command line: `python -m warpforge.trace my_module:make_model -o model.pt2`.
"""

from warpforge.dynamic import DynamicDim
from warpforge.errors import TraceError
from warpforge.factory import Model, load_model
from warpforge.tracing import Traced, trace

__version__ = "0.1.0"
__all__ = ["DynamicDim", "Model", "TraceError", "Traced", "load_model", "trace"]

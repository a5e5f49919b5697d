"""Requests on standard input and answers on standard output, a line of JSON each."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

Answer = Callable[[dict[str, Any]], dict[str, Any]]


def failed(error: Exception) -> dict[str, Any]:
    """The answer of what cannot be done."""
    return {"failed": f"{type(error).__name__}: {error}"}


def serve(start: Callable[[], Answer]) -> None:
    """Answers requests until there are no more."""
    warnings.filterwarnings("ignore")
    # Whatever a library prints must not end up among the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    answer = start()
    for line in sys.stdin:
        try:
            found = answer(json.loads(line))
        except Exception as error:  # whatever cannot be done is an answer
            found = failed(error)
        answers.write(json.dumps(found) + "\n")
        answers.flush()

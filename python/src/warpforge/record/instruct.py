"""Instructions with answers: examples packed into sequences of a fixed length, loss on answers only."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer

from warpforge.errors import TraceError
from warpforge.record import sources

ROWS = ("input_ids", "labels", "position_ids", "segment_ids")
# What the loss leaves out.
IGNORED = -100
# Without a file for the evaluation, every so many-th example is for it.
HELD_OUT = 10


class Instruct:
    """Instructions of a JSONL file, for training and for evaluation."""

    def __init__(self, plan: dict[str, Any], vocabulary: Path) -> None:
        data = plan["data"]
        self.settings, self.vocabulary = data, vocabulary
        self.tokenizer = Tokenizer.from_file(str(vocabulary))
        self.special = {name: self._special(data.get(f"{name}_token"), name) for name in ("bos", "eos", "pad")}
        self.files = {"train": sources.resolve(data["train"], "the train data")}
        train = _examples(self.files["train"])
        if data.get("eval"):
            self.files["eval"] = sources.resolve(data["eval"], "the eval data")
            held_out = _examples(self.files["eval"])
        else:
            self.files["eval"] = self.files["train"]
            held_out = train[HELD_OUT - 1 :: HELD_OUT]
            train = [example for at, example in enumerate(train) if at % HELD_OUT != HELD_OUT - 1]
        self.skipped = 0
        self.train = self._packed("train", train[: data.get("limit_train")])
        self.eval = self._packed("eval", held_out[: data.get("limit_eval")])

    @property
    def vocabulary_size(self) -> int:
        """How many tokens there are."""
        return self.tokenizer.get_vocab_size()

    def batch(self, indices: list[int]) -> dict[str, torch.Tensor]:
        """The inputs of a training step."""
        return {name: torch.from_numpy(self.train[name][indices].astype(np.int64)) for name in ROWS}

    def evaluation_batch(self, indices: list[int]) -> dict[str, torch.Tensor]:
        """The inputs of a run that is judged."""
        return {name: torch.from_numpy(self.eval[name][indices].astype(np.int64)) for name in ROWS}

    def metrics(self, outputs: dict[str, np.ndarray]) -> tuple[dict[str, float], dict[str, str]]:
        """The perplexity of all answers."""
        total, tokens = outputs["nll"].astype(np.float64).sum(), outputs["tokens"].astype(np.float64).sum()
        return {"perplexity": math.exp(total / tokens)}, {}

    def _special(self, token: str | None, name: str) -> int | None:
        found = self.tokenizer.token_to_id(token) if token else None
        if name == "bos" and not token:
            return None
        if found is None:
            what = f"has no token {token!r}" if token else f"names no {name} token"
            raise TraceError(f"the tokenizer {what}", f"name a token that it has in [data] {name}_token")
        return found

    def _packed(self, part: str, examples: list[tuple[int, str, str]]) -> dict[str, np.ndarray]:
        """Examples one after the other, each sequence filled with as many as fit."""
        length, path = self.settings["max_length"], self.files[part]
        rows: list[dict[str, list[int]]] = []
        for line, prompt, answer in examples:
            ids, labels = self._tokens(prompt, answer)
            if len(ids) > length:
                if not self.settings["skip_long"]:
                    raise TraceError(
                        f"{path}:{line}: the example has {len(ids)} tokens, and a sequence {length}",
                        "a larger [data] max_length takes it, `skip_long = true` leaves such examples out",
                    )
                self.skipped += 1
                continue
            if not rows or len(rows[-1]["input_ids"]) + len(ids) > length:
                rows.append({name: [] for name in ROWS})
            row = rows[-1]
            segment = row["segment_ids"][-1] + 1 if row["segment_ids"] else 1
            row["input_ids"] += ids
            row["labels"] += labels
            row["position_ids"] += range(len(ids))
            row["segment_ids"] += [segment] * len(ids)
        if not rows:
            raise TraceError(f"{path}: there are no examples for {part}")
        padding = {"input_ids": self.special["pad"], "labels": IGNORED, "position_ids": 0, "segment_ids": 0}
        return {
            name: np.array([row[name] + [padding[name]] * (length - len(row[name])) for row in rows], dtype=np.int32)
            for name in ROWS
        }

    def _tokens(self, prompt: str, answer: str) -> tuple[list[int], list[int]]:
        """The tokens of an example, and its labels: those of the answer and the end."""
        first = [] if self.special["bos"] is None else [self.special["bos"]]
        asked = first + self.tokenizer.encode(prompt, add_special_tokens=False).ids
        given = [*self.tokenizer.encode(answer, add_special_tokens=False).ids, self.special["eos"]]
        return asked + given, [IGNORED] * len(asked) + given


def _prompt(instruction: str, given: str) -> str:
    more = f"### Input:\n{given}\n\n" if given else ""
    return f"### Instruction:\n{instruction}\n\n{more}### Response:\n"


def _examples(path: Path) -> list[tuple[int, str, str]]:
    """Line, prompt and answer of each example: `instruction`, `input`, `output`, or `instances` of the last two."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if not line.strip():
            continue
        try:
            one = json.loads(line)
            instances = one.get("instances", [one])
            for instance in instances:
                instruction, given, answer = one["instruction"], instance.get("input") or "", instance["output"]
                if not all(isinstance(text, str) for text in (instruction, given, answer)):
                    raise TypeError("instruction, input and output must be strings")
                found.append((number, _prompt(instruction, given), answer))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise TraceError(
                f"{path}:{number}: no example: {type(error).__name__}: {error}",
                "a line is an object with the strings instruction, input and output; is the file cut off?",
            ) from error
    return found

"""SQuAD by transformers' tokenizer: features with sliding windows, answers from logits, F1 and exact match."""

from __future__ import annotations

import collections
import json
import re
import string
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from warpforge.errors import TraceError
from warpforge.record import sources

ROWS = ("input_ids", "attention_mask", "token_type_ids")
ARTICLES = re.compile(r"\b(a|an|the)\b")


class Squad:
    """Questions as features of a fixed length, for training and for evaluation."""

    def __init__(self, plan: dict[str, Any], folder: Path | None) -> None:
        data = plan["data"]
        self.settings = data
        vocabulary = sources.resolve(data["vocabulary"], "the vocabulary") if data.get("vocabulary") else None
        self.vocabulary = vocabulary or (folder and folder / "vocab.txt")
        if self.vocabulary is None or not self.vocabulary.is_file():
            raise TraceError(
                "there is no vocabulary", "name it in [data] vocabulary, or have vocab.txt beside the weights"
            )
        self.tokenizer = transformers.BertTokenizer(str(self.vocabulary), do_lower_case=data["lowercase"])
        self.files = {part: sources.resolve(data[part], f"the {part} data") for part in ("train", "eval")}
        self.examples = {part: _examples(path, data.get(f"limit_{part}")) for part, path in self.files.items()}
        self.train = self._features("train")
        self.eval = self._features("eval")

    @property
    def vocabulary_size(self) -> int:
        """How many tokens there are."""
        return len(self.tokenizer)

    def batch(self, indices: list[int]) -> dict[str, torch.Tensor]:
        """The inputs of a training step."""
        return {name: torch.from_numpy(values[indices].astype(np.int64)) for name, values in self.train.items()}

    def evaluation_batch(self, indices: list[int]) -> dict[str, torch.Tensor]:
        """The inputs of a run without a loss."""
        return {name: torch.from_numpy(self.eval[name][indices].astype(np.int64)) for name in ROWS}

    def metrics(self, outputs: dict[str, np.ndarray]) -> tuple[dict[str, float], dict[str, str]]:
        """F1 and exact match of the logits of all evaluation features, and the answers by question."""
        answers = self._answers(outputs["start_logits"], outputs["end_logits"])
        exact = f1 = 0.0
        for example in self.examples["eval"]:
            answer = answers[example["id"]]
            golds = [text for _, text in example["answers"]] or [""]
            exact += max(float(_normalized(answer) == _normalized(gold)) for gold in golds)
            f1 += max(_f1(answer, gold) for gold in golds)
        count = max(len(self.examples["eval"]), 1)
        return {"exact_match": 100.0 * exact / count, "f1": 100.0 * f1 / count}, answers

    def _encoded(self, part: str) -> transformers.BatchEncoding:
        examples = self.examples[part]
        encoded = self.tokenizer(
            [example["question"].lstrip() for example in examples],
            [example["context"] for example in examples],
            truncation="only_second",
            max_length=self.settings["max_length"],
            stride=self.settings["stride"],
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            padding="max_length",
        )
        self._check_windows(part, encoded)
        return encoded

    def _check_windows(self, part: str, encoded: transformers.BatchEncoding) -> None:
        """Refuses windows that do not reach the end of their text: tokenizers 0.23.2 loses tokens of the last one."""
        last = {example: at for at, example in enumerate(encoded["overflow_to_sample_mapping"])}
        for example, at in last.items():
            if at == 0 or encoded["overflow_to_sample_mapping"][at - 1] != example:
                continue
            offsets, sequences = encoded["offset_mapping"][at], encoded.sequence_ids(at)
            reached = max(end for (_, end), sequence in zip(offsets, sequences, strict=True) if sequence == 1)
            context = self.examples[part][example]["context"]
            whole = self.tokenizer(context, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
            if reached != whole["offset_mapping"][-1][1]:
                raise TraceError(
                    f"the last window of question {self.examples[part][example]['id']} ends at character {reached} of "
                    f"{len(context)}: the tokenizer loses the end of long texts",
                    "install another version of the package tokenizers; 0.23.2 does this",
                )

    def _features(self, part: str) -> dict[str, np.ndarray]:
        encoded = self._encoded(part)
        features = {name: np.array(encoded[name], dtype=np.int32) for name in ROWS}
        self.examples[f"{part}_of"] = encoded["overflow_to_sample_mapping"]
        if part == "train":
            spans = [self._span(encoded, at) for at in range(len(encoded["input_ids"]))]
            features["start_positions"] = np.array([start for start, _ in spans], dtype=np.int32)
            features["end_positions"] = np.array([end for _, end in spans], dtype=np.int32)
        else:
            self.offsets = [
                [offset if encoded.sequence_ids(at)[k] == 1 else None for k, offset in enumerate(offsets)]
                for at, offsets in enumerate(encoded["offset_mapping"])
            ]
        return features

    def _span(self, encoded: transformers.BatchEncoding, at: int) -> tuple[int, int]:
        """The first and last token of the answer, or the position of [CLS] where the window does not have it."""
        example = self.examples["train"][encoded["overflow_to_sample_mapping"][at]]
        offsets, sequences = encoded["offset_mapping"][at], encoded.sequence_ids(at)
        none = encoded["input_ids"][at].index(self.tokenizer.cls_token_id)
        context = [k for k, sequence in enumerate(sequences) if sequence == 1]
        if not example["answers"] or not context:
            return none, none
        start, text = example["answers"][0]
        end = start + len(text)
        first, last = context[0], context[-1]
        if not (offsets[first][0] <= start and offsets[last][1] >= end):
            return none, none
        while first < len(offsets) and offsets[first][0] <= start:
            first += 1
        while offsets[last][1] >= end:
            last -= 1
        return first - 1, last + 1

    def _answers(self, starts: np.ndarray, ends: np.ndarray) -> dict[str, str]:
        """The best span of all windows of a question."""
        best: dict[int, tuple[float, str]] = {}
        most, longest = self.settings["n_best"], self.settings["max_answer_length"]
        for at, example in enumerate(self.examples["eval_of"]):
            offsets, context = self.offsets[at], self.examples["eval"][example]["context"]
            for start in np.argsort(-starts[at], kind="stable")[:most].tolist():
                for end in np.argsort(-ends[at], kind="stable")[:most].tolist():
                    if offsets[start] is None or offsets[end] is None or not start <= end < start + longest:
                        continue
                    score = float(starts[at][start]) + float(ends[at][end])
                    if example not in best or score > best[example][0]:
                        best[example] = (score, context[offsets[start][0] : offsets[end][1]])
        return {one["id"]: best.get(at, (0.0, ""))[1] for at, one in enumerate(self.examples["eval"])}


def _examples(path: Path, limit: int | None) -> list[dict[str, Any]]:
    """The questions of a file of SQuAD's form."""
    try:
        articles = json.loads(path.read_text(encoding="utf-8"))["data"]
        examples = [
            {
                "id": question["id"],
                "question": question["question"],
                "context": paragraph["context"],
                "answers": [(answer["answer_start"], answer["text"]) for answer in question["answers"]],
            }
            for article in articles
            for paragraph in article["paragraphs"]
            for question in paragraph["qas"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise TraceError(f"{path} is no file of SQuAD v1.1: {type(error).__name__}: {error}") from error
    return examples[:limit] if limit else examples


def _normalized(text: str) -> str:
    """SQuAD's own: lower case, without punctuation, articles and repeated spaces."""
    plain = "".join(character for character in text.lower() if character not in string.punctuation)
    return " ".join(ARTICLES.sub(" ", plain).split())


def _f1(answer: str, gold: str) -> float:
    found, wanted = _normalized(answer).split(), _normalized(gold).split()
    common = sum((collections.Counter(found) & collections.Counter(wanted)).values())
    if common == 0:
        return 0.0
    precision, recall = common / len(found), common / len(wanted)
    return 2 * precision * recall / (precision + recall)

"""Counts the operations in exported archives: `python ops.py FOLDER` prints each with where it occurs."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

FORMS = ("as_exported", "decomposed", "train", "train_decomposed")


def main(folder: Path) -> None:
    """Prints one line for each operation: how many models of each form have it, how often, and one of the models."""
    occurrences = {form: Counter() for form in FORMS}
    models: dict[str, dict[str, set[str]]] = {}
    for path in sorted(folder.glob("*/*/model.golden/manifest.json")):
        model, form = path.parts[-4:-2]
        for node in json.loads(path.read_text(encoding="utf-8"))["nodes"]:
            target = node["target"]
            occurrences[form][target] += 1
            models.setdefault(target, {}).setdefault(form, set()).add(model)
    header = "".join(f"{form:>18}" for form in FORMS)
    print(f"{'operation':<60}{header}  models (nodes)")
    for target, by_form in sorted(models.items(), key=lambda item: -len(set().union(*item[1].values()))):
        cells = "".join(f"{f'{len(by_form.get(form, ()))} ({occurrences[form][target]})':>18}" for form in FORMS)
        examples = sorted(set().union(*by_form.values()))
        print(f"{target:<60}{cells}  {', '.join(examples[:3])}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

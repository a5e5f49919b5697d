"""GCUPS of parasail or edlib on the pairs of a FASTA file: PEER FILE THREADS."""

import importlib
import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

Pairs = list[tuple[str, str]]


def read_pairs(path: Path) -> Pairs:
    """Read the sequences of a FASTA file, two by two."""
    sequences = []
    for line in path.read_text().splitlines():
        if line.startswith(">"):
            sequences.append([])
        else:
            sequences[-1].append(line.strip())
    joined = ["".join(parts) for parts in sequences]
    return list(zip(joined[::2], joined[1::2], strict=True))


def rate(pairs: Pairs, threads: int, score: Callable[[str, str], int]) -> float:
    """Giga-cells a second; both libraries release the interpreter's lock or run in processes of their own."""
    cells = sum(len(a) * len(b) for a, b in pairs)
    size = max(1, len(pairs) // (8 * threads))
    chunks = [pairs[i : i + size] for i in range(0, len(pairs), size)]

    def work(chunk: Pairs) -> list[int]:
        return [score(a, b) for a, b in chunk]

    work(chunks[0])
    began = time.perf_counter()
    if threads == 1:
        for chunk in chunks:
            work(chunk)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, chunks))
    return cells / (time.perf_counter() - began) / 1e9


def main() -> None:
    """Time the peer that is asked for; only that one needs to be installed."""
    peer, path, threads = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    library = importlib.import_module(peer)
    pairs = read_pairs(path)
    if peer == "edlib":
        found = {"edit": rate(pairs, threads, lambda a, b: library.align(a, b, task="distance")["editDistance"])}
    else:
        matrix = library.matrix_create("ACGT", 2, -4)
        # Parasail's first gap penalty is that of the first base, ours comes before it. Of its methods, scan is the
        # fastest for global scores and striped for local ones.
        found = {
            "global": rate(pairs, threads, lambda a, b: library.nw_scan_sat(a, b, 6, 2, matrix).score),
            "local": rate(pairs, threads, lambda a, b: library.sw_striped_sat(a, b, 6, 2, matrix).score),
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main()

"""Windows per second and identity of spoa on an exported folder: FOLDER THREADS."""

import json
import sys
import time
from multiprocessing import Pool
from pathlib import Path

import edlib
import spoa


def read(path: Path) -> list[tuple[str, str]]:
    """Read the names and sequences of a FASTA file."""
    records = []
    for line in path.read_text().splitlines():
        if line.startswith(">"):
            records.append((line[1:].strip(), []))
        else:
            records[-1][1].append(line.strip())
    return [(name, "".join(parts)) for name, parts in records]


def consensus(reads: list[str]) -> str:
    """Compute the consensus of a window."""
    # Racon's scores and global alignment.
    return spoa.poa(reads, algorithm=1, genmsa=False, m=3, n=-5, g=-4, e=-4, q=-4, c=-4)[0]


def main() -> None:
    """Time spoa on all windows and judge it by the truth."""
    folder, threads = Path(sys.argv[1]), int(sys.argv[2])
    windows = {}
    for name, bases in read(folder / "reads.fa"):
        windows.setdefault(name, []).append(bases)
    truths = dict(read(folder / "truth.fa"))
    names = list(windows)
    with Pool(threads) as pool:
        pool.map(consensus, [windows[names[0]]] * threads)
        began = time.perf_counter()
        found = pool.map(consensus, [windows[name] for name in names], chunksize=4)
        seconds = time.perf_counter() - began
    wrong = sum(edlib.align(truths[name], bases)["editDistance"] for name, bases in zip(names, found, strict=True))
    total = sum(len(truths[name]) for name in names)
    print(json.dumps({"windows_per_second": len(names) / seconds, "identity": 1 - wrong / total}))


if __name__ == "__main__":
    main()

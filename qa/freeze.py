"""Compare the results of two project folders, to show that a change of the code changed no result.

    python qa/freeze.py record ../before before.json --scale smoke
    python qa/freeze.py compare ../before . --scale smoke
    python qa/freeze.py compare before.json . --scale smoke

Compares weights, decoded text, scores with the statistics of each sentence, measurements of models, tables, numbers of
figures, claims and the settings of runs. Leaves out what may differ between two equal runs: the commit, hardware, times
and hours. Claims about times differ from run to run and are printed all the same. Prints a line for each difference and
exits with 1 if there is one.
"""

import argparse
import csv
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import yaml

Digests = dict[str, str]
"""A digest of each result, by what it is."""

MEASURES = ("scores", "phenomena", "perplexities", "attention", "alignments")
PROVENANCE = {"commit", "hardware", "device_hours", "hours", "seconds", "format"}
"""Columns and keys that say where and when something was computed."""
OF_FILES = {"inputs", "training", "weights", "weights_digest", "statistics"}
"""Keys that hold names or digests of files; the contents of these files are compared instead."""


def main(argv: list[str]) -> int:
    args = parse(argv)
    if args.command == "record":
        args.out.write_text(json.dumps(digests_of(args.folder, args.scale), indent=1))
        return 0
    before, after = (digests_of(folder, args.scale) for folder in (args.before, args.after))
    differences = list(compare(before, after))
    print("\n".join(differences) or f"no difference in {len(before)} results")
    return bool(differences) or not before


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    record = commands.add_parser("record", help="write the digests of a project's results to a file")
    record.add_argument("folder", type=Path)
    record.add_argument("out", type=Path)
    both = commands.add_parser("compare", help="compare two project folders, or what was recorded of them")
    both.add_argument("before", type=Path)
    both.add_argument("after", type=Path)
    for command in (record, both):
        command.add_argument("--scale", default="smoke")
    return parser.parse_args(argv)


def digests_of(folder: Path, scale: str) -> Digests:
    """Return the digests of a project's results, or read those that were recorded in a file."""
    if folder.is_file():
        return json.loads(folder.read_text())
    found = dict(digests_of_reports(folder / "results" / scale))
    for run in sorted((folder / "work" / scale / "runs").glob("*/*/*/seed*")):
        name = "/".join(run.parts[-4:])
        found |= {f"{kind} {name}/{file}": digest for kind, file, digest in digests_of_run(run)}
    return found


def digests_of_run(run: Path) -> Iterator[tuple[str, str, str]]:
    """Yield kind, file and digest of each result of a run."""
    for path in sorted(path for path in run.rglob("*") if path.is_file() and ".digests" not in path.parts):
        file = str(path.relative_to(run))
        folder = file.split("/")[0]
        if file == "run.yaml":
            yield "settings", file, digest(yaml.safe_load(path.read_text()))
        elif path.suffix == ".safetensors" and folder != "checkpoints":
            yield "weights", file, digest_of_tensors(path)
        elif folder in ("translations", "transcripts", "parses") and path.suffix in (".tok", ".txt", ".trees"):
            yield "text", file, digest(path.read_text())
        elif path.suffix == ".json" and (folder in MEASURES or file == "gates.json"):
            yield "score", file, digest(without(json.loads(path.read_text())))
        elif path.suffix == ".npz":
            yield "statistics", file, digest_of_arrays(path)


def digests_of_reports(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield name and digest of each column of each table and figure, and of each claim."""
    for path in sorted(folder.glob("*/*.csv")):
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        if path.stem == "claims":
            yield from ((f"claim {path.parent.name}/{row['claim']}", digest(row)) for row in rows)
            continue
        for column in rows[0] if rows else ():
            if not is_provenance(column):
                yield f"report {path.parent.name}/{path.stem}: {column}", digest([row[column] for row in rows])


def is_provenance(column: str) -> bool:
    """Return whether a column holds a time, follows from one, or names a machine or a version of the code."""
    return column in PROVENANCE or bool(re.search(r"(^|_)(hours|seconds|milliseconds|exponent|flops)(_|$)", column))


def compare(before: Digests, after: Digests) -> Iterator[str]:
    """Yield a line for each result that is in one project only, or differs."""
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            yield f"only before: {name}"
        elif name not in before:
            yield f"only after: {name}"
        elif before[name] != after[name]:
            yield f"differs: {name}"


def without(value: Any) -> Any:
    """Return a JSON value without the keys that may differ between equal results."""
    if isinstance(value, dict):
        return {key: without(item) for key, item in value.items() if key not in PROVENANCE | OF_FILES}
    return [without(item) for item in value] if isinstance(value, list) else value


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def digest_of_tensors(path: Path) -> str:
    """Return the digest of names, shapes and values in a safetensors file, without its metadata."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__", None)
    values = hashlib.sha256(content[8 + length :]).hexdigest()
    return digest([header, values])


def digest_of_arrays(path: Path) -> str:
    """Return the digest of names and values in a .npz file."""
    with np.load(path) as arrays:
        return digest({name: [arrays[name].shape, arrays[name].tolist()] for name in arrays.files})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

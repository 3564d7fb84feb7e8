"""Mutation testing: change one thing of the product at a time, and see whether the tests of its package notice.

    make mutants [PACKAGE="models training"] [MINUTES=10] [SEED=1]

Runs in a copy of the project, one mutant after the other, and writes each to docs/measured/mutants.csv at once. Mutants
that mean the same as the program are listed in equivalent.yaml, with the reason. Entries that match no line are
reported. `--again` repeats the mutants that no test noticed. `--tests` uses the named tests, which are relative to
tests/.
"""

import argparse
import csv
import math
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from candidates import TESTS, Mutant, mutants, named, package_of
from equivalent import equivalents, outdated, reason
from filelock import FileLock
from sandbox import RESULTS, Sandbox, Tests

ROOT = Path(__file__).resolve().parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.yaml")
COLUMNS = ("file", "operator", "before", "after", "outcome", "by", "seconds")
LIMIT = "seconds per test, before its further parameters are skipped; four times that per file, twenty per mutant"
Row = dict[str, str]


def key(row: Row) -> tuple[str, str, str]:
    return row["file"], row["before"], row["after"]


class Results:
    """A table of the mutants tried; a repeated mutant replaces its row."""

    def __init__(self, path: Path):
        self.path = path
        self.rows = self._read()

    def _read(self) -> dict[tuple[str, str, str], Row]:
        if not self.path.exists():
            return {}
        with open(self.path, newline="", encoding="utf-8") as handle:
            return {key(row): row for row in csv.DictReader(handle)}

    def add(self, row: Row) -> None:
        """Add a row, and keep the rows that other processes have added since it was read."""
        with FileLock(Path(tempfile.gettempdir(), "reprise-mutants.lock")):
            self.rows = self._read() | {key(row): row}
            with open(self.path, "w", newline="", encoding="utf-8") as handle:
                writer = csv.DictWriter(handle, COLUMNS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(self.rows[key] for key in sorted(self.rows))

    def table(self, same: dict[tuple[str, str, str], str]) -> str:
        """Return a table by package: mutants tried, noticed and not noticed, and equivalent ones."""
        counts: dict[str, Counter] = {}
        for row in self.rows.values():
            outcome = "equivalent" if reason(key(row), same) else row["outcome"]
            counts.setdefault(package_of(row["file"]), Counter())[outcome] += 1
        lines = ["package      tried  noticed    share  not noticed  equivalent"]
        for package, count in [*sorted(counts.items()), ("all", sum(counts.values(), Counter()))]:
            tried = count.total() - count["equivalent"]
            noticed = count["noticed"] + count["timeout"]
            share = f"{100 * noticed / tried:.0f} %" if tried else ""
            lines.append(f"{package:12} {tried:5} {noticed:8} {share:>8} {tried - noticed:12} {count['equivalent']:11}")
        return "\n".join(lines)


def tried(mutant: Mutant, source: str, tests: Tests, args: argparse.Namespace) -> Row:
    before, after = mutant.change(source)
    row = {"file": mutant.file, "operator": mutant.operator.removeprefix("core/"), "before": before, "after": after}
    own = tuple(f"tests/{name}" for name in TESTS[mutant.package])
    chosen = tests.traces.tests_of(mutant.file, mutant.line, own, 20 * args.limit if args.limit else math.inf)
    if args.tests and (not chosen or tests.traces.on_import(mutant.file, mutant.line)):  # or in other processes
        chosen = [test for test in tests.traces.seconds if test not in tests.traces.failed]
    if not chosen:
        return row | {"outcome": "no test runs it", "by": "", "seconds": "0"}
    found = tests.outcome(mutant.file, mutant.applied(source), chosen)
    return row | {"outcome": found.result, "by": found.by, "seconds": f"{found.seconds:.1f}"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", nargs="*", default=list(TESTS), choices=TESTS, metavar="PACKAGE")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="repeat the mutants that no test noticed")
    parser.add_argument(
        "--tests", nargs="*", metavar="FILE", help="run these tests instead of the package's; slow ones, too"
    )
    parser.add_argument("--limit", type=float, metavar="SECONDS", help=LIMIT)
    parser.add_argument("--most", type=int, metavar="N", help="maximum number of mutants")
    parser.add_argument("--folder", type=Path, help="keep the copy and its traces here; the next call updates them")
    args = parser.parse_args()
    for entry in outdated(ROOT, equivalents(EQUIVALENT)):
        print(f"{EQUIVALENT.name}: correct or remove the entry of {entry}; its file has no such lines", flush=True)
    with tempfile.TemporaryDirectory(prefix="reprise-mutants-") as temporary:
        folder = (args.folder or Path(temporary)).resolve()
        folder.mkdir(exist_ok=True)
        print(sample(Sandbox(ROOT, folder), args).table(equivalents(EQUIVALENT)))


def sample(sandbox: Sandbox, args: argparse.Namespace) -> Results:
    """Try mutants until the time is over."""
    end, done = time.monotonic() + 60 * args.minutes, 0
    results, same = Results(ROOT / RESULTS), equivalents(EQUIVALENT)
    tests = None
    for mutant in wanted(sandbox, args, results):
        if time.monotonic() > end or done == args.most:
            break
        source = sandbox.source(mutant.file)
        found = (mutant.file, *mutant.change(source))
        if reason(found, same) or (found in results.rows and not args.again):
            continue
        if not tests:
            tests = sandbox.tests(args.tests or tests_of_packages(args.package), args.limit, slow=bool(args.tests))
            for test in tests.traces.failed:
                print(f"left out, fails without any change: {test}", flush=True)
        row = tried(mutant, source, tests, args)
        results.add(row)
        done += 1
        said = f"{row['outcome']:15} {row['seconds']:>6} s  {row['file']}: {row['before']} -> {row['after']}"
        print(said, flush=True)
    if tests:
        tests.close()
    return results


def tests_of_packages(packages: list[str]) -> list[str]:
    """Return the tests of some packages, without files in folders that are named as well."""
    names = {name for package in packages or TESTS for name in TESTS[package]}
    return sorted(name for name in names if name.partition("/")[0] not in names - {name})


def wanted(sandbox: Sandbox, args: argparse.Namespace, results: Results) -> Iterator[Mutant]:
    """Yield a sample of mutants, or those that no test noticed before."""
    packages = args.package or list(TESTS)
    if not args.again:
        yield from mutants(sandbox.folder, packages, args.seed)
        return
    for row in list(results.rows.values()):
        if row["outcome"] not in ("noticed", "timeout") and package_of(row["file"]) in packages:
            change = row["before"], row["after"]
            if mutant := named(sandbox.folder, row["file"], row["operator"], change):
                yield mutant


if __name__ == "__main__":
    main()

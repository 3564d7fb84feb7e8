"""Mutants: cosmic-ray's operators over the files of a package, with one mutant chosen at each place."""

import ast
import contextlib
import itertools
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, lru_cache
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

GROUND = "ground"
"""Name of the modules directly in pipeline/."""
PROGRAM = "reprise"
"""Name of all modules in reprise/."""
STAGES = ["test_stages.py"]
RECORDS = [
    "workflow/test_dry_runs.py::test_schemas_are_those_of_the_records_and_closed",
    "papers/test_without_effect.py",
]
"""Tests of all settings."""
TESTS = {
    "models": ["models", "search", *RECORDS],
    "search": ["search", "decoding"],
    "training": ["training", *STAGES],
    "decoding": ["decoding", "models/test_captured_search.py", *STAGES],
    "probes": [
        "probes",
        *STAGES,
        "decoding/test_decode.py",
        "decoding/test_translate.py",
        "decoding/test_transcribe.py",
    ],
    "outputs": ["outputs", "metrics", *STAGES, "decoding/test_decode.py", "decoding/test_transcribe.py"],
    "metrics": ["metrics", "outputs"],
    "analysis": ["analysis", "report"],
    "report": [
        "report",
        "site",
        "outputs/test_score.py",
        "status/test_results.py",
        "analysis/claims/test_claims_stage.py",
        "papers/test_comparability.py",
        "papers/test_readings.py",
        *STAGES,
    ],
    "papers": ["papers", *RECORDS, *STAGES],
    "planning": ["planning", "data/test_check_data.py", *STAGES],
    "data": ["data", "papers/test_graph.py", *RECORDS, *STAGES],
    "cluster": ["cluster", *STAGES],
    "config": ["papers", "training/test_key.py", "core/test_schema.py", *RECORDS],
    "core": ["core", "papers", "report", "decoding/test_averaging.py", *STAGES],
    "workflow": ["papers/test_graph.py", "status", "workflow"],
    "grammar": ["grammar"],
    GROUND: STAGES,
    PROGRAM: [
        "use",
        "status",
        "store",
        "workflow/test_verify.py",
        "papers/test_readings.py",
        "outputs/test_score.py",
        "planning/test_free.py",
        "report/test_show.py",
        "training/test_warm_start.py",
    ],
}
"""Folders under tests/ that have to notice the mutants of each package."""
WORD_LISTS = "grammar/lexicon"
LEFT_OUT = re.compile("RemoveDecorator|_(?!Is)[A-Za-z]+_Is(Not)?$|_Is_Eq$|_IsNot_NotEq$|_Is(Not)?_[GL]tE?$")
"""Operators whose mutants all fail on import, or take identity for equality, which depends on the interpreter."""

Place = tuple[int, int]
"""Line, from 1, and column, from 0."""


def package_of(file: str) -> str:
    top, *folders = Path(file).parent.parts
    return PROGRAM if top == PROGRAM else folders[0] if folders else GROUND


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    file: str
    operator: str
    occurrence: int
    line: int

    @property
    def package(self) -> str:
        return package_of(self.file)

    def applied(self, source: str) -> str:
        return mutated(self.operator, self.occurrence, source)

    def change(self, source: str) -> tuple[str, str]:
        """Return the lines that differ, before and after."""
        before, after = source.split("\n"), self.applied(source).split("\n")
        blocks = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        changed = [block for block in blocks if block[0] != "equal"]
        first, last = changed[0], changed[-1]
        return tuple(
            " ".join(line.strip() for line in lines[begin:end])
            for lines, begin, end in ((before, first[1], last[2]), (after, first[3], last[4]))
        )


@lru_cache(maxsize=1)
def mutated(operator: str, occurrence: int, source: str) -> str:
    found = mutate_code(source, operators()[operator], occurrence)
    assert found is not None, f"{operator} has no occurrence {occurrence}"
    return found


def mutants(root: Path, packages: list[str], seed: int) -> Iterator[Mutant]:
    """Yield the mutants of packages in a random order that `seed` fixes.

    Files are as likely as they are large, and places in a file equally likely.
    """
    generator = random.Random(f"{seed} {' '.join(packages)}")
    found = {path: path.stat().st_size for package in packages for path in files_of(root, package)}
    sizes = {path: size for path, size in found.items() if size}
    places: dict[Path, list[list[Mutant]]] = {}
    while sizes:
        path = generator.choices(list(sizes), list(sizes.values()))[0]
        if path not in places:
            places[path] = by_place(path, str(path.relative_to(root)))
            generator.shuffle(places[path])
        if not places[path]:
            del sizes[path]
            continue
        mutant = generator.choice(places[path].pop())
        if differs(mutant, path.read_text(encoding="utf-8")):
            yield mutant


def differs(mutant: Mutant, source: str) -> bool:
    """Return whether a mutant is another program; cosmic-ray writes 1e+30 for 1e30, and `<<` for a signature's `*`."""
    try:
        return ast.dump(ast.parse(mutant.applied(source))) != ast.dump(ast.parse(source))
    except (AttributeError, SyntaxError):  # the first of cosmic-ray, which knows no exceptions of dotted names
        return False


def files_of(root: Path, package: str) -> list[Path]:
    """Return the files of a package, without its word lists."""
    pattern = {GROUND: "pipeline/*.py", PROGRAM: f"{PROGRAM}/**/*.py"}.get(package, f"pipeline/{package}/**/*.py")
    return [path for path in sorted(root.glob(pattern)) if WORD_LISTS not in str(path)]


def named(root: Path, file: str, operator: str, change: tuple[str, str]) -> Mutant | None:
    """Return the mutant that makes a change, if the file still has the changed code."""
    source = (root / file).read_text(encoding="utf-8") if (root / file).exists() else ""
    lines = source.split("\n")
    for mutant in itertools.chain.from_iterable(by_place(root / file, file) if source else ()):
        if mutant.operator.endswith(operator) and lines[mutant.line - 1].strip() in change[0]:
            with contextlib.suppress(AttributeError):
                if mutant.change(source) == change:
                    return mutant
    return None


def by_place(path: Path, file: str) -> list[list[Mutant]]:
    """Return the mutants of each place of a file, without those that only change a type."""
    source = path.read_text(encoding="utf-8")
    nodes, types = list(ast_nodes(get_ast(source))), type_ranges(source)
    found: dict[Place, list[Mutant]] = {}
    for name, operator in operators().items():
        places = (place for node in nodes for place in operator.mutation_positions(node))
        for occurrence, (start, _) in enumerate(places):
            if not any(begin <= start < end for begin, end in types):
                found.setdefault(start, []).append(Mutant(file, name, occurrence, start[0]))
    return [found[place] for place in sorted(found)]


@cache
def operators() -> dict[str, object]:
    kinds = {name: get_operator(name) for name in sorted(operator_names()) if not LEFT_OUT.search(name)}
    return {name: kind() for name, kind in kinds.items() if not kind.arguments()}


def type_ranges(source: str) -> list[tuple[Place, Place]]:
    """Return the places of annotations."""
    found: list[ast.expr | None] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.arg | ast.AnnAssign):
            found.append(node.annotation)
        elif isinstance(node, ast.FunctionDef):
            found.append(node.returns)
    return [((n.lineno, n.col_offset), (n.end_lineno or 0, n.end_col_offset or 0)) for n in found if n]

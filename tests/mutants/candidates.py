"""Which mutants there are: cosmic-ray's operators over the files of a package, one of them chosen at each place."""

import ast
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path

import yaml
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

GROUND = "ground"
"""The name here of pipeline/*.py."""
TESTS = {
    "models": ["models", "search"],
    "search": ["search", "decoding"],
    "training": ["training"],
    "decoding": ["decoding"],
    "probes": ["probes"],
    "evaluation": ["evaluation", "metrics"],
    "metrics": ["metrics", "evaluation"],
    "kinds": ["kinds", "reporting"],
    "reporting": ["reporting", "kinds"],
    "experiment": ["experiment", "planning", "reporting"],
    "planning": ["planning"],
    "data": ["data"],
    "cluster": ["cluster"],
    "config": ["experiment", "training/test_key.py", "test_schema.py"],
    "records": ["records", "reporting"],
    "grammar": ["grammar"],
    GROUND: ["test_files.py", "test_schema.py", "test_yaml_file.py", "experiment", "records"],
}
"""Under tests/, what has to notice a mutant in each package of pipeline/."""
WORD_LISTS = "grammar/lexicon"
LEFT_OUT = re.compile("RemoveDecorator|_(?!Is)[A-Za-z]+_Is(Not)?$|_Is_Eq$|_IsNot_NotEq$|_Is(Not)?_[GL]tE?$")
"""Operators whose every mutant fails on import, or takes identity for equality, which is the interpreter's affair."""

Place = tuple[int, int]
"""Line, from 1, and column, from 0."""


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    file: str
    """Below pipeline/."""
    operator: str
    occurrence: int
    line: int

    @property
    def package(self) -> str:
        return self.file.partition("/")[0] if "/" in self.file else GROUND

    def applied(self, source: str) -> str:
        found = mutate_code(source, get_operator(self.operator)(), self.occurrence)
        assert found is not None, f"{self} is not in {self.file}"
        return found

    def change(self, source: str) -> tuple[str, str]:
        """The lines that differ, before and after."""
        before, after = source.split("\n"), self.applied(source).split("\n")
        blocks = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        changed = [block for block in blocks if block[0] != "equal"]
        first, last = changed[0], changed[-1]
        return tuple(
            " ".join(line.strip() for line in lines[begin:end])
            for lines, begin, end in ((before, first[1], last[2]), (after, first[3], last[4]))
        )


def mutants(root: Path, packages: list[str], seed: int) -> Iterator[Mutant]:
    """Without end of a package before the others': one of each in turn, in a random order that `seed` fixes."""
    waiting = {package: in_package(root / "pipeline", package, seed) for package in packages}
    while waiting:
        for package in list(waiting):
            if waiting[package]:
                yield waiting[package].pop()
            else:
                del waiting[package]


def in_package(pipeline: Path, package: str, seed: int) -> list[Mutant]:
    generator = random.Random(f"{seed} {package}")
    folder, pattern = (pipeline, "*.py") if package == GROUND else (pipeline / package, "**/*.py")
    files = sorted(path for path in folder.glob(pattern) if WORD_LISTS not in str(path))
    found = []
    for path in files:
        found += [generator.choice(choices) for choices in by_place(path, str(path.relative_to(pipeline)))]
    generator.shuffle(found)
    return found


def by_place(path: Path, file: str) -> list[list[Mutant]]:
    """The mutants of each place of a file, of which what is only a type is none."""
    source = path.read_text(encoding="utf-8")
    tree, types = get_ast(source), type_ranges(source)
    found: dict[Place, list[Mutant]] = {}
    for name, operator in operators().items():
        places = (place for node in ast_nodes(tree) for place in operator.mutation_positions(node))
        for occurrence, (start, _) in enumerate(places):
            if not any(begin <= start < end for begin, end in types):
                found.setdefault(start, []).append(Mutant(file, name, occurrence, start[0]))
    return [found[place] for place in sorted(found)]


@cache
def operators() -> dict[str, object]:
    kinds = {name: get_operator(name) for name in sorted(operator_names()) if not LEFT_OUT.search(name)}
    return {name: kind() for name, kind in kinds.items() if not kind.arguments()}


def type_ranges(source: str) -> list[tuple[Place, Place]]:
    """Where annotations stand."""
    found: list[ast.expr | None] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.arg | ast.AnnAssign):
            found.append(node.annotation)
        elif isinstance(node, ast.FunctionDef):
            found.append(node.returns)
    return [((n.lineno, n.col_offset), (n.end_lineno or 0, n.end_col_offset or 0)) for n in found if n]


def equivalents(path: Path) -> dict[tuple[str, str, str], str]:
    """Reasons by file, lines before and lines after."""
    listed = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    return {(one["file"], one["before"], one["after"]): one["reason"] for one in listed}

"""Settings files of every kind with something wrong: each loads, or is refused with one line a fault, at once.

`REPRISE_FUZZ=1000 python -m pytest tests/papers/test_fuzz.py` tries as many new ones;
REPRISE_FUZZ_SEED repeats those of a printed seed.
"""

import copy
import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, note, seed, settings, strategies as st

from pipeline.core.errors import UserError
from pipeline.core.provenance import ROOT
from pipeline.core.yaml_file import LOADER
from pipeline.papers.project import load_project
from pipeline.planning.devices import load_devices

EXAMPLES = int(os.environ.get("REPRISE_FUZZ", "100"))
FRESH = "REPRISE_FUZZ" in os.environ
SEED = int(os.environ.get("REPRISE_FUZZ_SEED", random.SystemRandom().randrange(1 << 32)))
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
LONGEST_S = 5
"""Longest time of one load, which takes a quarter of a second."""

FILES = {
    "config": ["config.yaml"],
    "paper": ["workflow/papers/*/paper.yaml"],
    "claims": ["workflow/papers/*/claims.yaml"],
    "scale": ["workflow/scales/*.yaml"],
    "dataset": ["workflow/datasets/*.yaml"],
    "files": ["workflow/files/*.yaml"],
    "devices": ["workflow/devices.yaml"],
    "floors": ["workflow/floors.yaml"],
}
NAMED_FREELY = {
    *("systems", "decodings", "tables", "cells", "layer_costs", "examples", "transcripts", "figures"),
    *("claims", "scores", "packages", "readings", "choices"),
}
"""Mappings whose keys are names of their own: another one may be as good."""
REFERRING = {
    *("base", "language_model", "initial", "dataset", "scored_on", "decoding", "metric", "scales", "cell", "over"),
    *("source_trained", "target_trained", "ends_decoding", "chosen_by", "decoding_column", "label", "score", "term"),
    *("ascending", "terms", "smaller", "larger", "pairs", "system", "baseline", "layer", "than", "architecture"),
    *("kind", "split", "splits", "otherwise", "source", "package", "paper", "scale", "metric", "datasets"),
}
"""Keys whose text names something that exists; of the tests that claims name, another test says so."""
JUNK = [
    *(None, True, False, 0, -1, 1, 0.5, -0.5, 10**9, 10**18, 2**62, 2**63, 10**30, 1e300, -1e300, 1e-300, float("inf")),
    *(float("nan"), "", "x", "\0", "a\nb", "é", "*", "/", "a/b/c", "..", "@", "a@b", "1e9", "[", "x" * 5000, [], {}),
    *([[]], [None], [1], [1, 1], "no", "-rf", "y" * 300, ["x"], [{}], {"x": None}, {"": ""}),
    *({"x": {"y": [1, {"z": "q"}]}}, [[[[["deep"]]]]]),
    {str(number): number for number in range(300)},
    {str(number): None for number in range(40_000)},
]
SNIPPETS = [
    *(b"\t", b"\xff", b"\xc3\x28", b"\x00", b"\xef\xbb\xbf", b"\r", b"%", b"&a ", b"*a", b"!!int "),
    *(b": ", b"- ", b"? "),
    *(b"{", b"}", b"[", b"]", b'"', b"'", b"|", b">", b"\n---\n", b"\n...\n", b"\n\n", b"#", b"<<: ", b"@", b"`", b","),
    *(b"\na: &a [x]\n", b"&x [*x]", b"[" * 3000, b"{a: " * 3000, b"- " * 3000, b"9" * 6000, "\u2028".encode()),
    b"a: &a [x,x]\n" + b"".join(b"%c: &%c [*%c,*%c]\n" % (98 + n, 98 + n, 97 + n, 97 + n) for n in range(24)),
]


@dataclass(frozen=True)
class Mutation:
    """One file with one thing wrong in it."""

    what: str
    path: str
    content: bytes = field(repr=False)
    must_fail: bool = False
    """True for a misspelling, which has to be refused."""


def files(root: Path) -> dict[str, list[Path]]:
    return {kind: sorted(path for pattern in names for path in root.glob(pattern)) for kind, names in FILES.items()}


def nodes(value: Any, place: tuple = ()) -> Iterator[tuple]:
    """Places of all values below the top."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*place, key)
        yield from nodes(inner, (*place, key))


def at(value: Any, place: tuple) -> Any:
    for key in place:
        value = value[key]
    return value


def misspelt(name: str, position: int) -> str:
    position %= len(name) + 1
    return f"{name[:position]}qx{name[position:]}"


def refers(place: tuple) -> bool:
    """Return whether the text at a place is a name; a member of a list counts as its list's key."""
    words = [key for key in place if isinstance(key, str)]
    return (words[-1] in REFERRING and not {"generator", "deviations", "readers"} & set(words)) or (
        len(words) > 1 and words[-2] == "datasets"
    )


def mutations(root: Path) -> st.SearchStrategy[Mutation]:
    """Every kind of file and of fault as often as every other."""
    found = files(root)
    values = {path: yaml.load(path.read_bytes(), LOADER) for paths in found.values() for path in paths}
    places = {path: list(nodes(value)) for path, value in values.items()}

    @st.composite
    def one(draw) -> Mutation:
        path = draw(st.sampled_from(found[draw(st.sampled_from(sorted(found)))]))
        name = str(path.relative_to(root))
        how = draw(st.sampled_from(["key", "reference", "value", "value", "delete", "repeat", "text", "truncate"]))
        if how in ("text", "truncate"):
            text = path.read_bytes()
            cut = draw(st.integers(0, len(text)))
            if how == "truncate":
                return Mutation(f"truncate at {cut}", name, text[:cut])
            snippet = draw(st.sampled_from(SNIPPETS))
            return Mutation(f"insert {snippet[:20]!r} at {cut}", name, text[:cut] + snippet + text[cut:])
        value = copy.deepcopy(values[path])
        eligible = [place for place in places[path] if fits(how, value, place)]
        if not eligible:
            return Mutation("nothing", name, path.read_bytes())
        place = draw(st.sampled_from(eligible))
        holder, key = at(value, place[:-1]), place[-1]
        must_fail = how in ("key", "reference")
        match how:
            case "key":
                items = list(holder.items())
                holder.clear()
                holder.update((misspelt(k, draw(st.integers(0, 9))) if k == key else k, v) for k, v in items)
            case "reference":
                holder[key] = misspelt(holder[key], draw(st.integers(0, 9)))
            case "value":
                holder[key] = draw(st.sampled_from(JUNK))
            case "delete":
                del holder[key]
            case "repeat":
                return Mutation(f"repeat {place}", name, repeated(path, str(key)), must_fail=True)
        content = yaml.dump(value, Dumper=DUMPER, sort_keys=False, allow_unicode=True, width=1000)
        return Mutation(f"{how} {place}", name, content.encode(), must_fail)

    return one()


def fits(how: str, value: Any, place: tuple) -> bool:
    """Return whether a fault of this kind is possible at a place, and certainly a fault."""
    holder, key = at(value, place[:-1]), place[-1]
    if how == "key":
        parent = next((key for key in reversed(place[:-1]) if isinstance(key, str)), None)
        return isinstance(holder, dict) and parent not in NAMED_FREELY and not (len(place) == 1 and key[0].isupper())
    if how == "reference":
        return isinstance(holder[key], str) and refers(place)
    if how == "repeat":
        return isinstance(holder, dict) and len(place) == 1
    return True


def repeated(path: Path, key: str) -> bytes:
    """The file with one of its outermost keys a second time."""
    return path.read_bytes().rstrip() + f"\n{key}: again\n".encode()


def load(root: Path, name: str) -> None:
    """All that reads settings, at the scale whose file is changed."""
    path = Path(name)
    project = load_project(root, {"scale": path.stem} if path.parent.name == "scales" else {})
    for fault in project.dataset_records.faults.values():
        raise fault
    load_devices(root / "workflow/devices.yaml")


@pytest.mark.slow
def test_mutated_file_is_refused_in_one_line(copied_project):
    root, counts = copied_project.root, {"loaded": 0, "refused": 0}

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=not FRESH,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(mutations(ROOT))
    def check(mutation):
        note(f"{mutation.path}: {mutation.what}")
        file = root / mutation.path
        before, started = file.read_bytes(), time.process_time()
        file.write_bytes(mutation.content)
        try:
            load(root, mutation.path)
        except UserError as error:
            counts["refused"] += 1
            for line in str(error).split("\n"):
                assert line.isprintable() and ": " in line and len(line) < 3000, line
        else:
            counts["loaded"] += 1
            assert not mutation.must_fail, "a misspelling was accepted"
        finally:
            file.write_bytes(before)
        assert time.process_time() - started < LONGEST_S

    if FRESH:
        print(f"REPRISE_FUZZ_SEED={SEED}")  # pytest shows it with a failure
        check = seed(SEED)(check)
    check()
    assert counts["refused"] > counts["loaded"] > 0

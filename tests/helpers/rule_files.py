"""Contents of the workflow's rule files, and wildcards for paths that are patterns of rules."""

import re

import yte

from pipeline.core.provenance import ROOT

TEXT = "".join(path.read_text() for path in sorted((ROOT / "workflow/rules").glob("*.smk")))
BLOCKS = re.findall(r"^(?:rule|use rule (\w+) as) (\w+)[^:\n]*:\n((?:(?: .*)?\n)*)", TEXT, re.MULTILINE)
"""For each rule, the one that it is made of ("" if none), its name, and its text."""


def rules_with(*words: str) -> set[str]:
    """Rules whose shell has one of some words in it, and those made of them."""
    found = {name for _, name, block in BLOCKS if any(re.search(rf"\b{word}\b", block) for word in words)}
    for _ in BLOCKS:
        found |= {name for parent, name, _ in BLOCKS if parent in found}
    return found


def local_rules() -> set[str]:
    listed = re.search(r"localrules:\n(.*?)\n\n", (ROOT / "workflow/Snakefile").read_text(), re.DOTALL)[1]
    return {name.strip(" ,") for name in listed.split("\n")}


def profile() -> dict:
    """The one for Slurm."""
    return yte.process_yaml((ROOT / "slurm/profile.yaml").read_text())


class Placeholders(dict[str, str]):
    """A mapping that has `{name}` for every name, with which an artifact's path is the pattern of a rule."""

    def __missing__(self, name: str) -> str:
        return f"{{{name}}}"

    def __contains__(self, name: object) -> bool:
        return True

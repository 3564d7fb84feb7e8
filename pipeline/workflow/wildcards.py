"""Products by the wildcards of Snakemake's rules, and the patterns of files that rules make."""

from collections.abc import Mapping
from dataclasses import fields
from typing import cast

from pipeline.core.artifacts import Product, RunArtifact, RunId


def product_of(kind: type[Product], values: Mapping[str, str]) -> Product:
    """The product of a kind whose fields, and those of its run, are found in `values` by name.

    Fields that are not there are left at their default. Raises KeyError when one without a default is not there.
    """
    if issubclass(kind, RunArtifact):
        seed = values["seed"]
        run = RunId(
            values["paper"], values["system"], values["dataset"], int(seed) if seed.isdecimal() else cast(int, seed)
        )
        return kind(run, **{name: values[name] for name in names(kind) if name != "run" and name in values})
    return kind(**{name: values[name] for name in names(kind) if name in values})


def names(kind: type[Product]) -> list[str]:
    return [field.name for field in fields(kind)]


class Placeholders(dict[str, str]):
    """`{name}` for every name: of a product, these make the pattern that a rule's files have."""

    def __missing__(self, name: str) -> str:
        return f"{{{name}}}"

    def __contains__(self, name: object) -> bool:
        return True

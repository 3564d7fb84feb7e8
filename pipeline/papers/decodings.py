"""Named decodings, each written as its differences from another one."""

from collections.abc import Mapping
from typing import Any

from pipeline.config import DecodingConfig
from pipeline.core.errors import UserError
from pipeline.core.schema import known, validate
from pipeline.papers.paper import DecodingEntry, Paper


def paper_decoding(papers: Mapping[str, Paper], paper: str, name: str) -> DecodingConfig:
    """A named decoding as `paper` has it, its bases' settings included.

    Raises:
        UserError: a name that no paper has, bases that form a circle, or settings that don't go together.
    """
    settings: dict[str, Any] = {}
    for (owner, _), entry in reversed(decoding_lineage(papers, paper, name).items()):
        settings |= entry.differences
        reference = entry.differences.get("language_model")
        if reference and "/" not in reference:  # as it is written in the paper that owns the entry
            settings["language_model"] = reference if owner == paper else f"{owner}/{reference}"
    return validate(DecodingConfig, settings, f"workflow/papers/{paper}/paper.yaml: decodings.{name}")


def decoding_lineage(papers: Mapping[str, Paper], paper: str, name: str) -> dict[tuple[str, str], DecodingEntry]:
    """The decoding and those it differs from, the outermost base last, by paper and name."""
    chain: dict[tuple[str, str], DecodingEntry] = {}
    owner, reference = paper, name
    while reference:
        where = f"workflow/papers/{owner}/paper.yaml: decodings"
        other, _, reference = reference.rpartition("/")
        owner = other or owner
        known(owner, papers, where)
        named = papers[owner].decodings
        known(reference, named, where)
        if (owner, reference) in chain:
            raise UserError(f"{where}: the bases of {owner}/{reference} form a circle")
        chain[owner, reference] = named[reference]
        reference = named[reference].base or ""
    return chain

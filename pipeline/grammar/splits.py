"""Writes train, dev and test: aligned lines, and no sentence of one split in another, in any language."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from types import MappingProxyType

from pipeline.core.files import atomic_write
from pipeline.grammar.chains import endless_chains
from pipeline.grammar.corpus import LANGUAGES, Domain, Limits, Sentence, endless, next_unseen

TESTS = ("test", "test2", "test3", "test4", "test5")
ALL = Limits()
SPLITS = (*TESTS, "dev", "train")  # in the order drawn: another size of train leaves test as it is


def write_splits(
    folder: Path,
    languages: Sequence[str],
    sizes: Mapping[str, int],
    domain: Domain,
    seed: int,
    chained: Mapping[str, int] = MappingProxyType({}),
    limits: Limits = ALL,
) -> None:
    """Write `raw/{split}.{language}`, `{split}.trees` (brackets of the English side) and `{split}.phenomena.jsonl`.

    The same seed gives the same sentences whatever `languages` are asked for. Only test splits have held-out names
    and verb-object combinations.
    chained: splits each of whose lines is several sentences in a row, so many English words or more.
    limits: of the sentences of the other splits.
    """
    seen: dict[str, set[str]] = {language: set() for language in LANGUAGES}
    for split in SPLITS:
        if split not in sizes:
            continue
        source = domain, Random(f"grammar/{domain}/{seed}/{split}"), split in TESTS
        alone = split not in chained
        stream = limits.kept(endless(*source), domain) if alone else endless_chains(*source, chained[split])
        sentences = (next_unseen(stream, seen) for _ in range(sizes[split]))
        _write(Path(folder), split, languages, sentences)


def _write(folder: Path, split: str, languages: Sequence[str], sentences: Iterable[Sentence]) -> None:
    with ExitStack() as stack:
        texts = {lang: stack.enter_context(atomic_write(folder / "raw" / f"{split}.{lang}")) for lang in languages}
        trees = stack.enter_context(atomic_write(folder / f"{split}.trees"))
        phenomena = stack.enter_context(atomic_write(folder / f"{split}.phenomena.jsonl"))
        for line, sentence in enumerate(sentences):
            for language, handle in texts.items():
                handle.write(sentence.text(language) + "\n")
            trees.write(sentence.tree + "\n")
            phenomena.write(_record(line, sentence) + "\n")


def _record(line: int, sentence: Sentence) -> str:
    """One JSON line: its number (from 0), what to look for, and the English tree."""
    return json.dumps({"line": line, **sentence.phenomena, "tree": sentence.tree}, ensure_ascii=False)

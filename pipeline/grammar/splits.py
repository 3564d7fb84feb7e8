"""Training, development and test splits: aligned lines, and no sentence of one split in another, in any language."""

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

from pipeline.core.files import atomic_write
from pipeline.grammar.corpus import Domain, Sentence, chinese_text, endless
from pipeline.grammar.new_items import new_items

TESTS = ("test", "test2", "test3", "test4", "test5")
SPLITS = (*TESTS, "dev", "train")  # in the order drawn: another size of train leaves test as it is
AND = {"en": "and", "de": "und", "fr": "et", "zh": "和"}
"""Between queries, which have no full stop."""


def write_splits(
    folder: Path,
    languages: Sequence[str],
    sizes: Mapping[str, int],
    domain: Domain,
    seed: int,
    chained: Mapping[str, int] = MappingProxyType({}),
    where: str = "sizes",
) -> None:
    """Write `raw/{split}.{language}`, `{split}.trees` (of the English side) and `{split}.phenomena.jsonl`.

    The same seed gives the same sentences for any `languages`. Only test splits have reserved names and verb-object
    combinations.

    Args:
        folder: Folder of the files.
        languages: Languages to write.
        sizes: Number of lines by split.
        domain: Domain of the sentences.
        seed: Seed of all splits.
        chained: Splits whose lines are several sentences in a row, by their fewest English words per line.
        where: File and key of `sizes`, for errors.

    Raises:
        UserError: The grammar has not that many different sentences.
    """
    seen: set[Hashable] = set()
    for split in SPLITS:
        if split not in sizes:
            continue
        source = domain, Random(f"grammar/{domain}/{seed}/{split}"), split in TESTS
        stream = endless_chains(*source, chained[split]) if split in chained else endless(*source)
        sentences = new_items(stream, sizes[split], Sentence.keys, seen, f"{where}.{split}")
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
    """Return one JSON line: line number from 0, phenomena, and the English tree."""
    return json.dumps({"line": line, **sentence.phenomena, "tree": sentence.tree}, ensure_ascii=False)


def endless_chains(domain: Domain, rng: Random, held_out: bool, at_least: int) -> Iterator[Sentence]:
    """Yield chains of sentences without end; see `endless`.

    `at_least` is the fewest English words of a chain, without punctuation. It has no more sentences than needed.
    """
    while True:
        parts: list[Sentence] = []
        stream = endless(domain, rng, held_out)
        while words(parts) < at_least:
            parts.append(next(stream))
        yield chained(parts)


def words(parts: Sequence[Sentence]) -> int:
    """Return the number of English words of a chain, without punctuation."""
    joints = len(parts) - 1 if parts and is_query(parts[0]) else 0
    return joints + sum(part.phenomena["length"] for part in parts)


def is_query(sentence: Sentence) -> bool:
    """Return whether a sentence is a search query."""
    return sentence.phenomena["domain"] == "search"


def chained(parts: Sequence[Sentence]) -> Sentence:
    """Join queries of a domain by `and`, or put sentences one after the other."""
    queries = is_query(parts[0])
    joints = {language: f" {word} " if queries else " " for language, word in AND.items()}
    between = [AND["zh"]] if queries else []
    zh_words = [word for part in parts for word in (*between, *part.zh_words)][len(between) :]
    trees = [part.tree.removeprefix("(TOP ").removesuffix(")") for part in parts]
    label, joint = ("FRAG", f" (CC {AND['en']}) ") if queries else ("S", " ")
    return Sentence(
        **{language: joints[language].join(part.text(language) for part in parts) for language in ("en", "de", "fr")},
        zh=chinese_text(zh_words),
        tree=f"(TOP ({label} {joint.join(trees)}))",
        phenomena=merged([part.phenomena for part in parts]) | {"length": words(parts)},
        zh_words=tuple(zh_words),
    )


def merged(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Merge the phenomena of all parts."""
    first, *_ = records
    lists = {key for key, value in first.items() if isinstance(value, list)}
    found = {key: list(chain.from_iterable(record[key] for record in records)) for key in lists}
    return first | found | {"kinds": sorted(set(found["kinds"]))}

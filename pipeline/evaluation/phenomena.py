"""What a translation into English does with names, idioms and word order, on sentences of the embedded grammar.

    python -m pipeline phenomena --dataset workflow/datasets/grammar-zh-en.yaml --corpus work/corpora/grammar-zh-en \\
        --split test --tokenised translations/final/test.tok --out phenomena/final/test.json

reads   <corpus>/<split>.phenomena.jsonl, which the grammar wrote; <corpus>/prepared/<split>.tok.en; the vocabularies
writes  phenomena/final/test.json: {dataset, split, test_set, lines, metrics: {names, rare_names, idioms, clauses,
        reorderings: {value, low, high, signature}}, statistics, references, inputs}
        phenomena/final/test.npz: successes and trials of each sentence, for paired tests

A success is looked for in the words of the translation; how it was said otherwise counts for nothing.
"""

import argparse
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.data.dataset import GrammarDataset, load_dataset
from pipeline.data.trees import Tree, parse_tree, tags
from pipeline.data.vocabulary import Subwords, load_vocabularies
from pipeline.errors import UserError
from pipeline.evaluation.inputs import check_lines, read_lines
from pipeline.evaluation.score_file import metric_named, write_statistics
from pipeline.evaluation.significance import bootstrap_interval
from pipeline.evaluation.test_sets import check_references, name_of_split
from pipeline.files import sha256_file
from pipeline.records.scores import MetricValue, ScoreFile

log = logging.getLogger(__name__)

SIGNATURES = {
    "names": "names-in-both-vocabularies|verbatim",
    "rare_names": "names-in-both-vocabularies|a-word-in-the-rarer-half-of-the-target-vocabulary|verbatim",
    "idioms": "fixed-words-of-the-idiom-after-its-verb|verbatim",
    "clauses": "subject-verb-object-of-each-clause|head-words-in-this-order",
    "reorderings": "verb-before-its-place|noun-before-its-relative-clause|head-words-in-this-order",
}
BEFORE_THE_VERB = frozenset({"in", "on", "at", "with"})
"""What these prepositions begin, places, times and company, stands before the verb in Chinese."""
NOUN_TAGS = ("NN", "NNS", "NNP", "PRP")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dataset", type=Path, required=True, help="dataset file of the grammar, into English")
    parser.add_argument("--corpus", type=Path, required=True, help="folder of the corpus")
    parser.add_argument("--split", default="test", help="dev or a test split")
    parser.add_argument("--tokenised", type=Path, required=True, help="translation, tokenised, one line a sentence")
    parser.add_argument("--out", type=Path, required=True, help="a .json file")


def run(args: argparse.Namespace) -> None:
    dataset = load_dataset(args.dataset)
    if not isinstance(dataset, GrammarDataset) or dataset.tgt != "en":
        raise UserError(f"{args.dataset}: is not written by the grammar into English; it has no phenomena to count")
    facts = args.corpus / f"{args.split}.phenomena.jsonl"
    records = [json.loads(line) for line in read_lines(facts)]
    hypotheses = read_lines(args.tokenised)
    lines = check_references(dataset, args.split, args.corpus / "prepared")
    for path, found in ((facts, records), (args.tokenised, hypotheses)):
        check_lines(path, found, lines)
    statistics = count_phenomena(records, hypotheses, load_vocabularies(args.corpus), dataset.lowercase)
    metrics = {
        name: MetricValue(**vars(bootstrap_interval(rows, metric_named(name))), signature=SIGNATURES[name])
        for name, rows in statistics.items()
    }
    record = ScoreFile(
        dataset=dataset.name,
        split=args.split,
        test_set=name_of_split(dataset, args.split),
        lines=lines,
        metrics=metrics,
        statistics=args.out.with_suffix(".npz").name,
        references=sha256_file(facts),
        inputs={str(path): sha256_file(path) for path in (args.tokenised, facts)},
    )
    write_statistics(args.out.with_suffix(".npz"), statistics)
    record.write(args.out)
    for name, rows in statistics.items():
        log.info("%s: %d of %d", name, *rows.sum(axis=0))


def count_phenomena(
    records: list[dict[str, Any]], hypotheses: list[str], vocabularies: tuple[Subwords, Subwords], lowercase: bool
) -> dict[str, np.ndarray]:
    """(N, 2) successes and trials of each sentence, by metric."""
    src, tgt = (set(one.words or ()) for one in vocabularies)
    rare = set((vocabularies[1].words or [])[len(tgt) // 2 :])
    rows: dict[str, list[tuple[int, int]]] = {name: [] for name in SIGNATURES}
    for record, hypothesis in zip(records, hypotheses, strict=True):
        words = hypothesis.split(" ")
        names = [lowered(name["text"], lowercase).split(" ") for name in record["names"]]
        known = [name for name in names if src.issuperset(name) and tgt.issuperset(name)]
        idioms = [lowered(idiom["en"], lowercase).split(" ")[1:] for idiom in record["idioms"]]
        tree = parse_tree(record["tree"], "phenomena")
        looked_for = {
            "names": (contains, known),
            "rare_names": (contains, [name for name in known if rare.intersection(name)]),
            "idioms": (contains, idioms),
            "clauses": (in_order, [[lowered(word, lowercase) for word in one] for one in clauses(tree)]),
            "reorderings": (in_order, [[lowered(word, lowercase) for word in one] for one in reorderings(tree)]),
        }
        for metric, (found, wanted) in looked_for.items():
            rows[metric].append((sum(found(words, one) for one in wanted), len(wanted)))
    return {name: np.array(counts, dtype=np.int32) for name, counts in rows.items()}


def lowered(text: str, lowercase: bool) -> str:
    return text.lower() if lowercase else text


def contains(words: list[str], wanted: list[str]) -> bool:
    """Whether `wanted` stands in `words` as it is."""
    return any(words[i : i + len(wanted)] == wanted for i in range(len(words) - len(wanted) + 1))


def in_order(words: list[str], wanted: list[str]) -> bool:
    """Whether all of `wanted` stand in `words` in this order, whatever is between them."""
    rest = iter(words)
    return all(word in rest for word in wanted)


def clauses(tree: Tree) -> Iterator[list[str]]:
    """Head words of subject, verb and object (or time, where there is no object) of each clause that has all three."""
    for phrase in phrases(tree):
        for subject, predicate in zip(phrase.children, phrase.children[1:], strict=False):
            if (subject.label, predicate.label) != ("NP", "VP"):
                continue
            verb, after = main_verb(predicate)
            objects = [part for part in after if part.label == "NP"]
            if verb and objects and (first := head_noun(subject)) and (last := head_noun(objects[0])):
                yield [first, verb, last]


def reorderings(tree: Tree) -> Iterator[list[str]]:
    """Pairs of head words that English has in this order and Chinese in the other: a verb and the noun of its place,
    time or company, a noun and the verb of its relative clause."""
    for phrase in phrases(tree):
        if phrase.label == "VP":
            verb, after = main_verb(phrase, descend=False)
            places = [part for part in after if part.label == "PP" and tags(part)[0].word in BEFORE_THE_VERB]
            nouns = [head_noun(part) for part in places]
            yield from ([verb, noun] for noun in nouns if verb and noun)
        for noun, relative in zip(phrase.children, phrase.children[1:], strict=False):
            if phrase.label == "NP" and (noun.label, relative.label) == ("NP", "SBAR"):
                head, verb = head_noun(noun), first_verb(relative)
                if head and verb:
                    yield [head, verb]


def phrases(tree: Tree) -> Iterator[Tree]:
    """Every phrase, outer ones first."""
    agenda = [tree]
    while agenda:
        phrase = agenda.pop()
        if not phrase.is_tag:
            yield phrase
            agenda.extend(reversed(phrase.children))


def main_verb(phrase: Tree, descend: bool = True) -> tuple[str | None, tuple[Tree, ...]]:
    """The full verb of a VP and what follows it; auxiliaries have it in a VP within theirs."""
    while True:
        inner = [child for child in phrase.children if child.label == "VP"]
        if not inner or not descend:
            break
        phrase = inner[0]
    if any(child.label == "VP" for child in phrase.children):
        return None, ()
    for place, child in enumerate(phrase.children):
        if child.is_tag and child.label.startswith("VB"):
            return child.word, phrase.children[place + 1 :]
    return None, ()


def first_verb(relative: Tree) -> str | None:
    """The full verb of a relative clause."""
    predicates = (phrase for phrase in phrases(relative) if phrase.label == "VP")
    return next((verb for verb, _ in map(main_verb, predicates) if verb), None)


def head_noun(phrase: Tree) -> str | None:
    """The last noun, or the pronoun, of a phrase before anything that modifies it from behind."""
    while inner := [child for child in phrase.children if child.label in ("NP", "PP")]:
        phrase = inner[0]
    nouns = [tag.word for tag in tags(phrase) if tag.label in NOUN_TAGS]
    return nouns[-1] if nouns else None

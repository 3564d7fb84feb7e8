"""Gates between the channels of a trained encoder over kinds of source words, on the embedded grammar.

A channel is weighed by 1 - z, and those before it by z (Multi-channel Encoder, section 3.2). Kinds of known words:
`names`; `rare_names`, those of the vocabulary's rarer half; `idioms`, the fixed words of one; `function_words`, those
that the grammar itself adds.

Dimensions: B sentences, S source words, D units, N sentences of a split.
"""

import json
import logging
import re
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol, get_args, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from pipeline.analysis.claims.inside_models import WordKind
from pipeline.core.errors import UserError
from pipeline.core.records.outputs import GateValue, GateValues
from pipeline.data.batches.corpus_batches import EvalBatches
from pipeline.data.batches.parallel_batches import ParallelSplit, TextBatch
from pipeline.data.dataset import GrammarDataset, load_dataset
from pipeline.data.text.text_files import read_lines
from pipeline.data.text.vocabulary import load_vocabularies
from pipeline.decoding.trained_model import TrainedModel
from pipeline.grammar.chinese import FUNCTION_WORDS
from pipeline.metrics import write_statistics

log = logging.getLogger(__name__)

BATCH_TOKENS = 4096
"""Source words in a batch."""


@runtime_checkable
class Gated(Protocol):
    """A model whose annotations blend several channels."""

    gated_channels: list[str]

    def channel_gates(self, batch) -> dict[str, Tensor]:
        """Return the gate z (B, S, D) of each blend, by the channel that it adds."""


def grammar_from_chinese(dataset_file: Path) -> GrammarDataset:
    """Return the record of a dataset that the grammar translates from Chinese.

    Raises:
        UserError: The dataset is another one.
    """
    dataset = load_dataset(dataset_file)
    if not isinstance(dataset, GrammarDataset) or dataset.src != "zh":
        raise UserError(
            f"{dataset_file}: the kinds of its words are unknown; use a dataset of the grammar with source language zh"
        )
    return dataset


def measure_gates(trained: TrainedModel, dataset_file: Path, out: Path) -> None:
    """Write the mean gate over each kind of words of every test set.

    Read `<split>.phenomena.jsonl`, which the grammar wrote, and the source of every test set. Write {dataset,
    test_sets, lines, gates: {<channel>: {<kind>: {value, words}}}, statistics, weights_digest}. The .npz file beside it
    has, for `<channel>.<kind>`, the sum over words of z (mean of its units) and the number of words of each sentence.

    Args:
        trained: The model.
        dataset_file: YAML file of the grammar's dataset, from Chinese.
        out: JSON file to write; statistics go to the .npz file beside it.

    Raises:
        UserError: The model blends no channels, or the kinds of words are unknown.
    """
    dataset = grammar_from_chinese(dataset_file)
    encoded = Path(trained.spec.corpus)
    parts = []
    for split in dataset.test_sets:
        batches = EvalBatches[ParallelSplit, TextBatch](ParallelSplit(encoded, split), BATCH_TOKENS)
        parts.append(gate_statistics(trained, batches, read_kinds(encoded.parent, split, len(batches.pairs.src))))
    statistics = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    gates: dict[str, dict[str, GateValue]] = {}
    for name, rows in statistics.items():
        channel, kind = name.split(".")
        total, words = rows.sum(axis=0)
        value = float(total / words) if words else None
        gates.setdefault(channel, {})[kind] = GateValue(value=value, words=int(words))
        log.info("gate before %s, %s: %s over %d words", channel, kind, value, words)
    record = GateValues(
        dataset=dataset.name,
        test_sets=list(dataset.test_sets.values()),
        lines=len(next(iter(statistics.values()))),
        gates=gates,
        statistics=out.with_suffix(".npz").name,
        weights_digest=trained.weights_digest,
    )
    write_statistics(out.with_suffix(".npz"), statistics)
    record.write(out)


def read_kinds(corpus: Path, split: str, lines: int) -> list[dict[WordKind, list[int]]]:
    """Read the positions of each kind of words in the sentences of a split.

    Args:
        corpus: Folder of the grammar's corpus.
        split: Name of the split.
        lines: Number of its sentences.

    Returns:
        `kinds_of` each sentence.

    Raises:
        UserError: A file does not have `lines` lines, or the vocabulary is of subwords.
    """
    facts, text = corpus / f"{split}.phenomena.jsonl", corpus / f"prepared/{split}.tok.zh"
    records, sentences = read_lines(facts, lines), read_lines(text, lines)
    vocabulary = load_vocabularies(corpus)[0].words
    if vocabulary is None:
        raise UserError(
            f"{corpus}: gates are measured over words, but the vocabulary has subwords; use a word vocabulary"
        )
    return [
        kinds_of(sentence.split(" "), json.loads(record), vocabulary)
        for sentence, record in zip(sentences, records, strict=True)
    ]


def kinds_of(words: list[str], record: dict[str, Any], vocabulary: Sequence[str]) -> dict[WordKind, list[int]]:
    """Find the positions of each kind of known words in a sentence.

    Args:
        words: Words of the sentence.
        record: Facts about it that the grammar recorded.
        vocabulary: Known words, most frequent first.

    Returns:
        Positions by kind, ascending.
    """
    known, rare = set(vocabulary), set(vocabulary[len(vocabulary) // 2 :])
    names = covered(words, [name["text"] for name in record["names"]])
    # a piece of one character occurs elsewhere too
    idioms = covered(words, [piece for idiom in record["idioms"] for piece in idiom["zh"] if len(piece) > 1])
    found: dict[WordKind, set[int]] = {
        "names": names,
        "rare_names": {place for place in names if words[place] in rare},
        "idioms": idioms,
        "function_words": {place for place, word in enumerate(words) if word in FUNCTION_WORDS} - idioms,
    }
    return {kind: sorted(place for place in places if words[place] in known) for kind, places in found.items()}


def covered(words: list[str], phrases: list[str]) -> set[int]:
    """Return positions of `words` that are entirely inside one of the `phrases`, however segmented or cased."""
    ends = list(accumulate(map(len, words)))
    text = "".join(words).lower()
    wanted = (re.escape(phrase.replace(" ", "").lower()) for phrase in phrases)
    spans = [found.span() for phrase in wanted for found in re.finditer(phrase, text)]
    return {
        place
        for place, (word, end) in enumerate(zip(words, ends, strict=True))
        if any(first <= end - len(word) and end <= last for first, last in spans)
    }


@torch.inference_mode()
def gate_statistics(
    trained: TrainedModel, batches: EvalBatches[ParallelSplit, TextBatch], kinds: list[dict[WordKind, list[int]]]
) -> dict[str, np.ndarray]:
    """Sum the gates over each kind of words, sentence by sentence.

    Args:
        trained: The model.
        batches: The N sentences of a split in batches.
        kinds: Positions of each kind of words in each sentence.

    Returns:
        Arrays (N, 2) by `<channel>.<kind>`: the sum of z, averaged over units, and the number of words.

    Raises:
        UserError: The model blends no channels.
    """
    model = trained.model
    if not isinstance(model, Gated) or not model.gated_channels:
        raise UserError(f"{trained.spec.name}: has no gate between channels")
    channels = model.gated_channels
    rows = {f"{channel}.{kind}": np.zeros((len(kinds), 2)) for channel in channels for kind in get_args(WordKind)}
    for indices, batch in batches:
        batch = batch.to(trained.device)
        with trained.autocast():
            gates = model.channel_gates(batch)
        for channel, z in gates.items():
            values = z.float().mean(-1).cpu().numpy()
            for sentence, of_words in zip(indices.tolist(), values, strict=True):
                for kind, places in kinds[sentence].items():
                    rows[f"{channel}.{kind}"][sentence] = of_words[places].sum(), len(places)
    return rows

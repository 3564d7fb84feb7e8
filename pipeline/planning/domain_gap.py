"""Check that two domains of speech differ in language, not in vocabulary, and that a recogniser can spell.

Cold Fusion's domains seem to share words but combine them differently: target text has 1.6 times the perplexity under
the source language model that it has under the target's own (Table 2). If the words differ too, no language model can
choose among hypotheses that are all wrong. If an encoder position holds more than a character, the recogniser memorises
words. A dataset declares its limits in `gap`. They are checked on the text before anything is trained.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from pipeline.core.artifacts import RunId
from pipeline.data.dataset import DomainGap, ReadAloudDataset, SplitName
from pipeline.data.sequence_store import FRAMES_PER_SECOND
from pipeline.data.speech.collect_text import collect_text
from pipeline.data.speech.encode_text import select
from pipeline.data.text.text_files import lines_of
from pipeline.data.text.vocabulary import Alphabet
from pipeline.models.settings import BOS, EOS
from pipeline.models.speech_attention.settings import AttentionRecogniserConfig
from pipeline.papers.project import Project
from pipeline.planning.corpus_size import Corpus

if TYPE_CHECKING:
    from pipeline.models.language_model.model import Ngram

ORDER = 6
"""N-gram order; the demo's target text is least perplexing to its own model at this order."""
MILLISECONDS = 1000 // FRAMES_PER_SECOND
Transcripts = Mapping[str, Sequence[str]]
"""Lines by split."""


def perplexity(model: "Ngram", sentences: Iterable[np.ndarray]) -> float:
    """Return the perplexity per character of encoded `sentences`, including the end of each."""
    losses = []
    for sentence in sentences:
        symbols = [BOS] * (ORDER - 1) + sentence.tolist() + [EOS]
        for end in range(ORDER - 1, len(symbols)):
            losses.append(-float(model.log_probs(tuple(symbols[end - ORDER + 1 : end]))[symbols[end]]))
    return math.exp(fmean(losses))


def encoded(lines: Sequence[str]) -> list[np.ndarray]:
    """Return the characters of each line as ids (characters,) of the alphabet."""
    ids, lengths = Alphabet().flat(lines)
    return np.split(ids, np.cumsum(lengths)[:-1])


def unknown_words(train: Iterable[str], test: Iterable[str]) -> float:
    """Return the fraction of words of the `test` lines that no `train` line contains."""
    known = {word for line in train for word in line.split()}
    words = [word for line in test for word in line.split()]
    return sum(word not in known for word in words) / len(words)


def evenly_spaced(lines: Sequence[str], count: int) -> list[str]:
    """Return `count` of some `lines`, at equal steps."""
    return [lines[number * len(lines) // count] for number in range(count)]


def faults_of_text(gap: DomainGap, source: Transcripts, target: Transcripts) -> tuple[str, list[str]]:
    """Compare two domains of text, with models trained on equally many lines.

    Returns:
        The measurements in words, and the limits of `gap` that do not hold.
    """
    from pipeline.models.language_model.model import Ngram  # loads torch

    lines = min(len(source["train"]), len(target["train"]))
    trained = [
        Ngram(ORDER, len(Alphabet()), encoded(evenly_spaced(domain["train"], lines))) for domain in (target, source)
    ]
    unknown = unknown_words(source["train"], target["test"])
    own, other = (perplexity(model, encoded(target["test"])) for model in trained)
    faults = []
    if unknown > gap.unknown_words:
        faults.append(f"{unknown:.1%} of its words are unknown to {gap.source}, more than {gap.unknown_words:.0%}")
    least, most = gap.perplexity_ratio
    if not least <= other / own <= most:
        faults.append(
            f"its perplexity is {other / own:.2f} times as high under {gap.source}'s model as under its own, "
            f"not {least:g} to {most:g} times"
        )
    summary = (
        f"{unknown:.1%} of its words unknown to {gap.source}, "
        f"perplexity {other / own:.2f} times as high under {gap.source}'s model as under its own"
    )
    return f"{summary} ({other:.2f} against {own:.2f} per character, {ORDER}-grams)", faults


def faults_of_positions(project: Project, gap: DomainGap, runs: Iterable[RunId]) -> list[str]:
    """Return a message for each recogniser whose encoder positions hold more characters than allowed."""
    found: dict[tuple[str, int], float] = {}
    for run in runs:
        if isinstance(model := project.run_spec(run).model, AttentionRecogniserConfig):
            size = Corpus.of(project.dataset_records[run.dataset], project.layout.corpus(run.dataset))
            frames = model.frames_per_position
            found[run.dataset, MILLISECONDS * frames] = size.tgt_subwords * frames / size.src_subwords
    return [
        f"{dataset} has {characters:.2f} characters per encoder position of {milliseconds} ms, more than "
        f"{gap.characters_a_position:g}; let the text be read more slowly, or join or pool fewer frames"
        for (dataset, milliseconds), characters in found.items()
        if characters > gap.characters_a_position
    ]


def transcripts(project: Project, name: str) -> Transcripts:
    """Return the text of each split that is or will be read aloud. Text that only a mirror has is fetched."""
    record, corpus = project.dataset_records[name], project.layout.corpus(name)
    assert isinstance(record, ReadAloudDataset)
    splits: tuple[SplitName, ...] = ("train", "test")
    prepared = {split: corpus / f"prepared/{split}.en" for split in splits}
    if all(path.exists() for path in prepared.values()):
        return {split: list(lines_of(path, "prepare it again")) for split, path in prepared.items()}
    with TemporaryDirectory() as folder:
        collect_text(record, project.layout.downloads, Path(folder), project.config.mirror)
        chosen = select(record, Path(folder), record.utterances)
    return {split: [sentence.spelt for sentence in chosen[split].sentences] for split in prepared}

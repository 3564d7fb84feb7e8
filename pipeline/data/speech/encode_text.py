"""Stage `encode-text`: character ids of the text of a language model, and the selection of fitting sentences.

The stage `speak` selects the sentences that it reads in the same way.
"""

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.core.digests import require_digest
from pipeline.core.errors import UserError, count_of
from pipeline.core.files import atomic_write
from pipeline.core.records.corpus import PreparedText, SentencesReport, TextCorpus, TextSizes
from pipeline.data.dataset import SplitName, SpokenRecord, TextRecord, load_one_of
from pipeline.data.encoded_files import encoded_stores, stores_digest
from pipeline.data.processes import chunks
from pipeline.data.sequence_store import write_tokens
from pipeline.data.text.text_files import lines_of
from pipeline.data.text.vocabulary import Alphabet, to_alphabet

log = logging.getLogger(__name__)

EXAMPLES = 5
LINES_PER_CHUNK = 10_000


class Sentence(NamedTuple):
    """A sentence as written, and in the characters of transcripts."""

    written: str
    spelt: str


@dataclass
class Selection:
    """Sentences of one split, with the number read, and those left out by reason with examples."""

    sentences: list[Sentence] = field(default_factory=list)
    read: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def record(self) -> dict[str, Any]:
        """Return the counts for a report."""
        return {"read": self.read, "rejected": dict(self.rejected), "examples": self.examples}


def select(
    dataset: SpokenRecord | TextRecord, corpus: Path, wanted: Mapping[SplitName, int]
) -> dict[SplitName, Selection]:
    """Select the first fitting sentences of each split without repeated spellings, test and dev sets first.

    Args:
        dataset: Text to read aloud, or of a language model.
        corpus: Folder of the corpus, with `raw/`.
        wanted: Maximum number of sentences of each split; splits not named have all that fit.

    Returns:
        The selected sentences of each split, with counts of those left out.

    Raises:
        UserError: Raw text is missing, nothing fits, or there are too few sentences to read aloud.
    """
    selections: dict[SplitName, Selection] = {}
    seen: set[str] = set()
    for split in reversed(dataset.split_names):
        found = selections[split] = Selection()
        for line in lines_of(corpus / f"raw/{split}.en", "run the stage `collect-text` first"):
            if len(found.sentences) == wanted.get(split):
                break
            found.read += 1
            text, strange = to_alphabet(line)
            if reason := fault(text, strange, seen, dataset.max_characters):
                found.rejected[reason] += 1
                if len(found.examples) < EXAMPLES:
                    found.examples.append(f"{reason}: {line[:120]}")
                continue
            seen.add(text)
            found.sentences.append(Sentence(line, text))
        needed = 1 if isinstance(dataset, TextRecord) else wanted.get(split, 1)
        if len(found.sentences) < needed:
            raise UserError(
                f"{dataset.name}: {count_of(len(found.sentences), 'sentence')} of {split} fit, but {needed} are "
                "needed; raise max_characters, add text, or request fewer"
            )
    return selections


def fault(text: str, strange: str, seen: set[str], most: int) -> str | None:
    """Return why a sentence spelt `text` is left out, or None: `strange` characters, over `most`, or `seen` before."""
    if strange:
        return "outside the alphabet"
    if not text:
        return "empty"
    if len(text) > most:
        return "too long"
    return "repeated" if text in seen else None


def encode_text_corpus(*, dataset: Path, corpus: Path) -> None:
    r"""Encode the text of a character language model as memory-mapped ids.

        python -m pipeline encode-text --dataset workflow/datasets/grammar-text-full.yaml \
            --corpus work/corpora/grammar-text-full

    reads   <corpus>/raw/<split>.en
    writes  <corpus>/prepared/<split>.en                   sentences in the characters of transcripts
            <corpus>/prepared/report.json                  counts of sentences kept, and left out by reason
            <corpus>/encoded/<split>.tgt.{tokens,offsets}  their ids (vocabulary.py, sequence_store.py)
            <corpus>/encoded/corpus.json                   sizes and digests, written last

    Args:
        dataset: Dataset file.
        corpus: Folder of the corpus.
    """
    encode_text(load_one_of(dataset, TextRecord, "text in characters alone; `speak` reads aloud"), corpus)


def encode_text(dataset: TextRecord, corpus: Path) -> TextCorpus:
    """Return the record of a character language model's text, after writing `prepared/` and `encoded/`.

    Raises:
        UserError: Raw text is missing, too short, or not as expected.
    """
    chosen = select(dataset, corpus, dataset.sentences)
    report: dict[str, SentencesReport] = {}
    splits: dict[str, TextSizes] = {}
    for split in dataset.split_names:
        sentences = chosen[split].sentences
        characters = write_split(corpus, split, sentences)
        check_split(dataset, split, len(sentences), corpus / f"prepared/{split}.en")
        words = sum(sentence.spelt.count(" ") + 1 for sentence in sentences)
        report[split] = SentencesReport(
            kept=len(sentences), characters=characters, words=words, **chosen[split].record()
        )
        splits[split] = TextSizes(pairs=len(sentences), tgt_tokens=characters)
        log.info("%s %s: %d sentences, %d words, %d characters", dataset.name, split, len(sentences), words, characters)
    PreparedText(dataset=dataset.name, splits=report).write(corpus / "prepared/report.json")
    alphabet = Alphabet()
    record = TextCorpus(
        dataset=dataset.name,
        tgt="en",
        vocab_size=len(alphabet),
        vocab_digest=alphabet.digest,
        digest=stores_digest(encoded_stores(corpus / "encoded", "text", splits)),
        splits=splits,
    )
    record.write(corpus / "encoded/corpus.json")
    return record


def write_split(corpus: Path, split: SplitName, sentences: list[Sentence]) -> int:
    """Write text and ids of the `sentences` of a `split` of a `corpus`, and return the number of characters."""
    alphabet = Alphabet()
    with (
        atomic_write(corpus / f"prepared/{split}.en") as text,
        write_tokens(corpus / f"encoded/{split}.tgt", len(alphabet)) as tokens,
    ):
        for part in chunks((sentence.spelt for sentence in sentences), LINES_PER_CHUNK):
            text.writelines(f"{line}\n" for line in part)
            tokens.append(*alphabet.flat(part))
        return tokens.count


def check_split(dataset: TextRecord, split: SplitName, kept: int, path: Path) -> None:
    """Check that a `split` with `kept` sentences in `path` is the one that the `dataset` file expects.

    Raises:
        UserError: Its number of sentences or its digest differs.
    """
    expected = dataset.expected.get(split)
    if expected and expected.utterances != kept:
        raise UserError(
            f"{path}: {count_of(kept, 'sentence')} kept, expected {expected.utterances}; the raw text differs"
        )
    require_digest(path, expected.sha256 if expected else None, "the raw text differs")

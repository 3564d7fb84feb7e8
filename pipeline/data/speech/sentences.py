"""Selection of raw sentences and their spelling; sentences left out are counted by reason."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.core.errors import UserError
from pipeline.data.dataset import SplitName, SpokenRecord, TextRecord
from pipeline.data.text.alphabet import to_alphabet
from pipeline.data.text.text_files import lines_of

EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence as written, and in the characters of transcripts."""

    written: str
    spelt: str


@dataclass
class Selection:
    """Sentences of each split, with the number read, and those left out by reason with examples."""

    sentences: dict[str, list[Sentence]] = field(default_factory=dict)
    read: Counter = field(default_factory=Counter)
    rejected: dict[str, Counter] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def record(self, split: str) -> dict:
        """Return the counts of a split for a report."""
        return {"read": self.read[split], "rejected": dict(self.rejected[split]), "examples": self.examples[split]}


def select(dataset: SpokenRecord | TextRecord, corpus: Path, wanted: Mapping[SplitName, int]) -> Selection:
    """Select the first fitting sentences of each split without repeated spellings, test and dev sets first.

    Args:
        dataset: Text to read aloud, or of a language model.
        corpus: Folder of the corpus, with `raw/`.
        wanted: Most sentences of each split; splits not named have all that fit.

    Returns:
        The selected sentences, with counts of those left out.

    Raises:
        UserError: Raw text is missing, nothing fits, or there are too few sentences to read aloud.
    """
    found = Selection()
    seen: set[str] = set()
    for split in reversed(dataset.split_names):
        chosen: list[Sentence] = []
        found.sentences[split] = chosen
        found.rejected[split], found.examples[split] = Counter(), []
        for line in lines_of(corpus / f"raw/{split}.en", "run the stage `collect-text` first"):
            if len(chosen) == wanted.get(split):
                break
            found.read[split] += 1
            text, strange = to_alphabet(line)
            if reason := fault(text, strange, seen, dataset.max_characters):
                found.rejected[split][reason] += 1
                if len(found.examples[split]) < EXAMPLES:
                    found.examples[split].append(f"{reason}: {line[:120]}")
                continue
            seen.add(text)
            chosen.append(Sentence(line, text))
        needed = 1 if isinstance(dataset, TextRecord) else wanted.get(split, 1)
        if len(chosen) < needed:
            raise UserError(
                f"{dataset.name}: {len(chosen)} sentences of {split} fit, but {needed} are needed; "
                "raise max_characters, add text, or request fewer"
            )
    return found


def fault(text: str, strange: str, seen: set[str], most: int) -> str | None:
    """Return the reason why a sentence is left out; None if it is not.

    Args:
        text: Spelling of the sentence.
        strange: Its characters outside the alphabet.
        seen: Spellings selected so far.
        most: Most characters of a sentence.
    """
    if strange:
        return "outside the alphabet"
    if not text:
        return "empty"
    if len(text) > most:
        return "too long"
    return "repeated" if text in seen else None

"""Which raw sentences are used, and how they are spelt; every one that is left out is counted by its reason."""

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
    """As it was written, and in the characters of transcripts."""

    written: str
    spelt: str


@dataclass
class Selection:
    """The sentences of each split, and by split how many were read, and left out for which reason, with examples."""

    sentences: dict[str, list[Sentence]] = field(default_factory=dict)
    read: Counter = field(default_factory=Counter)
    rejected: dict[str, Counter] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def record(self, split: str) -> dict:
        """For a report."""
        return {"read": self.read[split], "rejected": dict(self.rejected[split]), "examples": self.examples[split]}


def select(dataset: SpokenRecord | TextRecord, corpus: Path, wanted: Mapping[SplitName, int]) -> Selection:
    """The first sentences of each split that fit; no spelling comes twice, test and dev sets having the first choice.

    Args:
        wanted: sentences of a split at most; a split that is not named has all that fit.

    Raises:
        UserError: raw text is missing, none fits, or fewer than are to be read aloud.
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
                f"{dataset.name}: {len(chosen)} sentences of {split} fit, {needed} are wanted; "
                "raise max_characters, take more text, or ask for fewer"
            )
    return found


def fault(text: str, strange: str, seen: set[str], most: int) -> str | None:
    """Why a sentence is left out; None when it is not."""
    if strange:
        return "outside the alphabet"
    if not text:
        return "empty"
    if len(text) > most:
        return "too long"
    return "repeated" if text in seen else None

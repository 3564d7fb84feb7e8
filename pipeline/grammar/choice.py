"""Zipf-like random choice, and the parts of the lexicon that are reserved for the test split."""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from random import Random
from typing import Generic, TypeVar

from pipeline.grammar.lexicon import CITIES, FEMALE, MALE, SURNAMES
from pipeline.grammar.structure import DerivationNotes, Name
from pipeline.grammar.words import Noun

Item = TypeVar("Item")

HELD_OUT_NAMES_EVERY = 6  # of a list's names beyond the most frequent ones
HELD_OUT_COMBINATIONS = 25  # one verb-object combination of so many is left to the test split


class Zipf(Generic[Item]):
    """Random choice with probability proportional to 1 / (rank + flatness)."""

    def __init__(self, items: Sequence[Item], flatness: float):
        self.items = list(items)
        self.cumulative = list(accumulate(1 / (rank + flatness) for rank in range(len(self.items))))

    def __call__(self, rng: Random) -> Item:
        """Draw an item."""
        return rng.choices(self.items, cum_weights=self.cumulative)[0]


def held_out_combination(verb: str, noun: Noun) -> bool:
    """Return whether a verb with an object is reserved for the test split; the hash is the same everywhere."""
    return zlib.crc32(f"{verb}+{noun.key}".encode()) % HELD_OUT_COMBINATIONS == 0


def by_class(nouns: Iterable[Noun]) -> dict[str, list[Noun]]:
    """Group nouns by semantic class; the key of a noun is a class of its own."""
    classes: dict[str, list[Noun]] = {}
    for noun in nouns:
        for name in noun.classes:
            classes.setdefault(name, []).append(noun)
    return classes


def nouns_of(classes: Mapping[str, list[Noun]], names: Iterable[str]) -> list[Noun]:
    """Return all nouns of some classes, each once."""
    return list(dict.fromkeys(noun for name in names for noun in classes[name]))


def _halves(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split names into those for every split and those for the test split only."""
    held_out = {i for i in range(12, len(names)) if i % HELD_OUT_NAMES_EVERY == 0}
    known = [name for i, name in enumerate(names) if i not in held_out]
    return known, [names[i] for i in sorted(held_out)]


class NameChooser:
    """Random names of people and towns. With `unseen`, some of them are in no training sentence."""

    unseen_share = 0.25

    def __init__(self) -> None:
        lists = {"m": MALE, "f": FEMALE, "family": SURNAMES, "town": CITIES}
        halves = {kind: _halves(names) for kind, names in lists.items()}
        self.known = {kind: Zipf(known, 4) for kind, (known, _) in halves.items()}
        self.held_out = {kind: Zipf(held_out, 50) for kind, (_, held_out) in halves.items()}

    def _one(self, rng: Random, kind: str, unseen: bool) -> tuple[str, bool]:
        if unseen and rng.random() < self.unseen_share:
            return self.held_out[kind](rng), True
        return self.known[kind](rng), False

    def person(self, rng: Random, unseen: bool) -> Name:
        """Return a drawn person: Anna, Anna Keller or Mrs Keller (see `corpus.endless`)."""
        style = rng.random()
        if style < 0.2:
            gender = "m" if rng.random() < 0.5 else "f"
            family, new = self._one(rng, "family", unseen)
            return Name(family, gender, title="Mr" if gender == "m" else "Mrs", unseen=new)
        return self.first(rng, unseen) if style < 0.65 else self.full(rng, unseen)

    def first(self, rng: Random, unseen: bool) -> Name:
        """Return a drawn first name: Anna (see `person`)."""
        gender = "m" if rng.random() < 0.5 else "f"
        text, new = self._one(rng, gender, unseen)
        return Name(text, gender, unseen=new)

    def full(self, rng: Random, unseen: bool) -> Name:
        """Return a drawn full name: Anna Keller (see `person`)."""
        name = self.first(rng, unseen)
        family, new = self._one(rng, "family", unseen)
        return Name(f"{name.text} {family}", name.gender, unseen=name.unseen or new)

    def town(self, rng: Random, unseen: bool) -> Name:
        """Return a drawn town (see `person`)."""
        town, new = self._one(rng, "town", unseen)
        return Name(town, "n", unseen=new, town=True)


NAMES = NameChooser()


class Drawer:
    """Random choice that notes the phenomena of a sentence.

    Args:
        rng: Random number generator.
        held_out: Allow names and verb-object combinations that are reserved for the test split.
    """

    def __init__(self, rng: Random, held_out: bool):
        self.rng = rng
        self.held_out = held_out
        self.notes = DerivationNotes()

    def chance(self, probability: float) -> bool:
        """Return True with a given probability."""
        return self.rng.random() < probability

    def note_name(self, name: Name) -> Name:
        """Note a name and return it."""
        self.notes.names.append(name)
        self.notes.kinds.add("unseen_name" if name.unseen else "name")
        return name

    def town(self) -> Name:
        """Draw a town and note it."""
        return self.note_name(NAMES.town(self.rng, self.held_out))

    def object_of(self, verb: str, nouns: Zipf[Noun], shown: str) -> Noun:
        """Return an object drawn for a verb; reserved combinations are redrawn outside the test split.

        Args:
            verb: Key of the verb.
            nouns: Possible objects.
            shown: The verb as it is noted.
        """
        while True:
            noun = nouns(self.rng)
            if not held_out_combination(verb, noun):
                return noun
            if self.held_out:
                self.notes.combinations.append(f"{shown} {noun.en[0]}")
                self.notes.kinds.add("unseen_combination")
                return noun

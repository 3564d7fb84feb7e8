"""Random noun phrases: names, determiners, adjectives, owners, genitives, places and relative clauses."""

from random import Random

from pipeline.grammar import structure
from pipeline.grammar.choice import NAMES, Drawer, Zipf, by_class, held_out_combination, nouns_of
from pipeline.grammar.lexicon import ADJECTIVES, NOUNS, NUMBERS, TIME, VERBS
from pipeline.grammar.structure import ME, THEY, THIRD, WE, YOU
from pipeline.grammar.words import Adjective, Noun, Verb

CLASSES = by_class(NOUNS)
ORDINARY = [verb for verb in VERBS if not verb.idiom]
BY_FRAME = {frame: Zipf([verb for verb in ORDINARY if verb.frame == frame], 12) for frame in "tidgcqv"}
SUBJECTS = {verb: Zipf(nouns_of(CLASSES, verb.subjects), 5) for verb in VERBS}
OBJECTS = {verb: Zipf(nouns_of(CLASSES, verb.objects), 5) for verb in VERBS if verb.objects}
PEOPLE = Zipf(nouns_of(CLASSES, ["person"]), 5)
PLACES = Zipf(nouns_of(CLASSES, ["building", "room", "outdoors", "station", "lake"]), 8)
ADJECTIVES_OF = {noun: [adjective for adjective in ADJECTIVES if adjective.classes & noun.classes] for noun in NOUNS}
OWNED = frozenset(["kin", "pet", "clothes", "accessory", "portable", "vehicle", "house", "room", "garden", "idea"])
LOCATED = frozenset(["person", "animal", "furniture", "opening", "nature", "written", "picture"])
SINGLE = frozenset(["contest", "event", "place", "drink", "liquid", "king", "queen"])  # mostly one at a time
RARER_DETERMINERS: tuple[structure.Determiner, ...] = ("this", "this", "number", "some", "many", "every")
WHOLES = {"room": ("house", "hotel"), "opening": ("house", "church", "car", "hotel"), "kin": ("person",)}
WHOLE = {part: Zipf(nouns_of(CLASSES, wholes), 5) for part, wholes in WHOLES.items()}


class NominalDeriver(Drawer):
    """Deriver of noun phrases."""

    def __init__(self, rng: Random, held_out: bool):
        super().__init__(rng, held_out)
        self.subject: structure.Nominal | None = None  # of the clause under way: a likely owner of its object

    def name(self) -> structure.Name:
        """Draw a person and note it."""
        return self.note_name(NAMES.person(self.rng, self.held_out))

    def pronoun_for(self, nominal: structure.Nominal) -> structure.Pronoun:
        """Return the pronoun for something mentioned, with its gender in each language."""
        if isinstance(nominal, structure.Pronoun):
            return nominal
        human = nominal.gender != "n"
        de_gender = nominal.gender if human else nominal.de_gender
        return structure.Pronoun(nominal.person, nominal.gender, de_gender, nominal.fr_gender, human)

    def person(self) -> structure.Nominal:
        """Draw a pronoun, a name or two people."""
        draw = self.rng.random()
        if draw < 0.4:
            person = self.rng.choice((ME, YOU, THIRD, THIRD, WE, THEY))
            gender = self.rng.choice("mf") if person == THIRD else "m"
            return structure.Pronoun(person, gender, gender, gender)
        if draw < 0.88:
            return self.name()
        return structure.Pair(self.name(), self.noun_phrase(PEOPLE(self.rng)) if self.chance(0.5) else self.name())

    def noun_phrase(
        self, noun: Noun, relative: bool = False, determiners: tuple[structure.Determiner, ...] = (), bare: bool = False
    ) -> structure.NounPhrase:
        """Return a drawn noun phrase, whose phenomena are noted.

        Args:
            noun: Its head.
            relative: Allow a relative clause.
            determiners: Determiners to choose from; empty = any that fits.
            bare: Leave out adjectives and modifiers.
        """
        self.notes.nouns.append(noun)
        np = structure.NounPhrase(noun, self.rng.choice(determiners) if determiners else self._determiner(noun))
        np.plural = np.determiner in ("number", "some", "many")
        if np.determiner != "every" and not noun.classes & SINGLE and self.chance(0.16):
            np.plural = True
        if np.determiner == "number":
            np.number = self.rng.choice(NUMBERS)
        if np.determiner == "my":
            np.owner = self._owner()
        if bare:
            return np
        np.adjectives = self._adjectives(noun)
        if relative and self.chance(0.13):
            self._relative(np)
        elif self.chance(0.25 if noun.classes & WHOLES.keys() else 0.1):
            self._modify(np)
        return np

    def _determiner(self, noun: Noun) -> structure.Determiner:
        draw = self.rng.random()
        if draw < 0.12 and noun.classes & OWNED:
            return "my"
        if draw < 0.5:
            return "the"
        if draw < 0.8:
            return "a"
        return "this" if noun.classes & SINGLE else self.rng.choice(RARER_DETERMINERS)

    def _owner(self) -> structure.Pronoun:
        """Draw an owner, most often the subject of the clause."""
        if self.subject is not None and self.chance(0.7):
            owner = self.pronoun_for(self.subject)
            if owner.human:
                return owner
        gender = self.rng.choice("mf")
        return structure.Pronoun(self.rng.choice((ME, YOU, THIRD, THIRD, WE, THEY)), gender, gender)

    def _adjectives(self, noun: Noun) -> tuple[Adjective, ...]:
        fitting = ADJECTIVES_OF[noun]
        if not fitting or not self.chance(0.34):
            return ()
        self.notes.kinds.add("adjective")
        first = self.rng.choice(fitting)
        if first.fr_before_noun and self.chance(0.2):
            second = self.rng.choice(fitting)
            if not second.fr_before_noun:
                return first, second
        return (first,)

    def _modify(self, np: structure.NounPhrase) -> None:
        """Add a genitive or a place."""
        part = next((name for name in WHOLES if name in np.noun.classes), None)
        if part and np.determiner in ("the", "a") and self.chance(0.7):
            np.determiner = "the"
            named = part == "kin" and self.chance(0.5)
            np.genitive = self.name() if named else self.noun_phrase(WHOLE[part](self.rng), bare=True)
            if isinstance(np.genitive, structure.NounPhrase):
                np.genitive.determiner, np.genitive.plural = "the", False
            self.notes.kinds.add("genitive")
        elif np.determiner in ("the", "a") and np.noun.classes & LOCATED:
            np.place = self.ground()

    def ground(self) -> structure.Place:
        """Draw a place."""
        if self.chance(0.3):
            return structure.Place("in", self.town())
        noun = PLACES(self.rng)
        return structure.Place(noun.location, self.ground_noun(noun))

    def ground_noun(self, noun: Noun) -> structure.NounPhrase:
        """Draw the noun phrase of a place: the house, an old house."""
        ground = self.noun_phrase(noun, determiners=("the", "the", "the", "a"), bare=True)
        ground.plural = False
        ground.adjectives = self._adjectives(noun) if self.chance(0.4) else ()
        return ground

    def _relative(self, np: structure.NounPhrase) -> None:
        """Add a relative clause in which `np` is subject or object."""
        tense: structure.Tense = "past" if self.chance(0.6) else "present"
        as_subject = self.chance(0.55)
        verb = self._fitting_verb(np.noun, as_subject)
        if verb is None:
            return
        if as_subject:
            clause = structure.Clause(None, verb, tense, object=self._plain_object(verb), agreement=np)
        else:
            subject = self.person() if self.chance(0.5) else self.noun_phrase(PEOPLE(self.rng), bare=True)
            clause = structure.Clause(subject, verb, tense)
        if self.chance(0.2) and not verb.stative:
            clause.time = self.rng.choice(TIME[tense])
        self.notes.verbs.append(verb)
        self.notes.verb_final.append(clause)
        np.relative = structure.Relative("subject" if as_subject else "object", clause)
        self.notes.kinds.add("relative_clause")

    def _fitting_verb(self, noun: Noun, as_subject: bool) -> Verb | None:
        """Draw a verb with `noun` as its subject, or as an object without preposition; None if none was found."""
        for _ in range(12):
            verb = BY_FRAME["t"](self.rng)
            if as_subject:
                if noun in SUBJECTS[verb].items:
                    return verb
                continue
            bare = verb.pronominal and not verb.en.preposition and noun in OBJECTS[verb].items
            if bare and not held_out_combination(verb.key, noun):
                return verb
        return None

    def _plain_object(self, verb: Verb) -> structure.Nominal:
        if "person" in verb.objects and self.chance(0.4):
            return self.name()
        return self.noun_phrase(self.object_noun(verb))

    def object_noun(self, verb: Verb) -> Noun:
        """Draw the object of a verb."""
        return self.object_of(verb.key, OBJECTS[verb], verb.en.base)

"""Derives the film domain: random statements and questions from the lexicon, in meaning only."""

from random import Random

from pipeline.data.grammar.choice import NAMES, Zipf, held_out_combination, nouns_of
from pipeline.data.grammar.lexicon import (
    ADJECTIVES,
    COORDINATORS,
    FREQUENCY,
    INTERJECTIONS,
    MANNER,
    NUMBERS,
    OPENERS,
    SUBORDINATORS,
    TIME,
    VERBS,
)
from pipeline.data.grammar.lexicon.words import Adjective, Noun, Phrase, Verb
from pipeline.data.grammar.structure import (
    ME,
    THEY,
    THIRD,
    WE,
    YOU,
    Clause,
    Facts,
    Modal,
    Name,
    Negation,
    Nominal,
    NounPhrase,
    Pair,
    Place,
    Pronoun,
    Relative,
    Statement,
    Tense,
    Utterance,
)

ORDINARY = [verb for verb in VERBS if not verb.idiom]
BY_FRAME = {frame: Zipf([v for v in ORDINARY if v.frame == frame], 12) for frame in "tidgcqv"}
IDIOMS = Zipf([verb for verb in VERBS if verb.idiom], 8)
SUBJECTS = {verb: Zipf(nouns_of(verb.subjects), 5) for verb in VERBS}
OBJECTS = {verb: Zipf(nouns_of(verb.objects), 5) for verb in VERBS if verb.objects}
PEOPLE = Zipf(nouns_of(["person"]), 5)
PLACES = Zipf(nouns_of(["building", "room", "outdoors", "station", "lake"]), 8)
OWNED = frozenset(["kin", "pet", "clothes", "accessory", "portable", "vehicle", "house", "room", "garden", "idea"])
ADJECTIVES_OF = {
    noun: [adjective for adjective in ADJECTIVES if adjective.classes & noun.classes]
    for noun in nouns_of(
        sorted({name for adjective in ADJECTIVES for name in adjective.classes} - {"street", "box", "club"})
    )
}
SINGLE = frozenset(["contest", "event", "place", "drink", "liquid", "king", "queen"])  # mostly one at a time
MODALS: tuple[Modal, ...] = ("want", "can", "must", "should")
LOCATED = frozenset(["person", "animal", "furniture", "opening", "nature", "written", "picture"])
WHOLES = {"room": ("house", "hotel"), "opening": ("house", "church", "car", "hotel"), "kin": ("person",)}
WHOLE = {part: Zipf(nouns_of(wholes), 5) for part, wholes in WHOLES.items()}


class Deriver:
    """Derives one sentence: `film()`. Notes what it chose in `facts`.

    `held_out` allows the names and the verb-object combinations that are left to the test split.
    """

    def __init__(self, rng: Random, held_out: bool):
        self.rng = rng
        self.held_out = held_out
        self.facts = Facts()
        self.subject: Nominal | None = None  # of the clause under way: a likely owner of its object

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def film(self) -> Utterance:
        """A statement of one to four clauses or a question, of any length."""
        interjection = self.rng.choice(INTERJECTIONS) if self.chance(0.05) else None
        vocative = NAMES.first_name(self.rng, self.held_out) if self.chance(0.04) else None
        if vocative:
            self._note_name(vocative)
        if self.chance(0.12):
            return self._question(interjection, vocative)
        statement = self.statement(depth=0)
        return Utterance(statement, "", interjection, vocative)

    def _question(self, interjection: Phrase | None, vocative: Name | None) -> Utterance:
        word = self.rng.choice(("yes", "yes", "where", "when", "why"))
        clause = self.clause(self._tense(), plain=True, simple=word != "yes", act=word != "yes")
        if word == "where":
            clause.place = None
        if word in ("where", "when"):
            clause.time = None
        self.facts.kinds.add("question")
        return Utterance(Statement(clause), word, interjection, vocative)

    def statement(self, depth: int) -> Statement:
        tense = self._tense()
        if depth == 0 and self.chance(0.06):
            return Statement(self._existence(tense))
        shape = self.rng.random()
        statement = Statement(self.clause(tense))
        if shape < 0.3:
            self._subordinate(statement, tense)
        elif depth == 0 and shape < 0.42 and not statement.main.time_first:
            statement.opener = self._opener(tense)
        if depth < 2 and self.chance(0.24 if depth == 0 else 0.15):
            statement.coordinator = self.rng.choice(COORDINATORS)
            statement.rest = self.statement(depth + 1)
            if statement.coordinator.en == "so":
                statement.rest.main.time_first = False
                statement.rest.subordinate_first = False
            self.facts.kinds.add("coordination")
        return statement

    def _opener(self, tense: Tense) -> Phrase:
        opener = self.rng.choice(OPENERS)
        return opener if tense == "past" or opener.de != ("plötzlich",) else OPENERS[0]

    def _subordinate(self, statement: Statement, tense: Tense) -> None:
        fitting = [phrase for phrase, tenses in SUBORDINATORS if tense in tenses]
        statement.subordinator = self.rng.choice(fitting)
        statement.subordinate_first = self.chance(0.4) and not statement.main.time_first
        statement.subordinate = self.clause(tense, about=statement.main)
        statement.subordinate.time_first = False
        self.facts.kinds.update(("subordinate", "verb_final"))

    def _existence(self, tense: Tense) -> Clause:
        noun = PEOPLE(self.rng) if self.chance(0.3) else OBJECTS[ORDINARY[0]](self.rng)
        ground = self._ground()
        thing = self.noun_phrase(noun, determiners=("a", "number", "some", "many"))
        return Clause(None, None, tense, object=thing, exists=True, place=ground)

    def _tense(self) -> Tense:
        draw = self.rng.random()
        return "past" if draw < 0.5 else "present" if draw < 0.82 else "future"

    def clause(
        self, tense: Tense, about: Clause | None = None, plain: bool = False, simple: bool = False, act: bool = False
    ) -> Clause:
        """A clause with a subject. `about`: the clause whose subject and object pronouns may take up; `plain`: without
        a fronted adverb, negation, or a modal; `simple`: without a clause inside; `act`: no state."""
        if self.chance(0.12) and not simple and tense != "future":
            return self._description(tense, about)
        verb = self._verb(act or tense == "future", simple)
        subject = self._subject(verb, about)
        clause = Clause(subject, verb, tense)
        self.subject = subject
        self._fill(clause, about)
        self.subject = None
        if not plain:
            self._negate(clause)
            if not clause.negation or clause.negation == "not":
                self._modality(clause)
        self._adjuncts(clause, plain)
        return clause

    def _verb(self, act: bool, simple: bool) -> Verb:
        """States are not put in the future, nor asked where and when."""
        while True:
            draw = self.rng.random()
            if draw < 0.07:
                verb = IDIOMS(self.rng)
            else:
                frame = "t" if draw < 0.58 or simple else "i" if draw < 0.7 else "d" if draw < 0.79 else self._clausal()
                verb = BY_FRAME[frame](self.rng)
            if not (act and verb.stative):
                break
        if verb.idiom:
            self.facts.kinds.add("idiom")
        self.facts.verbs.append(verb)
        return verb

    def _clausal(self) -> str:
        draw = self.rng.random()
        return "g" if draw < 0.3 else "c" if draw < 0.62 else "v" if draw < 0.88 else "q"

    def _subject(self, verb: Verb, about: Clause | None) -> Nominal:
        human = "person" in verb.subjects
        if about is not None and about.subject is not None and human and self.chance(0.45):
            taken_up = self._take_up(about.subject)
            if taken_up.human:
                self.facts.kinds.add("coreference")
                return taken_up
        if human and self.chance(0.42):
            return self._person()
        return self.noun_phrase(SUBJECTS[verb](self.rng), relative=True)

    def _person(self) -> Nominal:
        """A pronoun, a name or two people."""
        draw = self.rng.random()
        if draw < 0.4:
            person = self.rng.choice((ME, YOU, THIRD, THIRD, WE, THEY))
            gender = self.rng.choice("mf") if person == THIRD else "m"
            return Pronoun(person, gender, gender, gender)
        if draw < 0.88:
            return self.name()
        return Pair(self.name(), self.noun_phrase(PEOPLE(self.rng)) if self.chance(0.5) else self.name())

    def name(self) -> Name:
        name = NAMES.person(self.rng, self.held_out)
        self._note_name(name)
        return name

    def _note_name(self, name: Name) -> None:
        self.facts.names.append(name)
        self.facts.kinds.add("unseen_name" if name.unseen else "name")

    def _take_up(self, nominal: Nominal) -> Pronoun:
        """The pronoun for something mentioned: its gender is the antecedent's, in each language."""
        if isinstance(nominal, Pronoun):
            return nominal
        human = nominal.gender != "n"
        de_gender = nominal.gender if human else nominal.de_gender
        return Pronoun(nominal.person, nominal.gender, de_gender, nominal.fr_gender, human)

    def _fill(self, clause: Clause, about: Clause | None) -> None:
        """Object, recipient, clause: what the verb's frame asks for."""
        verb = clause.verb
        match verb.frame:
            case "t" | "g":
                clause.object = self._object(verb, about)
            case "d":
                clause.object = self._object(verb, None)
                clause.recipient = self.name() if self.chance(0.4) else self.noun_phrase(PEOPLE(self.rng))
            case "c" | "q":
                tense = clause.tense if self.chance(0.8) and clause.tense != "future" else "past"
                clause.complement = self.clause(tense, plain=verb.frame == "q", about=clause, simple=True)
                clause.complement.time_first = False
                self.facts.kinds.update(("complement_clause", "verb_final"))
            case "v":
                clause.infinitive = self._infinitive(clause.subject)
                self.facts.kinds.update(("infinitive", "verb_final"))

    def _infinitive(self, subject: Nominal) -> Clause:
        for _ in range(20):
            verb = BY_FRAME["t"](self.rng)
            if "person" in verb.subjects and not verb.stative:
                break
        self.facts.verbs.append(verb)
        inner = Clause(None, verb, "present", agreement=subject)
        inner.object = self._object(verb, None)
        return inner

    def _object(self, verb: Verb, about: Clause | None) -> Nominal:
        pronominal = verb.pronominal and not verb.idiom
        if pronominal and about is not None and about.object is not None and self.chance(0.35):
            noun = about.object.noun if isinstance(about.object, NounPhrase) else None
            if noun is not None and noun in OBJECTS[verb].items:
                self.facts.kinds.add("coreference")
                return self._take_up(about.object)
        if "person" in verb.objects and self.chance(0.3):
            return self.name()
        if "person" in verb.objects and pronominal and self.chance(0.15):
            gender = self.rng.choice("mf")
            return Pronoun(self.rng.choice((THIRD, THEY)), gender, gender, gender if gender == "f" else "m")
        if verb.frame == "g":
            return self.town() if self.chance(0.35) else self._ground_noun(self._object_noun(verb))
        return self.noun_phrase(self._object_noun(verb), relative=True)

    def _object_noun(self, verb: Verb) -> Noun:
        """An object; a combination left to the test split is drawn again elsewhere."""
        while True:
            noun = OBJECTS[verb](self.rng)
            if not held_out_combination(verb, noun):
                return noun
            if self.held_out:
                self.facts.combinations.append(f"{verb.en.base} {noun.en[0]}")
                self.facts.kinds.add("unseen_combination")
                return noun

    def town(self) -> Name:
        town = NAMES.town(self.rng, self.held_out)
        self._note_name(town)
        return town

    def noun_phrase(
        self, noun: Noun, relative: bool = False, determiners: tuple[str, ...] = (), bare: bool = False
    ) -> NounPhrase:
        """`bare`: without adjectives and modifiers."""
        self.facts.nouns.append(noun)
        np = NounPhrase(noun, self.rng.choice(determiners) if determiners else self._determiner(noun))
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
        elif self.chance(0.1):
            self._modify(np)
        return np

    def _owner(self) -> Pronoun:
        """Mostly the subject, otherwise anybody."""
        if self.subject is not None and self.chance(0.7):
            owner = self._take_up(self.subject)
            if owner.human:
                return owner
        gender = self.rng.choice("mf")
        return Pronoun(self.rng.choice((ME, YOU, THIRD, THIRD, WE, THEY)), gender, gender)

    def _determiner(self, noun: Noun) -> str:
        draw = self.rng.random()
        if draw < 0.12 and noun.classes & OWNED:
            return "my"
        if draw < 0.5:
            return "the"
        if draw < 0.8:
            return "a"
        if noun.classes & SINGLE:
            return "this"
        return self.rng.choice(("this", "this", "number", "some", "many", "every"))

    def _adjectives(self, noun: Noun) -> tuple[Adjective, ...]:
        fitting = ADJECTIVES_OF.get(noun, [])
        if not fitting or not self.chance(0.34):
            return ()
        self.facts.kinds.add("adjective")
        first = self.rng.choice(fitting)
        if first.fr_before_noun and self.chance(0.2):
            second = self.rng.choice(fitting)
            if not second.fr_before_noun:
                return first, second
        return (first,)

    def _modify(self, np: NounPhrase) -> None:
        """A genitive or a place."""
        part = next((name for name in WHOLES if name in np.noun.classes), None)
        if part and np.determiner in ("the", "a") and self.chance(0.7):
            np.determiner = "the"
            named = part == "kin" and self.chance(0.5)
            np.genitive = self.name() if named else self.noun_phrase(WHOLE[part](self.rng), bare=True)
            if isinstance(np.genitive, NounPhrase):
                np.genitive.determiner, np.genitive.plural = "the", False
            self.facts.kinds.add("genitive")
        elif np.determiner in ("the", "a") and np.noun.classes & LOCATED:
            np.place = self._ground()

    def _ground(self) -> Place:
        if self.chance(0.3):
            return Place("in", self.town())
        noun = PLACES(self.rng)
        return Place(noun.location, self._ground_noun(noun))

    def _ground_noun(self, noun: Noun) -> NounPhrase:
        """The house; an old house."""
        ground = self.noun_phrase(noun, determiners=("the", "the", "the", "a"), bare=True)
        ground.plural = False
        ground.adjectives = self._adjectives(noun) if self.chance(0.4) else ()
        return ground

    def _relative(self, np: NounPhrase) -> None:
        """A relative clause on `np`: its subject or its object."""
        tense: Tense = "past" if self.chance(0.6) else "present"
        as_subject = self.chance(0.55)
        for _ in range(12):
            verb = BY_FRAME["t"](self.rng)
            if as_subject and np.noun in SUBJECTS[verb].items:
                clause = Clause(None, verb, tense, agreement=np)
                clause.object = self._plain_object(verb)
                break
            whole = verb.pronominal and not verb.en.preposition and not verb.de.preposition
            if not as_subject and whole and np.noun in OBJECTS[verb].items and not held_out_combination(verb, np.noun):
                clause = Clause(self._plain_person(), verb, tense)
                break
        else:
            return
        if self.chance(0.2) and not verb.stative:
            clause.time = self.rng.choice(TIME[tense])
        self.facts.verbs.append(verb)
        np.relative = Relative("subject" if as_subject else "object", clause)
        self.facts.kinds.update(("relative_clause", "verb_final"))

    def _plain_object(self, verb: Verb) -> Nominal:
        if "person" in verb.objects and self.chance(0.4):
            return self.name()
        return self.noun_phrase(self._object_noun(verb))

    def _plain_person(self) -> Nominal:
        return self._person() if self.chance(0.5) else self.noun_phrase(PEOPLE(self.rng), bare=True)

    def _description(self, tense: Tense, about: Clause | None) -> Clause:
        """Something is big."""
        if about is not None and about.object is not None and self.chance(0.5) and isinstance(about.object, NounPhrase):
            noun, subject = about.object.noun, self._take_up(about.object)
        else:
            noun = PEOPLE(self.rng) if self.chance(0.4) else OBJECTS[ORDINARY[0]](self.rng)
            subject = None
        fitting = ADJECTIVES_OF.get(noun, [])
        if not fitting:
            noun, subject = PEOPLE(self.rng), None
            fitting = ADJECTIVES_OF[noun]
        if subject is None:
            subject = self.noun_phrase(noun, relative=True)
            subject.adjectives = ()
        else:
            self.facts.kinds.add("coreference")
        clause = Clause(subject, None, tense, predicate=self.rng.choice(fitting))
        clause.negation = "not" if self.chance(0.15) else ""
        self.facts.kinds.add("predicate")
        return clause

    def _negate(self, clause: Clause) -> None:
        draw = self.rng.random()
        if draw > 0.15 or clause.infinitive or clause.complement or clause.verb.idiom:
            return
        negation: Negation = "never" if draw < 0.03 else "not"
        clause.negation = negation
        self.facts.kinds.add("negation")
        phrase = clause.object
        if not isinstance(phrase, NounPhrase):
            return
        if phrase.determiner == "a" and not phrase.relative and negation == "not" and self._direct(clause.verb):
            phrase.determiner = "no"
        elif phrase.determiner in ("a", "some", "many", "number"):
            phrase.determiner, phrase.number = "the", None

    @staticmethod
    def _direct(verb: Verb) -> bool:
        return verb.fr.direct and not verb.de.preposition

    def _modality(self, clause: Clause) -> None:
        verb = clause.verb
        if verb.stative or verb.frame in "cqv" or clause.tense == "future" or not self.chance(0.14):
            return
        modal = self.rng.choice(MODALS)
        if (clause.negation and modal == "must") or (modal == "should" and clause.tense == "past"):
            return
        if not isinstance(clause.subject, Pronoun | Name) and clause.subject.gender == "n":
            return
        clause.modal = modal
        self.facts.kinds.update(("modal", "verb_final"))

    def _adjuncts(self, clause: Clause, plain: bool) -> None:
        """Adverbs of time, frequency and manner, places, companions."""
        verb = clause.verb
        if verb.frame in "cqv":
            return
        eventful = not verb.stative and not verb.idiom
        if self.chance(0.28) and not verb.stative and clause.negation != "never":
            clause.time = self.rng.choice(TIME[clause.tense])
            clause.time_first = not plain and self.chance(0.35)
        elif (
            not verb.stative
            and not clause.negation
            and not clause.modal
            and clause.tense != "future"
            and self.chance(0.1)
        ):
            clause.frequency = self.rng.choice(FREQUENCY)
        human = clause.subject.gender != "n" or isinstance(clause.subject, Pronoun | Name)
        if eventful and human and verb.frame in "td" and self.chance(0.07) and not clause.negation:
            clause.manner = self.rng.choice(MANNER)
        if eventful and human and verb.frame in "ti" and self.chance(0.05) and not clause.negation:
            clause.companion = self.name() if self.chance(0.5) else self.noun_phrase(PEOPLE(self.rng), bare=True)
        if eventful and verb.frame in "ti" and self.chance(0.2) and not self._placed(clause.object):
            clause.place = self._ground()

    @staticmethod
    def _placed(nominal: Nominal | None) -> bool:
        return isinstance(nominal, NounPhrase) and (nominal.place is not None or "place" in nominal.noun.classes)

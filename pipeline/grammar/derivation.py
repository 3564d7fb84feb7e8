"""Derivation of the film domain: random statements and questions, as meaning without word forms."""

from pipeline.grammar import structure
from pipeline.grammar.choice import NAMES, Zipf
from pipeline.grammar.lexicon import COORDINATORS, FREQUENCY, INTERJECTIONS, MANNER, OPENERS, SUBORDINATORS, TIME, VERBS
from pipeline.grammar.nominals import ADJECTIVES_OF, BY_FRAME, OBJECTS, PEOPLE, SUBJECTS, NominalDeriver
from pipeline.grammar.structure import THEY, THIRD, required_nominal
from pipeline.grammar.words import Phrase, Verb

IDIOMS = Zipf([verb for verb in VERBS if verb.idiom], 8)
QUESTIONS: tuple[structure.Question, ...] = ("yes", "yes", "where", "when", "why")
ANYTHING = OBJECTS[VERBS[0]]  # what can be seen
MODALS: tuple[structure.Modal, ...] = ("want", "can", "must", "should")


class Deriver(NominalDeriver):
    """Deriver of one sentence by `film()`."""

    def film(self) -> structure.Utterance:
        """Derive a statement of one to four clauses, or a question, of any length."""
        interjection = self.rng.choice(INTERJECTIONS) if self.chance(0.05) else None
        vocative = self.note_name(NAMES.first(self.rng, self.held_out)) if self.chance(0.04) else None
        if self.chance(0.12):
            return self._question(interjection, vocative)
        return structure.Utterance(self.statement(depth=0), "", interjection, vocative)

    def _question(self, interjection: Phrase | None, vocative: structure.Name | None) -> structure.Utterance:
        question = self.rng.choice(QUESTIONS)
        clause = self.clause(self._tense(), plain=True, simple=question != "yes", question=question)
        self.notes.kinds.add("question")
        return structure.Utterance(structure.Statement(clause), question, interjection, vocative)

    def statement(self, depth: int) -> structure.Statement:
        """Derive a statement; `depth` counts the statements that it is coordinated with."""
        tense = self._tense()
        if depth == 0 and self.chance(0.06):
            return structure.Statement(self._existence(tense))
        shape = self.rng.random()
        statement = structure.Statement(self.clause(tense))
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
            self.notes.kinds.add("coordination")
        return statement

    def _opener(self, tense: structure.Tense) -> Phrase:
        opener = self.rng.choice(OPENERS)
        return opener if tense == "past" or opener.de != ("plötzlich",) else OPENERS[0]

    def _subordinate(self, statement: structure.Statement, tense: structure.Tense) -> None:
        fitting = [phrase for phrase, tenses in SUBORDINATORS if tense in tenses]
        statement.subordinator = self.rng.choice(fitting)
        statement.subordinate_first = self.chance(0.4) and not statement.main.time_first
        statement.subordinate = self.clause(tense, about=statement.main)
        statement.subordinate.time_first = False
        self.notes.verb_final.append(statement.subordinate)
        self.notes.kinds.add("subordinate")

    def _existence(self, tense: structure.Tense) -> structure.Clause:
        noun = PEOPLE(self.rng) if self.chance(0.3) else ANYTHING(self.rng)
        ground = self.ground()
        thing = self.noun_phrase(noun, determiners=("a", "number", "some", "many"))
        return structure.Clause(None, None, tense, object=thing, exists=True, place=ground)

    def _tense(self) -> structure.Tense:
        draw = self.rng.random()
        return "past" if draw < 0.5 else "present" if draw < 0.82 else "future"

    def clause(
        self,
        tense: structure.Tense,
        about: structure.Clause | None = None,
        plain: bool = False,
        simple: bool = False,
        question: structure.Question = "",
    ) -> structure.Clause:
        """Return a derived clause with a subject, whose phenomena are noted.

        Args:
            tense: Tense of the clause.
            about: Clause whose subject and object pronouns may refer to.
            plain: Leave out fronted adverbs, negation and modals.
            simple: Leave out embedded clauses.
            question: Kind of question that the clause becomes.
        """
        if self.chance(0.12) and not simple and tense != "future":
            return self._description(tense, about)
        verb = self._verb(tense == "future" or question in ("where", "when", "why"), simple)
        subject = self._subject(verb, about)
        clause = structure.Clause(subject, verb, tense)
        self.subject = subject
        self._fill(clause, verb, about)
        self.subject = None
        if not plain:
            self._negate(clause, verb)
            if not clause.negation or clause.negation == "not":
                self._modality(clause, verb)
        self._adjuncts(clause, verb, plain, question)
        return clause

    def _verb(self, act: bool, simple: bool) -> Verb:
        """Draw a verb; stative verbs are used neither in the future nor in questions of where and when."""
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
            self.notes.kinds.add("idiom")
        self.notes.verbs.append(verb)
        return verb

    def _clausal(self) -> str:
        draw = self.rng.random()
        return "g" if draw < 0.3 else "c" if draw < 0.62 else "v" if draw < 0.88 else "q"

    def _subject(self, verb: Verb, about: structure.Clause | None) -> structure.Nominal:
        human = "person" in verb.subjects
        if about is not None and about.subject is not None and human and self.chance(0.45):
            taken_up = self.pronoun_for(about.subject)
            if taken_up.human:
                self.notes.kinds.add("coreference")
                return taken_up
        if human and self.chance(0.42):
            return self.person()
        return self.noun_phrase(SUBJECTS[verb](self.rng), relative=True)

    def _fill(self, clause: structure.Clause, verb: Verb, about: structure.Clause | None) -> None:
        """Add the object, recipient or clause that the verb requires."""
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
                self.notes.verb_final.append(clause.complement)
                self.notes.kinds.add("complement_clause")
            case "v":
                clause.infinitive = self._infinitive(required_nominal(clause.subject))
                self.notes.kinds.add("infinitive")

    def _infinitive(self, subject: structure.Nominal) -> structure.Clause:
        for _ in range(20):
            verb = BY_FRAME["t"](self.rng)
            perceived = any(piece.endswith("见") for piece in verb.zh)  # people do not decide to see
            if "person" in verb.subjects and not verb.stative and not perceived:
                break
        self.notes.verbs.append(verb)
        inner = structure.Clause(None, verb, "present", agreement=subject)
        inner.object = self._object(verb, None)
        return inner

    def _object(self, verb: Verb, about: structure.Clause | None) -> structure.Nominal:
        pronominal = verb.pronominal and not verb.idiom
        if pronominal and about is not None and about.object is not None and self.chance(0.35):
            noun = about.object.noun if isinstance(about.object, structure.NounPhrase) else None
            if noun is not None and noun in OBJECTS[verb].items:
                self.notes.kinds.add("coreference")
                return self.pronoun_for(about.object)
        if "person" in verb.objects and self.chance(0.3):
            return self.name()
        if "person" in verb.objects and pronominal and self.chance(0.15):
            gender = self.rng.choice("mf")
            return structure.Pronoun(self.rng.choice((THIRD, THEY)), gender, gender, gender if gender == "f" else "m")
        if verb.frame == "g":
            return self.town() if self.chance(0.35) else self.ground_noun(self.object_noun(verb))
        return self.noun_phrase(self.object_noun(verb), relative=True)

    def _description(self, tense: structure.Tense, about: structure.Clause | None) -> structure.Clause:
        """Derive a clause with a predicate adjective."""
        if (
            about is not None
            and about.object is not None
            and self.chance(0.5)
            and isinstance(about.object, structure.NounPhrase)
        ):
            noun, taken_up = about.object.noun, self.pronoun_for(about.object)
        else:
            noun, taken_up = PEOPLE(self.rng) if self.chance(0.4) else ANYTHING(self.rng), None
        fitting = ADJECTIVES_OF[noun]
        if not fitting:
            noun, taken_up = PEOPLE(self.rng), None
            fitting = ADJECTIVES_OF[noun]
        subject: structure.Nominal
        if taken_up is None:
            subject = self.noun_phrase(noun, relative=True)
            subject.adjectives = ()
        else:
            subject = taken_up
            self.notes.kinds.add("coreference")
        clause = structure.Clause(subject, None, tense, predicate=self.rng.choice(fitting))
        clause.negation = "not" if self.chance(0.15) else ""
        self.notes.kinds.add("predicate")
        return clause

    def _negate(self, clause: structure.Clause, verb: Verb) -> None:
        draw = self.rng.random()
        if draw > 0.15 or clause.infinitive or clause.complement or verb.en.fixed:
            return
        if isinstance(clause.subject, structure.NounPhrase) and clause.subject.determiner == "every":
            return  # "every man did not" can be read in two ways
        negation: structure.Negation = "never" if draw < 0.03 else "not"
        clause.negation = negation
        self.notes.kinds.add("negation")
        phrase = clause.object
        if not isinstance(phrase, structure.NounPhrase):
            return
        absorbed = negation == "not" and verb.fr.direct and not verb.de.preposition  # kein, pas de
        if absorbed and phrase.determiner == "a" and not phrase.relative:
            phrase.determiner = "no"
        elif phrase.determiner in ("a", "some", "many", "number", "every"):
            phrase.determiner, phrase.number = "the", None

    def _modality(self, clause: structure.Clause, verb: Verb) -> None:
        if verb.stative or verb.frame in "cqv" or clause.tense == "future" or not self.chance(0.14):
            return
        modal = self.rng.choice(MODALS)
        if (clause.negation and modal == "must") or (modal == "should" and clause.tense == "past"):
            return
        if not self._human(clause):
            return
        clause.modal = modal
        self.notes.kinds.add("modal")

    def _human(self, clause: structure.Clause) -> bool:
        return (
            isinstance(clause.subject, structure.Pronoun | structure.Name)
            or required_nominal(clause.subject).gender != "n"
        )

    def _adjuncts(self, clause: structure.Clause, verb: Verb, plain: bool, question: structure.Question) -> None:
        """Add adverbs of time, frequency and manner, places and companions."""
        if verb.frame in "cqv":
            return
        eventful = not verb.stative and not verb.idiom
        timeless = verb.stative or question in ("where", "when")
        if self.chance(0.28) and not timeless and clause.negation != "never":
            clause.time = self.rng.choice(TIME[clause.tense])
            clause.time_first = not plain and self.chance(0.35)
        elif not (verb.stative or clause.negation or clause.modal or clause.tense == "future") and self.chance(0.1):
            clause.frequency = self.rng.choice(FREQUENCY)
        if not eventful:
            return
        human = self._human(clause)
        if human and verb.frame in "td" and self.chance(0.07) and not clause.negation:
            clause.manner = self.rng.choice(MANNER)
        if human and verb.frame in "ti" and self.chance(0.05) and not clause.negation:
            clause.companion = self.name() if self.chance(0.5) else self.noun_phrase(PEOPLE(self.rng), bare=True)
        if verb.placeless:
            return
        if verb.frame in "ti" and self.chance(0.2) and question != "where" and not self._placed(clause.object):
            clause.place = self.ground()

    def _placed(self, nominal: structure.Nominal | None) -> bool:
        return isinstance(nominal, structure.NounPhrase) and (
            nominal.place is not None or "place" in nominal.noun.classes
        )

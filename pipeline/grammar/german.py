"""German: verb-second main clauses, verb-final subordinate clauses, agreement in gender, case and number."""

from pipeline.grammar import structure
from pipeline.grammar.lexicon.tables import german_forms
from pipeline.grammar.structure import THIRD, required

NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)
COLUMN = {"m": 0, "f": 1, "n": 2}
PLURAL = 3

WHO = (("der", "die", "das", "die"), ("den", "die", "das", "die"), ("dem", "der", "dem", "denen"))

PRONOUNS = {0: ("ich", "mich", "mir"), 1: ("du", "dich", "dir"), 3: ("wir", "uns", "uns"), 4: ("sie", "sie", "ihnen")}
HE_SHE_IT = {"m": ("er", "ihn", "ihm"), "f": ("sie", "sie", "ihr"), "n": ("es", "es", "ihm")}
REFLEXIVE = ("mich", "dich", "sich", "uns", "sich")
CONTRACTIONS = {
    ("in", "dem"): "im",
    ("an", "dem"): "am",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("von", "dem"): "vom",
}
PREPOSITIONS = {"in": "in", "on": "auf", "at": "an", "shore": "an"}
HABEN, WERDEN = german_forms("haben")[0], german_forms("werden")[0]
SEIN, WAR, _ = german_forms("sein")
MODALS = {"want": "wollen", "can": "können", "must": "müssen", "should": "sollen"}
QUESTION_WORDS = {"yes": "", "where": "wo", "when": "wann", "why": "warum"}


Endings = tuple[tuple[str, str, str, str], ...]  # [case][gender or plural]

THE = (
    ("der", "die", "das", "die"),
    ("den", "die", "das", "die"),
    ("dem", "der", "dem", "den"),
    ("des", "der", "des", "der"),
)
STRONG_ARTICLE = (("er", "e", "es", "e"), ("en", "e", "es", "e"), ("em", "er", "em", "en"), ("es", "er", "es", "er"))
EIN = (("", "e", "", "e"), ("en", "e", "", "e"), ("em", "er", "em", "en"), ("es", "er", "es", "er"))
WEAK = (("e", "e", "e", "en"), ("en", "e", "e", "en"), ("en", "en", "en", "en"), ("en", "en", "en", "en"))
MIXED = (("er", "e", "es", "en"), ("en", "e", "es", "en"), ("en", "en", "en", "en"), ("en", "en", "en", "en"))
STRONG = (("er", "e", "es", "e"), ("en", "e", "es", "e"), ("em", "er", "em", "en"), ("en", "er", "en", "er"))
OWN = {0: "mein", 1: "dein", 3: "unser", 4: "ihr"}
DECLINED = {"this": ("dies", WEAK), "every": ("jed", WEAK), "some": ("einig", STRONG), "many": ("viel", STRONG)}
"""Stems that end like strong adjectives, and what adjectives end in behind them."""


def sentence(utterance: structure.Utterance) -> list[str]:
    """Return the words of a sentence, with punctuation marks as words and without the first capital."""
    words = utterance.opening("de")
    if not utterance.question:
        return [*words, *_statement(utterance.statement), "."]
    asked = QUESTION_WORDS[utterance.question].split()
    return [*words, *asked, *_verb_second(utterance.statement.main), "?"]


def _statement(statement: structure.Statement, first: tuple[str, ...] = ()) -> list[str]:
    """Return the words of a statement; `first` precedes the finite verb (deshalb)."""
    if statement.subordinate is not None and statement.subordinate_first:
        words = [*_subordinate(statement), ",", *_verb_second(statement.main)]
    else:
        opener = first or (statement.opener.de if statement.opener else ())
        words = main_clause(statement.main, opener)
        if statement.subordinate is not None:
            words += [",", *_subordinate(statement)]
    if statement.rest is not None:
        joint = required(statement.coordinator).de
        if joint == ("deshalb",):
            words += [",", *_statement(statement.rest, joint)]
        else:
            words += [",", *joint, *_statement(statement.rest)]
    return words


def _subordinate(statement: structure.Statement) -> list[str]:
    return [*required(statement.subordinator).de, *verb_last(required(statement.subordinate))]


def main_clause(c: structure.Clause, first: tuple[str, ...] = ()) -> list[str]:
    """Return a verb-second clause after the words `first`: by default a fronted adverb of time, or the subject."""
    if first:
        return [*first, *_verb_second(c)]
    if c.time and c.time_first:
        return [*c.time.de, *_verb_second(c, time_done=True)]
    return [*_subject(c), *_verb_second(c, subject_done=True)]


def _verb_second(c: structure.Clause, subject_done: bool = False, time_done: bool = False) -> list[str]:
    """Return a main clause from its finite verb on."""
    finite, particle, closing = _verb_bracket(c)
    subject = [] if subject_done else _subject(c)
    middle = _middle(c, time_done)
    if subject and c.verb and c.verb.de.reflexive and not isinstance(c.subject, structure.Pronoun):  # dreht sich Anna
        subject, middle = [middle[0], *subject], middle[1:]
    return [finite, *subject, *middle, *closing, *particle, *_after_field(c)]


def verb_last(c: structure.Clause) -> list[str]:
    """Return a clause with the finite verb at its end."""
    finite, particle, closing = _verb_bracket(c)
    return [*_subject(c), *_middle(c), *closing, "".join([*particle, finite]), *_after_field(c)]


def closing_words(c: structure.Clause) -> str:
    """Return the words that close this clause when it is verb-final: `gesehen hat`, `ankommt`."""
    finite, particle, closing = _verb_bracket(c)
    return " ".join([*closing, "".join([*particle, finite])])


def _verb_bracket(c: structure.Clause) -> tuple[str, list[str], list[str]]:
    """Return the finite verb, its separated prefix, and the words before the prefix that close the bracket."""
    person = c.person
    if c.verb is None:
        return _copula(c, person)
    verb = c.verb.de
    if c.modal:
        present, past, _ = german_forms(MODALS[c.modal])
        forms = past if c.tense == "past" or c.modal == "should" else present
        return forms[person], [], [verb.infinitive]
    if c.tense == "future":
        return WERDEN[person], [], [verb.infinitive]
    if c.tense == "present":
        return verb.present[person], [verb.prefix] if verb.prefix else [], []
    if c.verb.stative:
        return verb.past[person], [verb.prefix] if verb.prefix else [], []
    return (SEIN if verb.with_sein else HABEN)[person], [], [verb.participle]


def _copula(c: structure.Clause, person: int) -> tuple[str, list[str], list[str]]:
    if c.exists:
        finite = {"past": "gab", "present": "gibt", "future": "wird"}[c.tense]
        return finite, [], ["geben"] if c.tense == "future" else []
    forms = {"past": WAR, "present": SEIN, "future": WERDEN}[c.tense]
    return forms[person], [], ["sein"] if c.tense == "future" else []


def _infinitive(c: structure.Clause) -> list[str]:
    return [*_middle(c), *required(c.verb).de.zu_infinitive]


def _subject(c: structure.Clause) -> list[str]:
    if c.exists:
        return ["es"]
    return [] if c.subject is None else noun_phrase(c.subject, NOMINATIVE)


def _middle(c: structure.Clause, time_done: bool = False) -> list[str]:
    """Return the middle field: pronouns, time, dative, accusative, negation, manner, place, prepositional object."""
    words: list[str] = []
    verb = c.verb.de if c.verb else None
    if verb and verb.reflexive:
        words.append(REFLEXIVE[c.person])
    preposition = verb.preposition if verb else ""
    case = verb.case if verb else ACCUSATIVE
    light = c.object if isinstance(c.object, structure.Pronoun) and not preposition else None
    if light:
        words += noun_phrase(light, case)
    if c.time and not time_done:
        words += c.time.de
    if c.frequency:
        words += c.frequency.de
    if c.recipient is not None:
        words += noun_phrase(c.recipient, DATIVE)
    manner = list(c.manner.de) if c.manner else []
    if c.object is not None and not light and not preposition:
        phrase = noun_phrase(c.object, case)
        words += [*manner, *phrase] if _is_indefinite(c.object) else [*phrase, *_negation(c), *manner]
    else:
        words += [*_negation(c), *manner]
    if c.companion is not None:
        words += ["mit", *noun_phrase(c.companion, DATIVE)]
    if c.place:
        words += place(c.place)
    if c.object is not None and preposition:
        words += _with_preposition(_goal(preposition, c.object), noun_phrase(c.object, case))
    if c.predicate is not None:
        words.append(c.predicate.de)
    if verb:
        words += verb.fixed
    return words


def _is_indefinite(nominal: structure.Nominal) -> bool:
    """Return whether an object is indefinite; it then follows adverbs of manner and precedes no nicht."""
    return isinstance(nominal, structure.NounPhrase) and nominal.determiner in ("a", "no", "number", "some", "many")


def _goal(preposition: str, ground: structure.Nominal) -> str:
    """Replace zu by nach before towns."""
    return "nach" if preposition == "zu" and isinstance(ground, structure.Name) and ground.town else preposition


def _negation(c: structure.Clause) -> list[str]:
    if c.negation == "never":
        return ["nie"]
    absorbed = isinstance(c.object, structure.NounPhrase) and c.object.determiner == "no"
    return ["nicht"] if c.negation and not absorbed else []


def _after_field(c: structure.Clause) -> list[str]:
    """Return the words after the closing bracket: a clause with dass or ob, or an infinitive."""
    if c.complement:
        return [",", "ob" if c.asks_whether else "dass", *verb_last(c.complement)]
    return [",", *_infinitive(c.infinitive)] if c.infinitive else []


def place(p: structure.Place) -> list[str]:
    """Return the words of a place."""
    return _with_preposition(PREPOSITIONS[p.location], noun_phrase(p.ground, DATIVE))


def _with_preposition(preposition: str, words: list[str]) -> list[str]:
    joined = CONTRACTIONS.get((preposition, words[0]))
    return [joined, *words[1:]] if joined else [preposition, *words]


def noun_phrase(nominal: structure.Nominal, case: int) -> list[str]:
    """Return the words of a noun phrase."""
    match nominal:
        case structure.Pronoun():
            return [pronoun(nominal, case)]
        case structure.Name():
            title = {"": [], "Mr": ["Herr" if case == NOMINATIVE else "Herrn"], "Mrs": ["Frau"]}[nominal.title]
            return [*title, *nominal.text.split()]
        case structure.Pair():
            return [*noun_phrase(nominal.first, case), "und", *noun_phrase(nominal.second, case)]
        case _:
            return _full_noun_phrase(nominal, case)


def pronoun(p: structure.Pronoun, case: int) -> str:
    """Return a pronoun in a case."""
    return (HE_SHE_IT[p.de_gender] if p.person == THIRD else PRONOUNS[p.person])[case]


def _full_noun_phrase(np: structure.NounPhrase, case: int) -> list[str]:
    column = PLURAL if np.plural else COLUMN[np.noun.de_gender]
    words, endings = _determiner(np, case, column)
    ending = endings[case][column]
    words = [*words, *(adjective.de_stem + ending for adjective in np.adjectives), np.noun.de[case][np.plural]]
    if np.genitive is not None:
        if isinstance(np.genitive, structure.Name):
            words += ["von", *noun_phrase(np.genitive, DATIVE)]
        else:
            words += noun_phrase(np.genitive, GENITIVE)
    if np.place:
        words += place(np.place)
    if np.relative:
        words += [",", *_relative(np.relative, column), ","]
    return words


def _determiner(np: structure.NounPhrase, case: int, column: int) -> tuple[list[str], Endings]:
    """Return the determiner and the table of adjective endings that it requires."""
    match np.determiner:
        case "the":
            return [THE[case][column]], WEAK
        case "a" if not np.plural:
            return ["ein" + EIN[case][column]], MIXED
        case "a" | "bare":
            return [], STRONG
        case "no":
            return ["kein" + EIN[case][column]], MIXED
        case "my":
            return [_possessive(required(np.owner), EIN[case][column])], MIXED
        case "number":
            return [required(np.number).de[0]], STRONG
        case name:
            stem, endings = DECLINED[name]
            return [stem + STRONG_ARTICLE[case][column]], endings


def _possessive(owner: structure.Pronoun, ending: str) -> str:
    if owner.person == THIRD:
        return ("ihr" if owner.de_gender == "f" else "sein") + ending
    return OWN[owner.person] + ending


def _relative(relative: structure.Relative, column: int) -> list[str]:
    c = relative.clause
    case = NOMINATIVE if relative.role == "subject" else required(c.verb).de.case
    return [WHO[case][column], *verb_last(c)]

"""German verbs: the finite one of a clause, and what closes the bracket that it opens."""

from pipeline.grammar.lexicon.conjugation import german_forms
from pipeline.grammar.structure import Clause

HABEN, WERDEN = german_forms("haben")[0], german_forms("werden")[0]
SEIN, WAR, _ = german_forms("sein")
MODALS = {"want": "wollen", "can": "können", "must": "müssen", "should": "sollen"}


def verb_bracket(c: Clause) -> tuple[str, list[str], list[str]]:
    """The finite verb, its separated prefix, and the words of the closing bracket before it."""
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


def _copula(c: Clause, person: int) -> tuple[str, list[str], list[str]]:
    if c.exists:
        finite = {"past": "gab", "present": "gibt", "future": "wird"}[c.tense]
        return finite, [], ["geben"] if c.tense == "future" else []
    forms = {"past": WAR, "present": SEIN, "future": WERDEN}[c.tense]
    return forms[person], [], ["sein"] if c.tense == "future" else []

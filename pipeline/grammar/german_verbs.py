"""German verbs: the finite one of a clause, and what closes the bracket that it opens."""

from pipeline.grammar.structure import Clause

HABEN = ("habe", "hast", "hat", "haben", "haben")
SEIN = ("bin", "bist", "ist", "sind", "sind")
WAR = ("war", "warst", "war", "waren", "waren")
WERDEN = ("werde", "wirst", "wird", "werden", "werden")
MODALS = {
    "want": (("will", "willst", "will", "wollen", "wollen"), "wollte"),
    "can": (("kann", "kannst", "kann", "können", "können"), "konnte"),
    "must": (("muss", "musst", "muss", "müssen", "müssen"), "musste"),
    "should": (("sollte", "solltest", "sollte", "sollten", "sollten"), "sollte"),
}


def verb_bracket(c: Clause) -> tuple[str, list[str], list[str]]:
    """The finite verb, its separated prefix, and the words of the closing bracket before it."""
    person = c.person
    if c.verb is None:
        return _copula(c, person)
    verb = c.verb.de
    if c.modal:
        present, past = MODALS[c.modal]
        finite = _past(past, person) if c.tense == "past" else present[person]
        return finite, [], [verb.infinitive]
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


def _past(third: str, person: int) -> str:
    return third + ("", "st", "", "n", "n")[person]

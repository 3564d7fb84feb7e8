"""French verbs: the finite one of a clause, and the participle with what it agrees with."""

from pipeline.grammar.lexicon.conjugation import french_forms
from pipeline.grammar.structure import Clause, Modal, Nominal, Pronoun, Tense, required_nominal
from pipeline.grammar.words import FrenchVerb


def auxiliary(infinitive: str, subjunctive: str) -> dict[str, tuple[str, ...]]:
    """Its forms by tense or mood."""
    present, future, imperfect, _ = french_forms(infinitive)
    forms = {"present": present, "future": future, "past": imperfect, "pluperfect": imperfect}
    return forms | {"subjunctive": tuple(subjunctive.split())}


AVOIR, ETRE = auxiliary("avoir", "aie aies ait ayons aient"), auxiliary("être", "sois sois soit soyons soient")
IL_Y_A = {"present": "a", "past": "avait", "future": "aura"}
MODALS = {"want": "vouloir", "can": "pouvoir", "must": "devoir"}
SHOULD = ("devrais", "devrais", "devrait", "devrions", "devraient")


def verb_forms(c: Clause, mood: str) -> tuple[str, list[str]]:
    """The finite verb and what closes the group."""
    person = c.person
    if c.verb is None:
        return _copula(c, person, mood)
    verb = c.verb.fr
    if c.modal:
        return _modal(c.modal, c.tense)[person], [verb.infinitive]
    if c.tense == "future":
        return verb.future[person], []
    if c.tense == "present":
        return verb.present[person], []
    if mood == "imperfect" or (c.verb.stative and mood != "subjunctive"):
        return verb.imperfect[person], []
    auxiliary = ETRE if verb.with_etre else AVOIR
    return auxiliary["present" if mood == "indicative" else mood][person], [_participle(c, verb)]


def _modal(modal: Modal, tense: Tense) -> tuple[str, ...]:
    if modal == "should":
        return SHOULD
    present, _, imperfect, _ = french_forms(MODALS[modal])
    return present if tense == "present" else imperfect


def _copula(c: Clause, person: int, mood: str) -> tuple[str, list[str]]:
    if c.exists:
        return IL_Y_A[c.tense], []
    if mood == "subjunctive":
        return AVOIR["subjunctive"][person], ["été"]
    return ETRE[c.tense][person], []


def _participle(c: Clause, verb: FrenchVerb) -> str:
    """Agrees with the subject of être, or with a direct object that precedes."""
    if verb.with_etre:
        return agree(verb.participle, required_nominal(c.agent))
    if isinstance(c.object, Pronoun) and verb.direct:
        return agree(verb.participle, c.object)
    return verb.participle


def agree(participle: str, nominal: Nominal) -> str:
    feminine = participle + ("e" if nominal.fr_gender == "f" else "")
    return feminine + ("s" if nominal.plural and not feminine.endswith("s") else "")

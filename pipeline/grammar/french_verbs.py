"""French verbs: the finite one of a clause, and the participle with what it agrees with."""

from pipeline.grammar.structure import Clause, Nominal, Pronoun, required_nominal
from pipeline.grammar.words import FrenchVerb

AVOIR = {
    "present": ("ai", "as", "a", "avons", "ont"),
    "subjunctive": ("aie", "aies", "ait", "ayons", "aient"),
    "pluperfect": ("avais", "avais", "avait", "avions", "avaient"),
}
ETRE = {
    "present": ("suis", "es", "est", "sommes", "sont"),
    "subjunctive": ("sois", "sois", "soit", "soyons", "soient"),
    "past": ("étais", "étais", "était", "étions", "étaient"),
    "pluperfect": ("étais", "étais", "était", "étions", "étaient"),
    "future": ("serai", "seras", "sera", "serons", "seront"),
}
IL_Y_A = {"present": "a", "past": "avait", "future": "aura"}
MODALS = {
    "want": (("veux", "veux", "veut", "voulons", "veulent"), "voul"),
    "can": (("peux", "peux", "peut", "pouvons", "peuvent"), "pouv"),
    "must": (("dois", "dois", "doit", "devons", "doivent"), "dev"),
    "should": (("devrais", "devrais", "devrait", "devrions", "devraient"), ""),
}
IMPERFECT = ("ais", "ais", "ait", "ions", "aient")


def verb_forms(c: Clause, mood: str) -> tuple[str, list[str]]:
    """The finite verb and what closes the group."""
    person = c.person
    if c.verb is None:
        return _copula(c, person, mood)
    verb = c.verb.fr
    if c.modal:
        present, stem = MODALS[c.modal]
        finite = present[person] if c.tense == "present" or not stem else stem + IMPERFECT[person]
        return finite, [verb.infinitive]
    if c.tense == "future":
        return verb.future[person], []
    if c.tense == "present":
        return verb.present[person], []
    if mood == "imperfect" or (c.verb.stative and mood != "subjunctive"):
        return verb.imperfect[person], []
    auxiliary = ETRE if verb.with_etre else AVOIR
    return auxiliary["present" if mood == "indicative" else mood][person], [_participle(c, verb)]


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

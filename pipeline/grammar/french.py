"""French: agreement of adjectives and participles, position of adjectives, clitics, elision and contraction."""

from pipeline.grammar import structure
from pipeline.grammar.lexicon.tables import french_forms
from pipeline.grammar.structure import ME, THEY, THIRD, WE, YOU, is_heavy, required, required_nominal
from pipeline.grammar.words import Adjective, FrenchVerb

VOWELS = frozenset("aeiouhyàâéèêëîïôùûœAEIOUÉÈÊÎÔ")
ASPIRATED = frozenset({"héros", "hé", "haut", "haute", "hauts", "hautes", "huit", "onze"})
ELIDED = frozenset({"le", "la", "de", "que", "ne", "je", "me", "te", "se", "puisque"})
CONTRACTIONS = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}

MOODS: dict[tuple[str, ...], str] = {("bien", "que"): "subjunctive", ("pendant", "que"): "imperfect"}  # of past tenses
ARTICLES = {"the": ("le", "la", "les"), "a": ("un", "une", "des"), "this": ("ce", "cette", "ces")}
DETERMINERS = {"no": "de", "bare": "", "some": "quelques", "many": "beaucoup de", "every": "chaque"}
REFLEXIVE = ("me", "te", "se", "nous", "se")
SUBJECTS = {0: "je", 1: "tu", 3: "nous"}
STRESSED = {0: "moi", 1: "toi", 3: "nous"}
PREPOSITIONS = {"in": "dans", "on": "sur", "at": "à", "shore": "sur"}
QUESTION_WORDS = {"yes": "", "where": "où", "when": "quand", "why": "pourquoi"}


def _auxiliary(infinitive: str, subjunctive: str) -> dict[str, tuple[str, ...]]:
    """Its forms by tense or mood."""
    present, future, imperfect, _ = french_forms(infinitive)
    forms = {"present": present, "future": future, "past": imperfect, "pluperfect": imperfect}
    return forms | {"subjunctive": tuple(subjunctive.split())}


AVOIR, ETRE = _auxiliary("avoir", "aie aies ait ayons aient"), _auxiliary("être", "sois sois soit soyons soient")
IL_Y_A = {"present": "a", "past": "avait", "future": "aura"}
MODALS = {"want": "vouloir", "can": "pouvoir", "must": "devoir"}
SHOULD = ("devrais", "devrais", "devrait", "devrions", "devraient")


def sentence(utterance: structure.Utterance) -> list[str]:
    """Return the words of a sentence before elision, with punctuation marks as words."""
    words = utterance.opening("fr")
    if not utterance.question:
        return [*words, *_statement(utterance.statement), "."]
    asked = QUESTION_WORDS[utterance.question].split()
    return [*words, *asked, "est-ce", "que", *clause(utterance.statement.main), "?"]


def elide(words: list[str]) -> list[str]:
    """Elide words: `le ami` -> `l'`, `ami`; `si il` -> `s'`, `il`. A word that ends in an apostrophe joins the next."""
    result = list(words)
    for i in range(len(words) - 1):
        word, following = words[i], words[i + 1]
        if word in ELIDED:
            if _starts_with_vowel(following):
                result[i] = word[:-1] + "'"
        elif word == "si" and following in ("il", "ils"):
            result[i] = "s'"
    return result


def _starts_with_vowel(word: str) -> bool:
    return word[0] in VOWELS and word not in ASPIRATED and word[0] not in "yY"


def _statement(statement: structure.Statement) -> list[str]:
    words = clause(statement.main)
    if statement.opener:
        words = [*statement.opener.fr, ",", *words]
    if statement.subordinate is not None:
        conjunction = required(statement.subordinator).fr
        mood = MOODS.get(conjunction, "indicative")
        subordinate = [*conjunction, *clause(statement.subordinate, mood)]
        words = [*subordinate, ",", *words] if statement.subordinate_first else [*words, *subordinate]
    if statement.rest is not None:
        joint = required(statement.coordinator).fr
        comma = [] if joint == ("et",) and not statement.subordinate else [","]
        words += [*comma, *joint, *_statement(statement.rest)]
    return words


def clause(c: structure.Clause, mood: str = "indicative") -> list[str]:
    """Return the words of a clause: subject, verb and the rest, after a fronted adverb of time.

    Args:
        c: The clause.
        mood: indicative, imperfect, subjunctive or pluperfect; applies to the past tense.
    """
    front = [*c.time.fr, ","] if c.time and c.time_first else []
    if c.exists:
        subject = ["il"]
    elif c.subject is None:
        subject = []
    else:
        subject = noun_phrase(c.subject)
    return [*front, *subject, *_verb_group(c, mood), *_complements(c)]


def _verb_group(c: structure.Clause, mood: str) -> list[str]:
    """Return negation, clitics, finite verb, adverb, participle or infinitive."""
    finite, closing = _verb_forms(c, mood)
    before = _clitics(c)
    second = {"": [], "not": ["pas"], "never": ["jamais"]}[c.negation]
    if c.modal:  # the clitics go with the infinitive
        inner = [*before, *closing]
        before, closing = [], inner
    if c.exists:
        before = ["y"]
    negation = ["ne"] if c.negation else []
    adverb = c.frequency.fr if c.frequency else ()
    return [*negation, *before, finite, *second, *adverb, *closing]


def _verb_forms(c: structure.Clause, mood: str) -> tuple[str, list[str]]:
    """Return the finite verb and the words that close the group."""
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


def _modal(modal: structure.Modal, tense: structure.Tense) -> tuple[str, ...]:
    if modal == "should":
        return SHOULD
    present, _, imperfect, _ = french_forms(MODALS[modal])
    return present if tense == "present" else imperfect


def _copula(c: structure.Clause, person: int, mood: str) -> tuple[str, list[str]]:
    if c.exists:
        return IL_Y_A[c.tense], []
    if mood == "subjunctive":
        return AVOIR["subjunctive"][person], ["été"]
    return ETRE[c.tense][person], []


def _participle(c: structure.Clause, verb: FrenchVerb) -> str:
    """Agrees with the subject of être, or with a direct object that precedes."""
    if verb.with_etre:
        return _agree(verb.participle, required_nominal(c.agent))
    if isinstance(c.object, structure.Pronoun) and verb.direct:
        return _agree(verb.participle, c.object)
    return verb.participle


def _agree(participle: str, nominal: structure.Nominal) -> str:
    feminine = participle + ("e" if nominal.fr_gender == "f" else "")
    return feminine + ("s" if nominal.plural and not feminine.endswith("s") else "")


def _clitics(c: structure.Clause) -> list[str]:
    words = []
    if c.verb and c.verb.fr.reflexive:
        words.append(REFLEXIVE[c.person])
    if isinstance(c.object, structure.Pronoun) and not c.exists:
        words.append(_object_clitic(c.object))
    return words


def _object_clitic(p: structure.Pronoun) -> str:
    if p.person == THIRD:
        return "la" if p.fr_gender == "f" else "le"
    return {ME: "me", YOU: "te", WE: "nous", THEY: "les"}[p.person]


def _complements(c: structure.Clause) -> list[str]:
    words: list[str] = []
    verb = c.verb.fr if c.verb else None
    after = list(verb.fixed) if verb else []
    preposition = verb.preposition if verb else ""
    if c.object is not None and not isinstance(c.object, structure.Pronoun):
        phrase = noun_phrase(c.object)
        after = [*after, *with_preposition(preposition, phrase)] if preposition else [*phrase, *after]
    to = [] if c.recipient is None else with_preposition("à", noun_phrase(c.recipient))
    words += [*to, *after] if is_heavy(c.object) else [*after, *to]
    if c.predicate is not None:
        agent = required_nominal(c.agent)
        words.append(c.predicate.fr[agent.fr_gender, agent.plural])
    if c.manner:
        words += c.manner.fr
    if c.companion is not None:
        words += ["avec", *noun_phrase(c.companion, stressed=True)]
    if c.place:
        words += place(c.place)
    if c.time and not c.time_first:
        words += c.time.fr
    if c.complement:
        mood = "pluperfect" if c.tense == "past" and c.complement.tense == "past" else "indicative"
        words += ["si" if c.asks_whether else "que", *clause(c.complement, mood)]
    if c.infinitive:
        words += _infinitive(c.infinitive, preposition)
    return words


def _infinitive(c: structure.Clause, preposition: str) -> list[str]:
    return [*([preposition] if preposition else []), *_clitics(c), required(c.verb).fr.infinitive, *_complements(c)]


def place(p: structure.Place) -> list[str]:
    """Return the words of a place."""
    if isinstance(p.ground, structure.Name):
        return ["à", *p.ground.text.split()]
    return with_preposition(PREPOSITIONS[p.location], noun_phrase(p.ground))


def with_preposition(preposition: str, words: list[str]) -> list[str]:
    """Return `words` after a `preposition`, contracted with an article: `de le` -> `du`, but `de l'ami`."""
    if preposition == "de" and words[0] in ("des", "de"):  # de + des is de
        return ["de", *words[1:]]
    joined = CONTRACTIONS.get((preposition, words[0]))
    if joined and not (words[0] == "le" and _starts_with_vowel(words[1])):
        return [joined, *words[1:]]
    return [preposition, *words]


def noun_phrase(nominal: structure.Nominal, stressed: bool = False) -> list[str]:
    """Return the words of a noun phrase; after prepositions, pronouns are stressed."""
    match nominal:
        case structure.Pronoun():
            return [pronoun(nominal, stressed)]
        case structure.Name():
            title = {"": [], "Mr": ["monsieur"], "Mrs": ["madame"]}[nominal.title]
            return [*title, *nominal.text.split()]
        case structure.Pair():
            return [*noun_phrase(nominal.first, True), "et", *noun_phrase(nominal.second, True)]
        case _:
            return _full_noun_phrase(nominal)


def pronoun(p: structure.Pronoun, stressed: bool = False) -> str:
    """Return a subject pronoun or a stressed one."""
    feminine = p.fr_gender == "f"
    if p.person == THIRD:
        return "elle" if feminine else "lui" if stressed else "il"
    if p.person == THEY:
        return "elles" if feminine else "eux" if stressed else "ils"
    return (STRESSED if stressed else SUBJECTS)[p.person]


def _full_noun_phrase(np: structure.NounPhrase) -> list[str]:
    noun = np.noun
    before = [a for a in np.adjectives if a.fr_before_noun]
    after = [a for a in np.adjectives if not a.fr_before_noun]
    core = noun.fr[np.plural].split()
    for adjective in reversed(before):
        core = [*_adjective(adjective, np, core[0]), *core]
    for adjective in after:
        core += _adjective(adjective, np, "")
    words = [*_determiner(np, core[0], bool(before)), *core]
    if np.genitive is not None:
        words += with_preposition("de", noun_phrase(np.genitive))
    if np.place:
        words += place(np.place)
    if np.relative:
        words += _relative(np, np.relative)
    return words


def _adjective(adjective: Adjective, np: structure.NounPhrase, following: str) -> list[str]:
    gender = np.noun.fr_gender
    if gender == "m" and not np.plural and following and _starts_with_vowel(following):
        return [adjective.fr_before_vowel]
    return adjective.fr[gender, np.plural].split()


def _determiner(np: structure.NounPhrase, following: str, adjective_first: bool) -> list[str]:
    match np.determiner:
        case "a" if np.plural and adjective_first:
            return ["de"]
        case "this" if np.noun.fr_gender == "m" and not np.plural and _starts_with_vowel(following):
            return ["cet"]
        case "the" | "a" | "this" as name:
            masculine, feminine, plural = ARTICLES[name]
            return [plural if np.plural else feminine if np.noun.fr_gender == "f" else masculine]
        case "my":
            return [_possessive(np, following)]
        case "number":
            return list(required(np.number).fr)
        case name:
            return DETERMINERS[name].split()


def _possessive(np: structure.NounPhrase, following: str) -> str:
    person = required(np.owner).person
    if person in (WE, THEY):
        singular, plural = {WE: ("notre", "nos"), THEY: ("leur", "leurs")}[person]
        return plural if np.plural else singular
    letter = {ME: "m", YOU: "t", THIRD: "s"}[person]
    if np.plural:
        return letter + "es"
    return letter + ("a" if np.noun.fr_gender == "f" and not _starts_with_vowel(following) else "on")


def _relative(np: structure.NounPhrase, relative: structure.Relative) -> list[str]:
    c = relative.clause
    if relative.role == "subject":
        return ["qui", *clause(c)]
    words = clause(c)
    verb = required(c.verb)
    if c.tense == "past" and not verb.stative and not c.modal:  # the preceding object agrees with the participle
        agreed = _agree(verb.fr.participle, np)
        words = [agreed if word == verb.fr.participle else word for word in words]
    return ["que", *words]

"""Chinese: no articles or inflection; measure words, aspect particles, clauses and places before what they modify."""

from pipeline.grammar import structure
from pipeline.grammar.structure import ME, THEY, THIRD, WE, YOU, required, required_nominal
from pipeline.grammar.words import Verb

LOCALISERS = {"in": ["里"], "on": ["上"], "at": [], "shore": ["上"]}
MODALS = {"want": "想", "can": "能", "must": "必须", "should": "应该"}
PRONOUNS = {ME: "我", YOU: "你", WE: "我们"}
HE_SHE_IT = {"m": "他", "f": "她", "n": "它"}
QUESTION_WORDS = {"when": "什么 时候", "why": "为什么"}
PARTICLES = frozenset(("的", "了", "吗", "在", "和", "一起", "是", "是否", "有", "会", "不", "没有", "都", "就", "很"))
QUANTITIES = frozenset(("一", "一些", "这", "这些", "几", "很多", "每"))
FUNCTION_WORDS = PARTICLES | QUANTITIES | {*MODALS.values(), *PRONOUNS.values(), *HE_SHE_IT.values(), "他们", "它们"}
"""Words that the rules below add to those of the lexicon."""
RESULTS = frozenset("见到住走掉破过得达")  # verbs that end so name a result: 没有看见, never 不看见


def sentence(utterance: structure.Utterance) -> list[str]:
    """Return the words of a sentence, with punctuation marks as words."""
    words = utterance.opening("zh", "，")
    if not utterance.question:
        return [*words, *_statement(utterance.statement), "。"]
    main = utterance.statement.main
    if utterance.question == "yes":
        return [*words, *clause(main), "吗", "？"]
    if utterance.question == "where":
        return [*words, *clause(main, where=True), "？"]
    return [*words, *clause(main, QUESTION_WORDS[utterance.question].split()), "？"]


def _statement(statement: structure.Statement) -> list[str]:
    words = clause(statement.main)
    if statement.subordinate is not None:
        words = _with_subordinate(statement, words)
    if statement.opener:
        words = [*statement.opener.zh, "，", *words]
    if statement.rest is not None:
        joint = [word for word in required(statement.coordinator).zh if word != "_"]
        words += ["，", *joint, *_statement(statement.rest)]
    return words


def _with_subordinate(statement: structure.Statement, main: list[str]) -> list[str]:
    """Put the subordinate clause first; 就 follows the subject of the main clause, other openers precede it."""
    conjunction = required(statement.subordinator).zh
    split = conjunction.index("_")
    opening, *closing = conjunction[:split]
    answer = conjunction[split + 1 :]
    inner = clause(required(statement.subordinate), plain=bool(closing))
    if closing == ["的时候"] and inner[-1] == "的":  # 是红色的时候, not 的的
        inner = inner[:-1]
    words = [opening, *inner, *closing, "，"]
    if answer == ("就",):
        return [*words, *clause(statement.main, ["就"])]
    return [*words, *answer, *main]


def clause(
    c: structure.Clause, inserted: list[str] | None = None, plain: bool = False, where: bool = False
) -> list[str]:
    """Return subject, time, adverbs, place, verb, object; `plain` leaves out 了, and `where` asks for the place.

    `inserted` are words that follow subject and time.
    """
    if c.exists:
        return _existence(c)
    subject = [] if c.subject is None else noun_phrase(c.subject)
    time = list(c.time.zh) if c.time else []
    words = [*time, *subject] if c.time_first else [*subject, *time]
    words += inserted or []
    if isinstance(c.subject, structure.NounPhrase) and c.subject.determiner == "every":
        words.append("都")
    return words + _predicate(c, plain, where)


def _existence(c: structure.Clause) -> list[str]:
    has = {"past": ["曾", "有"], "present": ["有"], "future": ["会", "有"]}[c.tense]
    return [
        *(place(c.place) if c.place else []),
        *(c.time.zh if c.time else ()),
        *has,
        *noun_phrase(required_nominal(c.object)),
    ]


def _predicate(c: structure.Clause, plain: bool, where: bool = False) -> list[str]:
    if c.verb is None:
        return [*(c.frequency.zh if c.frequency else ()), *_copula(c)]
    words = list(c.frequency.zh) if c.frequency else []
    words += _operators(c, c.verb)
    if c.companion is not None:
        words += ["和", *noun_phrase(c.companion), "一起"]
    if where:
        words += ["在", "哪里"]
    if c.place:
        words += ["在", *place(c.place)]
    if c.manner:
        words += c.manner.zh
    finished = c.tense == "past" and not c.verb.stative and not c.infinitive
    perfective = finished and not (c.negation or c.modal or c.frequency or plain)
    words += _verb(c, c.verb, perfective)
    if c.complement:
        if c.asks_whether:
            return [*words, *clause(c.complement, ["是否"])]
        return [*words, *clause(c.complement)]
    if c.infinitive:
        words += _predicate(c.infinitive, plain=True)
    return words


def _operators(c: structure.Clause, verb: Verb) -> list[str]:
    """Return negation, future and modal words."""
    if c.modal:
        negated = {"": [], "not": ["不"], "never": ["从来", "不"]}[c.negation]
        return [*negated, MODALS[c.modal]]
    if c.tense == "future":
        return [*{"": [], "not": ["不"], "never": ["永远", "不"]}[c.negation], "会"]
    if not c.negation:
        return []
    result = verb.frame == "t" and any(piece[-1] in RESULTS for piece in verb.zh)
    eventive = (c.tense == "past" or result) and not verb.stative
    word = "没有" if eventive else "不"
    return ["从来", word] if c.negation == "never" else [word]


def _verb(c: structure.Clause, verb: Verb, perfective: bool) -> list[str]:
    """Fill in the template of the verb."""
    words: list[str] = []
    for piece in verb.zh_definite if verb.zh_definite and _definite(c.object) else verb.zh:
        if piece == "~":
            words += noun_phrase(c.object) if c.object is not None else []
        elif piece == "^":
            words += noun_phrase(required_nominal(c.recipient))
        elif piece == "+":
            words += ["了"] if perfective else []
        else:
            words.append(piece)
    return words


def _definite(nominal: structure.Nominal | None) -> bool:
    return not isinstance(nominal, structure.NounPhrase) or nominal.determiner in ("the", "this", "my")


def _copula(c: structure.Clause) -> list[str]:
    word = required(c.predicate).zh_predicate
    future = ["会"] if c.tense == "future" else []
    negation = {"": [], "not": ["不"], "never": ["从来", "不"]}[c.negation]
    if word.startswith("="):
        return [*negation, *future, "是", word[1:], "的"]
    return [*negation, *future, *([] if c.negation or c.frequency else ["很"]), word]


def place(p: structure.Place) -> list[str]:
    """Return the words of a place, without 在."""
    if isinstance(p.ground, structure.Name):
        return [p.ground.text]
    return [*noun_phrase(p.ground), *LOCALISERS[p.location]]


def noun_phrase(nominal: structure.Nominal) -> list[str]:
    """Return the words of a noun phrase."""
    match nominal:
        case structure.Pronoun():
            return [pronoun(nominal)]
        case structure.Name():
            title = {"": [], "Mr": ["先生"], "Mrs": ["女士"]}[nominal.title]
            return [nominal.text, *title]
        case structure.Pair():
            return [*noun_phrase(nominal.first), "和", *noun_phrase(nominal.second)]
        case _:
            return _full_noun_phrase(nominal)


def pronoun(p: structure.Pronoun) -> str:
    """Return a pronoun."""
    if p.person == THIRD:
        return HE_SHE_IT[p.gender]
    if p.person == THEY:
        return "他们" if p.human else "它们"
    return PRONOUNS[p.person]


def _full_noun_phrase(np: structure.NounPhrase) -> list[str]:
    words = _modifier_of_owner(np)
    clause_first = [*clause(np.relative.clause, plain=True), "的"] if np.relative else []
    here = [*place(np.place), "的"] if np.place else []
    counted = _determiner(np)
    adjectives = [word for adjective in np.adjectives for word in adjective.zh.split()]
    if np.relative and np.relative.role == "object":  # two counted nouns must not meet
        return [*words, *here, *clause_first, *counted, *adjectives, np.noun.zh]
    return [*words, *here, *counted, *clause_first, *adjectives, np.noun.zh]


def _modifier_of_owner(np: structure.NounPhrase) -> list[str]:
    if np.determiner == "my":
        kin = "kin" in np.noun.classes and "child" not in np.noun.classes
        return [pronoun(required(np.owner)), *([] if kin else ["的"])]
    return [*noun_phrase(np.genitive), "的"] if np.genitive is not None else []


def _determiner(np: structure.NounPhrase) -> list[str]:
    measure = np.noun.measure
    match np.determiner:
        case "a" if np.plural:
            return ["一些"]
        case "a":
            return ["一", measure]
        case "this":
            return ["这些"] if np.plural else ["这", measure]
        case "number":
            return [required(np.number).zh[0], measure]
        case "some":
            return ["几", measure]
        case "many":
            return ["很多"]
        case "every":
            return ["每", measure]
    return []

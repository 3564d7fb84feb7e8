"""English, written as Penn-style trees; the sentence is the sequence of the leaves."""

import re

from pipeline.grammar import structure
from pipeline.grammar.structure import ME, THEY, THIRD, WE, YOU, is_heavy, required, required_nominal
from pipeline.grammar.words import EnglishVerb

LEAF = re.compile(r" ([^ ()]+)\)")
DETERMINERS = {"the": "DT the", "some": "DT some", "many": "JJ many", "this": "DT this", "every": "DT every"}
BE = {"present": ("am", "are", "is", "are", "are"), "past": ("was", "were", "was", "were", "were")}
DO = {"present": ("do", "do", "does", "do", "do"), "past": ("did",) * 5}
PRONOUNS = {ME: ("I", "me"), YOU: ("you", "you"), WE: ("we", "us"), THEY: ("they", "them")}
HE_SHE_IT = {"m": ("he", "him"), "f": ("she", "her"), "n": ("it", "it")}
QUESTION_WORDS = {"where": "Where", "when": "When", "why": "Why"}


def sentence(utterance: structure.Utterance) -> str:
    """Return the tree of a sentence, `(TOP …)`, with a capital first letter."""
    opening = ""
    if utterance.interjection:
        opening += f"(INTJ {utterance.interjection.en}) (, ,) "
    if utterance.vocative:
        opening += f"{noun_phrase(utterance.vocative)} (, ,) "
    if utterance.question:
        tree = _question(utterance.statement.main, utterance.question, opening)
    else:
        tree = f"(S {opening}{_statement(utterance.statement)} (. .))"
    return f"(TOP {_capitalised(tree)})"


def tokens(tree: str) -> list[str]:
    """Return the leaves of a tree."""
    return LEAF.findall(tree)


def _capitalised(tree: str) -> str:
    start = required(LEAF.search(tree)).start(1)
    return tree[:start] + tree[start].upper() + tree[start + 1 :]


def _statement(statement: structure.Statement) -> str:
    """Return the inside of an S, without label."""
    body = _body(statement)
    if statement.rest is None:
        return body
    word = required(statement.coordinator).en
    joint = "(IN so)" if word == "so" else f"(CC {word})"
    return f"(S {body}) (, ,) {joint} (S {_statement(statement.rest)})"


def _body(statement: structure.Statement) -> str:
    main = clause(statement.main)
    if statement.opener:
        main = f"{statement.opener.en} (, ,) {main}"
    if statement.subordinate is None:
        return main
    word = required(statement.subordinator).en
    subordinate = f"(SBAR {word} (S {clause(statement.subordinate)}))"
    if statement.subordinate_first:
        return f"{subordinate} (, ,) {main}"
    inner, closing = main[:-1], ")"  # inside the VP, which comes last
    return f"{inner} {subordinate}{closing}"


def clause(c: structure.Clause) -> str:
    """Return `(NP …) (VP …)`, after a fronted adverb of time if there is one."""
    if c.exists:
        return f"(NP (EX there)) {_verb_phrase(c)}"
    front = f"{c.time.en} (, ,) " if c.time and c.time_first else ""
    return f"{front}{noun_phrase(required_nominal(c.subject))} {_verb_phrase(c)}"


def _verb_phrase(c: structure.Clause, base: bool = False) -> str:
    """Return the VP; with `base`, that of an infinitive without to."""
    rest = _complements(c)
    adverb = f"(ADVP (RB {c.frequency.en})) " if c.frequency else ""
    if base:
        return f"(VP {adverb}(VB {_base(c)}){rest})"
    person = required_nominal(c.object).person if c.exists else c.person
    if c.modal:
        return _with_modal(c, person, rest)
    if c.tense == "future":
        negation = f" (RB {c.negation})" if c.negation else ""
        return f"(VP (MD will){negation} (VP {adverb}(VB {_base(c)}){rest}))"
    if c.verb is None:
        tag = _tag(c.tense, person)
        negation = f" (RB {c.negation})" if c.negation else ""
        return f"(VP ({tag} {BE[c.tense][person]}){negation}{' ' + adverb.strip() if adverb else ''}{rest})"
    if c.negation == "not":
        return f"(VP ({_tag(c.tense, person)} {DO[c.tense][person]}) (RB not) (VP {adverb}(VB {_base(c)}){rest}))"
    if c.negation == "never":
        adverb = "(ADVP (RB never)) "
    return f"(VP {adverb}({_tag(c.tense, person)} {_finite(c.verb.en, c.tense, person)}){rest})"


def _with_modal(c: structure.Clause, person: int, rest: str) -> str:
    inner = f"(VP (VB {_base(c)}){rest})"
    infinitive = f"(S (VP (TO to) {inner}))"
    past = c.tense == "past"
    tag = _tag(c.tense, person)
    if c.modal == "want":
        if c.negation == "not":
            return f"(VP ({tag} {DO[c.tense][person]}) (RB not) (VP (VB want) {infinitive}))"
        never = "(ADVP (RB never)) " if c.negation else ""
        return f"(VP {never}({tag} {'wanted' if past else 'wants' if person == THIRD else 'want'}) {infinitive})"
    if c.modal == "must" and past:
        return f"(VP ({tag} had) {infinitive})"
    word = {"can": "could" if past else "can", "must": "must", "should": "should"}[c.modal]
    if c.modal == "can" and c.negation == "not" and not past:
        return f"(VP (MD cannot) {inner})"
    negation = f" (RB {c.negation})" if c.negation else ""
    return f"(VP (MD {word}){negation} {inner})"


def _tag(tense: str, person: int) -> str:
    return "VBD" if tense == "past" else "VBZ" if person == THIRD else "VBP"


def _base(c: structure.Clause) -> str:
    return c.verb.en.base if c.verb else "be"


def _finite(verb: EnglishVerb, tense: structure.Tense, person: int) -> str:
    return verb.past if tense == "past" else verb.third if person == THIRD else verb.base


def _complements(c: structure.Clause) -> str:
    """Return the rest of the VP after the verb, with a leading space."""
    parts = []
    verb = c.verb.en if c.verb else None
    if verb and verb.particle:
        parts.append(f"(PRT (RP {verb.particle}))")
    if c.object is not None:
        phrase = noun_phrase(c.object, 1)
        if verb and verb.preposition:
            phrase = f"(PP ({'TO' if verb.preposition == 'to' else 'IN'} {verb.preposition}) {phrase})"
        parts.append(phrase)
    if verb and verb.fixed:
        parts.append(verb.fixed)
    if c.recipient is not None:
        recipient = f"(PP (TO to) {noun_phrase(c.recipient, 1)})"
        parts.insert(-1 if is_heavy(c.object) else len(parts), recipient)
    if c.predicate is not None:
        parts.append(f"(ADJP (JJ {c.predicate.en}))")
    if c.manner:
        parts.append(f"(ADVP (RB {c.manner.en}))")
    if c.companion is not None:
        parts.append(f"(PP (IN with) {noun_phrase(c.companion, 1)})")
    if c.place:
        parts.append(place(c.place))
    if c.time and not c.time_first:
        parts.append(c.time.en)
    if c.complement:
        word = "whether" if c.asks_whether else "that"
        parts.append(f"(SBAR (IN {word}) (S {clause(c.complement)}))")
    if c.infinitive:
        parts.append(f"(S (VP (TO to) {_verb_phrase(c.infinitive, base=True)}))")
    return "".join(" " + part for part in parts)


def place(p: structure.Place) -> str:
    """Return the PP of a place."""
    return f"(PP (IN {'on' if p.location == 'shore' else p.location}) {noun_phrase(p.ground, 1)})"


def noun_phrase(nominal: structure.Nominal, case: int = 0) -> str:
    """Return the NP of a nominal; the `case` of pronouns is 0 for subjects, 1 elsewhere."""
    match nominal:
        case structure.Pronoun():
            return f"(NP (PRP {pronoun(nominal, case)}))"
        case structure.Name():
            title = f"(NNP {nominal.title}) " if nominal.title else ""
            return f"(NP {title}{' '.join(f'(NNP {part})' for part in nominal.text.split())})"
        case structure.Pair():
            return f"(NP {noun_phrase(nominal.first, case)} (CC and) {noun_phrase(nominal.second, case)})"
        case _:
            return _full_noun_phrase(nominal)


def _full_noun_phrase(np: structure.NounPhrase) -> str:
    adjectives = "".join(f"(JJ {adjective.en}) " for adjective in np.adjectives)
    *modifiers, head = np.noun.en[np.plural].split()
    noun = "".join(f"(NN {word}) " for word in modifiers) + f"({'NNS' if np.plural else 'NN'} {head})"
    core = f"(NP {_determiner(np)}{adjectives}{noun})"
    if np.genitive is not None:
        core = f"(NP {core} (PP (IN of) {noun_phrase(np.genitive, 1)}))"
    if np.place:
        core = f"(NP {core} {place(np.place)})"
    if np.relative:
        core = f"(NP {core} {_relative(np, np.relative)})"
    return core


def _relative(np: structure.NounPhrase, relative: structure.Relative) -> str:
    c = relative.clause
    human = np.noun.gender != "n"
    if relative.role == "subject":
        word = "(WP who)" if human else "(WDT that)"
        return f"(SBAR (WHNP {word}) (S {_verb_phrase(c)}))"
    word = "(WP whom)" if human else "(WDT that)"
    return f"(SBAR (WHNP {word}) (S {clause(c)}))"


def _determiner(np: structure.NounPhrase) -> str:
    match np.determiner:
        case "a" | "no":
            if np.plural:
                return "(DT any) " if np.determiner == "no" else ""
            following = np.adjectives[0].en if np.adjectives else np.noun.en[0]
            return "(DT an) " if following[0] in "aeiouI" and following != "used" else "(DT a) "
        case "bare":
            return ""
        case "my":
            return f"(PRP$ {_possessive(required(np.owner))}) "
        case "number":
            return f"(CD {required(np.number).en}) "
        case "this" if np.plural:
            return "(DT these) "
        case name:
            return f"({DETERMINERS[name]}) "


def pronoun(p: structure.Pronoun, case: int) -> str:
    """Return a pronoun in a `case`: 0 for subjects, 1 elsewhere."""
    return (HE_SHE_IT[p.gender] if p.person == THIRD else PRONOUNS[p.person])[case]


def _possessive(p: structure.Pronoun) -> str:
    if p.person == THIRD:
        return {"m": "his", "f": "her", "n": "its"}[p.gender]
    return {ME: "my", YOU: "your", WE: "our", THEY: "their"}[p.person]


def _question(c: structure.Clause, question: str, opening: str) -> str:
    """Return an inverted question with do, be, will or a modal."""
    subject = noun_phrase(required_nominal(c.subject))
    person = c.person
    rest = _complements(c)
    tag = _tag(c.tense, person)
    if c.tense == "future":
        auxiliary, inner = "(MD will)", f" (VP (VB {_base(c)}){rest})"
    elif c.verb is None:
        auxiliary, inner = f"({tag} {BE[c.tense][person]})", rest
    else:
        auxiliary, inner = f"({tag} {DO[c.tense][person]})", f" (VP (VB {_base(c)}){rest})"
    if question == "yes":
        return f"(SQ {opening}{auxiliary} {subject}{inner} (. ?))"
    word = QUESTION_WORDS[question]
    word = word.lower() if opening else word
    return f"(SBARQ {opening}(WHADVP (WRB {word})) (SQ {auxiliary} {subject}{inner}) (. ?))"

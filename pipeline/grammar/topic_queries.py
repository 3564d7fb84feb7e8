"""Search queries about people, towns, journeys, food, health and work; patterns as in `goods_queries`."""

from pipeline.grammar import english, french, german
from pipeline.grammar.query_parts import TABLES, Query, QueryParts, in_english, joined
from pipeline.grammar.structure import NounPhrase


def town_topic(parts: QueryParts) -> Query:
    """weather in berlin tomorrow"""
    topic, town, day = parts.pick("town topics"), parts.town(), parts.maybe_day(0.75)
    return Query(
        joined("NP", topic.en, in_english(town), day.en),
        [*topic.de, "in", town.text, *day.de],
        [*topic.fr, "à", town.text, *day.fr],
        [*day.zh, town.text, "的", *topic.zh],
    )


def journey(parts: QueryParts) -> Query:
    """night train from berlin to paris tomorrow"""
    vehicle, start, goal, day = parts.pick("transport"), parts.town(), parts.town(), parts.maybe_day()
    route = f"(PP (IN from) {english.noun_phrase(start)}) (PP (TO to) {english.noun_phrase(goal)})"
    return Query(
        joined("NP", f"(NP {vehicle.en})", route, day.en),
        [*vehicle.de, "von", start.text, "nach", goal.text, *day.de],
        [*vehicle.fr, "de", start.text, "à", goal.text, *day.fr],
        [*day.zh, "从", start.text, "到", goal.text, "的", *vehicle.zh],
    )


def works(parts: QueryParts) -> Query:
    """songs by anna keller"""
    by = parts.rng.random() < 0.5
    topic, person = parts.pick("works" if by else "life"), parts.person()
    return Query(
        f"(NP {topic.en} (PP (IN {'by' if by else 'of'}) {english.noun_phrase(person)}))",
        [*topic.de, "von", person.text],
        [*topic.fr, "de", person.text],
        [person.text, "的", *topic.zh],
    )


def who(parts: QueryParts) -> Query:
    """how old is anna keller"""
    person = parts.person()
    name, en = person.text, english.noun_phrase(person)
    feminine = "e" if person.gender == "f" else ""
    return parts.rng.choice(
        (
            Query(
                f"(SBARQ (WHADJP (WRB how) (JJ old)) (SQ (VBZ is) {en}))",
                ["wie", "alt", "ist", name],
                ["quel", "âge", "a", name],
                [name, "多大", "了"],
            ),
            Query(
                f"(SBARQ (WHADVP (WRB where)) (SQ (VBZ does) {en} (VP (VB live))))",
                ["wo", "wohnt", name],
                ["où", "habite", name],
                [name, "住", "在", "哪里"],
            ),
            Query(
                f"(SBARQ (WHADVP (WRB when)) (SQ (VBD was) {en} (VP (VBN born))))",
                ["wann", "wurde", name, "geboren"],
                ["quand", "est", "né" + feminine, name],
                [name, "什么", "时候", "出生", "的"],
            ),
            Query(
                f"(SBARQ (WHNP (WP who)) (SQ (VBZ is) {en} (ADJP (JJ married) (PP (TO to)))))",
                ["mit", "wem", "ist", name, "verheiratet"],
                ["avec", "qui", name, "est", "marié" + feminine],
                [name, "跟", "谁", "结婚", "了"],
            ),
        )
    )


def recipe(parts: QueryParts) -> Query:
    """recipe for onion soup with cheese and without cream"""
    dish = parts.pick("dishes")
    first, second, third = parts.rng.sample(TABLES["ingredients"].items, 3)
    en, de, fr = f"(PP (IN with) {first.en})", ["mit", *first.de], ["avec", *first.fr]
    zh = ["加", *first.zh]
    if parts.rng.random() < 0.35:
        en = f"(PP (IN with) (NP {first.en} (CC and) {second.en}))"
        de, fr, zh = [*de, "und", *second.de], [*fr, "et", *second.fr], [*zh, "和", *second.zh]
    if parts.rng.random() < 0.35:
        en = f"(PP {en} (CC and) (PP (IN without) {third.en}))"
        de, fr, zh = [*de, "und", "ohne", *third.de], [*fr, "et", "sans", *third.fr], [*zh, "不", "加", *third.zh]
    return Query(
        f"(NP (NP (NN recipe)) (PP (IN for) (NP {dish.en} {en})))",
        ["rezept", "für", *dish.de, *de],
        ["recette", "de", *dish.fr, *fr],
        [*zh, "的", *dish.zh, "的", "做法"],
    )


def disease(parts: QueryParts) -> Query:
    """symptoms of flu in children"""
    remedy, disease = parts.pick("remedies"), parts.pick("diseases")
    whom = parts.of_class(parts.rng.choice(("group", "animal")), "bare", plural=True, adjective=0)
    theirs = NounPhrase(whom.noun, "the", plural=True)
    german_of = "gegen" if remedy.de == ("hausmittel",) else "von"
    english_of = "for" if german_of == "gegen" else "of"
    french_of = "contre" if german_of == "gegen" else "de"
    topic = f"{remedy.en} (PP (IN {english_of}) {disease.en}) (PP (IN in) {english.noun_phrase(whom)})"
    return Query(
        f"(NP {topic})",
        [*remedy.de, german_of, *disease.de, "bei", *german.noun_phrase(whom, german.DATIVE)],
        [
            *remedy.fr,
            *french.with_preposition(french_of, list(disease.fr)),
            "chez",
            *french.noun_phrase(theirs),
        ],
        [whom.noun.zh, *disease.zh, "的", *remedy.zh],
    )


def jobs(parts: QueryParts) -> Query:
    """jobs for nurses in berlin"""
    town = parts.town()
    if parts.rng.random() < 0.5:
        trade = parts.of_class("trade", "bare", plural=True)
        return Query(
            f"(NP (NP (NNS jobs)) (PP (IN for) {english.noun_phrase(trade)}) {in_english(town)})",
            ["stellen", "für", *german.noun_phrase(trade, german.ACCUSATIVE), "in", town.text],
            ["emplois", "pour", *french.noun_phrase(trade), "à", town.text],
            [town.text, trade.noun.zh, "的", "职位"],
        )
    trade = parts.of_class("trade", "a")
    parts.facts.kinds.add("genitive")
    return Query(
        f"(NP (NP (NN salary)) (PP (IN of) {english.noun_phrase(trade)}) {in_english(town)})",
        ["gehalt", *german.noun_phrase(trade, german.GENITIVE), "in", town.text],
        ["salaire", "de", *french.noun_phrase(trade), "à", town.text],
        [town.text, trade.noun.zh, "的", "工资"],
    )


def may_eat(parts: QueryParts) -> Query:
    """can dogs eat tomatoes"""
    eater = parts.of_class("animal", "bare", plural=True, adjective=0)
    food = parts.of_class("edible", "a", plural=True, adjective=0)
    eaters = NounPhrase(eater.noun, "the", plural=True)
    return Query(
        f"(SQ (MD can) {english.noun_phrase(eater)} (VP (VB eat) {english.noun_phrase(food)}))",
        ["dürfen", *german.noun_phrase(eater, 0), *german.noun_phrase(food, 1), "fressen"],
        ["est-ce", "que", *french.noun_phrase(eaters), "peuvent", "manger", *french.noun_phrase(food)],
        [eater.noun.zh, "能", "吃", food.noun.zh, "吗"],
    )


def outing(parts: QueryParts) -> Query:
    """what to do in berlin with children tomorrow"""
    town, day = parts.town(), parts.maybe_day()
    group = parts.of_class("group", "a", plural=True, adjective=0)
    ending = f"{in_english(town)} (PP (IN with) {english.noun_phrase(group)})"
    parts.facts.kinds.add("infinitive")
    return Query(
        f"(SBAR (WHNP (WP what)) (S (VP (TO to) {joined('VP', '(VB do)', ending, day.en)})))",
        ["was", "kann", "man", *day.de, "in", town.text, "mit", *german.noun_phrase(group, 2), "unternehmen"],
        ["que", "faire", "à", town.text, "avec", *french.noun_phrase(group), *day.fr],
        [*day.zh, "在", town.text, "可以", "和", group.noun.zh, "一起", "做", "什么"],
    )

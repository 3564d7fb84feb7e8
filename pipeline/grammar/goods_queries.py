"""Search queries about things to buy, rent, repair and find.

A pattern is a function that returns the four sides of one kind of query. German puts infinitives last in them too
(`gebrauchtes fahrrad in berlin verkaufen`), Chinese puts places and times first.
"""

from pipeline.grammar import chinese, english, french, german
from pipeline.grammar.query_parts import (
    DEEDS,
    ERRANDS,
    NOUNS,
    Query,
    QueryParts,
    bare_chinese,
    in_english,
    joined,
    sides,
)


def wares(parts: QueryParts) -> Query:
    """cheap tents for beginners under two hundred euros"""
    np = parts.of_class("ware", "bare", plural=True)
    query = Query(*sides(np))
    if "mobile" in np.noun.classes and parts.rng.random() < 0.5:
        part = parts.of_class("part", "a", adjective=1)
        query = Query(
            f"(NP {query.en} (PP (IN with) {english.noun_phrase(part, 1)}))",
            [*query.de, "mit", *german.noun_phrase(part, german.DATIVE)],
            [*query.fr, "avec", *french.noun_phrase(part)],
            ["带", *bare_chinese(part), "的", *query.zh],
        )
    else:
        group = parts.of_class("group", "bare", plural=True)
        query = Query(
            f"(NP {query.en} (PP (IN for) {english.noun_phrase(group, 1)}))",
            [*query.de, "für", *german.noun_phrase(group, german.ACCUSATIVE)],
            [*query.fr, "pour", *french.noun_phrase(group)],
            ["适合", group.noun.zh, "的", *query.zh],
        )
    if parts.rng.random() < 0.6:
        return query
    price = parts.pick("prices")
    cardinal = " ".join(f"({'DT' if word == 'a' else 'CD'} {word})" for word in price.en.split())
    return Query(
        f"(NP {query.en} (PP (IN under) (NP {cardinal} (NNS euros))))",
        [*query.de, "unter", *price.de, "euro"],
        [*query.fr, "à", "moins", "de", *price.fr, "euros"],
        [*price.zh, "欧元", "以下", *query.zh],
    )


def sites(parts: QueryParts) -> Query:
    """quiet hotels in berlin near the airport"""
    np = parts.of_class("site", "bare", plural=True, adjective=0.8)
    town = parts.town()
    en, de, fr, zh = sides(np)
    en, de, fr = f"(NP {en} {in_english(town)})", [*de, "in", town.text], [*fr, "à", town.text]
    draw = parts.rng.random()
    if draw < 0.35:
        near = parts.of_class("site", "the", adjective=0.1)
        en = f"(NP {en} (PP (IN near) {english.noun_phrase(near, 1)}))"
        de += ["in", "der", "nähe", *german.noun_phrase(near, german.GENITIVE)]
        fr += ["près", *french.with_preposition("de", french.noun_phrase(near))]
        return Query(en, de, fr, [town.text, *bare_chinese(near), "附近", "的", *zh])
    if draw < 0.65 and "lodging" in np.noun.classes:
        feature = parts.of_class("feature", "bare", adjective=0.4)
        en = f"(NP {en} (PP (IN with) {english.noun_phrase(feature, 1)}))"
        de += ["mit", *german.noun_phrase(feature, german.DATIVE)]
        fr += ["avec", *french.noun_phrase(feature)]
        return Query(en, de, fr, [town.text, "带", *bare_chinese(feature), "的", *zh])
    return Query(en, de, fr, [town.text, "的", *zh])


def how_to(parts: QueryParts) -> Query:
    """how to repair a washing machine"""
    deed, noun = parts.deed(DEEDS)
    np = parts.noun_phrase(noun, "a", adjective=0.5)
    np.plural = parts.rng.random() < 0.15
    parts.facts.kinds.add("subordinate")
    return Query(
        f"(SBAR (WHADVP (WRB how)) (S (VP (TO to) (VP (VB {deed.en}) {english.noun_phrase(np, 1)}))))",
        ["wie", "man", *german.noun_phrase(np, german.ACCUSATIVE), deed.de_third],
        ["comment", deed.fr, *french.noun_phrase(np)],
        ["怎么", deed.zh, *bare_chinese(np)],
    )


def errand(parts: QueryParts) -> Query:
    """sell used bike in berlin"""
    deed, noun = parts.deed(ERRANDS)
    np = parts.noun_phrase(noun, "bare")
    town = parts.town()
    parts.facts.kinds.add("infinitive")
    return Query(
        f"(VP (VB {deed.en}) {english.noun_phrase(np, 1)} {in_english(town)})",
        [*german.noun_phrase(np, german.ACCUSATIVE), "in", town.text, deed.de],
        [deed.fr, *french.noun_phrase(np), "à", town.text],
        ["在", town.text, deed.zh, *bare_chinese(np)],
    )


def where_to(parts: QueryParts) -> Query:
    """where can i sell old books in berlin"""
    deed, noun = parts.deed(ERRANDS)
    np = parts.noun_phrase(noun, "a", plural=parts.rng.random() < 0.5)
    town = parts.town()
    parts.facts.kinds.add("infinitive")
    inner = f"(VP (VB {deed.en}) {english.noun_phrase(np, 1)} {in_english(town)})"
    return Query(
        f"(SBARQ (WHADVP (WRB where)) (SQ (MD can) (NP (PRP i)) {inner}))",
        ["wo", "kann", "ich", "in", town.text, *german.noun_phrase(np, german.ACCUSATIVE), deed.de],
        ["où", "puis-je", deed.fr, *french.noun_phrase(np), "à", town.text],
        [town.text, "哪里", "可以", deed.zh, *bare_chinese(np)],
    )


def rent(parts: QueryParts) -> Query:
    """rent a quiet apartment in berlin for three days"""
    np, town, days = parts.of_class("hired", "a"), parts.town(), parts.pick("amounts")
    how_long = f"(PP (IN for) (NP (CD {days.en}) (NNS days)))"
    parts.facts.kinds.add("infinitive")
    return Query(
        f"(VP (VB rent) {english.noun_phrase(np)} {in_english(town)} {how_long})",
        [*german.noun_phrase(np, german.ACCUSATIVE), "in", town.text, "für", *days.de, "tage", "mieten"],
        ["louer", *french.noun_phrase(np), "à", town.text, "pour", *days.fr, "jours"],
        ["在", town.text, "租", *bare_chinese(np), *days.zh, "天"],
    )


def cost(parts: QueryParts) -> Query:
    """how much does a new bike cost in berlin"""
    np = parts.of_class("ware", "a")
    place = parts.rng.random() < 0.5
    town = parts.town() if place else None
    where = f" {in_english(town)}" if town else ""
    question = f"(WHADVP (WRB how) (RB much)) (SQ (VBZ does) {english.noun_phrase(np)} (VP (VB cost){where}))"
    return Query(
        f"(SBARQ {question})",
        ["wie", "viel", "kostet", *german.noun_phrase(np, german.NOMINATIVE), *(["in", town.text] if town else [])],
        ["combien", "coûte", *french.noun_phrase(np), *(["à", town.text] if town else [])],
        [*(["在", town.text] if town else []), *chinese.noun_phrase(np), "多少", "钱"],
    )


def hours(parts: QueryParts) -> Query:
    """opening hours of the library in berlin"""
    np, town = parts.of_class("open", "the", adjective=0.15), parts.town()
    day = parts.maybe_day(0.3)
    parts.facts.kinds.add("genitive")
    head = "(NP (NN opening) (NNS hours))"
    return Query(
        joined("NP", head, f"(PP (IN of) {english.noun_phrase(np)})", in_english(town), day.en),
        ["öffnungszeiten", *german.noun_phrase(np, german.GENITIVE), "in", town.text, *day.de],
        ["horaires", *french.with_preposition("de", french.noun_phrase(np)), "à", town.text, *day.fr],
        [*day.zh, town.text, *bare_chinese(np), "的", "开放", "时间"],
    )


def difference(parts: QueryParts) -> Query:
    """difference between a laptop and a tablet"""
    name = parts.rng.choice(("device", "appliance", "vehicle", "furniture", "lodging", "animal"))
    first, second = parts.rng.sample(NOUNS[name], 2)
    pair = [parts.noun_phrase(noun, "a", adjective=0.25) for noun in (first, second)]
    one, other = pair
    both = f"(NP {english.noun_phrase(one)} (CC and) {english.noun_phrase(other)})"
    return Query(
        f"(NP (NP (NN difference)) (PP (IN between) {both}))",
        ["unterschied", "zwischen", *german.noun_phrase(one, 2), "und", *german.noun_phrase(other, 2)],
        ["différence", "entre", *french.noun_phrase(one), "et", *french.noun_phrase(other)],
        [*bare_chinese(one), "和", *bare_chinese(other), "的", "区别"],
    )

"""Derives and realises the search domain: queries, lower-case fragments without punctuation.

A pattern is a method that returns the four sides of one kind of query. German puts infinitives last in them too
(`gebrauchtes fahrrad in berlin verkaufen`), Chinese puts places and times first.
"""

from pipeline.grammar import chinese, english, french, german
from pipeline.grammar.choice import Zipf
from pipeline.grammar.query_parts import (
    DEEDS,
    ERRANDS,
    NOUNS,
    TABLES,
    Query,
    QueryParts,
    bare_chinese,
    in_english,
    joined,
    sides,
)
from pipeline.grammar.structure import NounPhrase


class QueryDeriver(QueryParts):
    """Derives one query: `query()`."""

    def query(self) -> Query:
        return PATTERNS(self.rng)(self)

    def wares(self) -> Query:
        """cheap tents for beginners under two hundred euros"""
        np = self.of_class("ware", "bare", plural=True)
        query = Query(*sides(np))
        if "mobile" in np.noun.classes and self.rng.random() < 0.5:
            part = self.of_class("part", "a", adjective=1)
            query = Query(
                f"(NP {query.en} (PP (IN with) {english.noun_phrase(part, 1)}))",
                [*query.de, "mit", *german.noun_phrase(part, german.DATIVE)],
                [*query.fr, "avec", *french.noun_phrase(part)],
                ["带", *bare_chinese(part), "的", *query.zh],
            )
        else:
            group = self.of_class("group", "bare", plural=True)
            query = Query(
                f"(NP {query.en} (PP (IN for) {english.noun_phrase(group, 1)}))",
                [*query.de, "für", *german.noun_phrase(group, german.ACCUSATIVE)],
                [*query.fr, "pour", *french.noun_phrase(group)],
                ["适合", group.noun.zh, "的", *query.zh],
            )
        if self.rng.random() < 0.6:
            return query
        price = self.pick("PRICES")
        cardinal = " ".join(f"({'DT' if word == 'a' else 'CD'} {word})" for word in price.en.split())
        return Query(
            f"(NP {query.en} (PP (IN under) (NP {cardinal} (NNS euros))))",
            [*query.de, "unter", *price.de, "euro"],
            [*query.fr, "à", "moins", "de", *price.fr, "euros"],
            [*price.zh, "欧元", "以下", *query.zh],
        )

    def sites(self) -> Query:
        """quiet hotels in berlin near the airport"""
        np = self.of_class("site", "bare", plural=True, adjective=0.8)
        town = self.town()
        en, de, fr, zh = sides(np)
        en, de, fr = f"(NP {en} {in_english(town)})", [*de, "in", town.text], [*fr, "à", town.text]
        draw = self.rng.random()
        if draw < 0.35:
            near = self.of_class("site", "the", adjective=0.1)
            en = f"(NP {en} (PP (IN near) {english.noun_phrase(near, 1)}))"
            de += ["in", "der", "nähe", *german.noun_phrase(near, german.GENITIVE)]
            fr += ["près", *french.with_preposition("de", french.noun_phrase(near))]
            return Query(en, de, fr, [town.text, *bare_chinese(near), "附近", "的", *zh])
        if draw < 0.65 and "lodging" in np.noun.classes:
            feature = self.of_class("feature", "bare", adjective=0.4)
            en = f"(NP {en} (PP (IN with) {english.noun_phrase(feature, 1)}))"
            de += ["mit", *german.noun_phrase(feature, german.DATIVE)]
            fr += ["avec", *french.noun_phrase(feature)]
            return Query(en, de, fr, [town.text, "带", *bare_chinese(feature), "的", *zh])
        return Query(en, de, fr, [town.text, "的", *zh])

    def how_to(self) -> Query:
        """how to repair a washing machine"""
        deed, noun = self.deed(DEEDS)
        np = self.noun_phrase(noun, "a", adjective=0.5)
        np.plural = self.rng.random() < 0.15
        self.facts.kinds.add("subordinate")
        return Query(
            f"(SBAR (WHADVP (WRB how)) (S (VP (TO to) (VP (VB {deed.en}) {english.noun_phrase(np, 1)}))))",
            ["wie", "man", *german.noun_phrase(np, german.ACCUSATIVE), deed.de_third],
            ["comment", deed.fr, *french.noun_phrase(np)],
            ["怎么", deed.zh, *bare_chinese(np)],
        )

    def errand(self) -> Query:
        """sell used bike in berlin"""
        deed, noun = self.deed(ERRANDS)
        np = self.noun_phrase(noun, "bare")
        town = self.town()
        self.facts.kinds.add("infinitive")
        return Query(
            f"(VP (VB {deed.en}) {english.noun_phrase(np, 1)} {in_english(town)})",
            [*german.noun_phrase(np, german.ACCUSATIVE), "in", town.text, deed.de],
            [deed.fr, *french.noun_phrase(np), "à", town.text],
            ["在", town.text, deed.zh, *bare_chinese(np)],
        )

    def where_to(self) -> Query:
        """where can i sell old books in berlin"""
        deed, noun = self.deed(ERRANDS)
        np = self.noun_phrase(noun, "a", plural=self.rng.random() < 0.5)
        town = self.town()
        self.facts.kinds.add("infinitive")
        inner = f"(VP (VB {deed.en}) {english.noun_phrase(np, 1)} {in_english(town)})"
        return Query(
            f"(SBARQ (WHADVP (WRB where)) (SQ (MD can) (NP (PRP i)) {inner}))",
            ["wo", "kann", "ich", "in", town.text, *german.noun_phrase(np, german.ACCUSATIVE), deed.de],
            ["où", "puis-je", deed.fr, *french.noun_phrase(np), "à", town.text],
            [town.text, "哪里", "可以", deed.zh, *bare_chinese(np)],
        )

    def town_topic(self) -> Query:
        """weather in berlin tomorrow"""
        topic, town, day = self.pick("TOWN_TOPICS"), self.town(), self.maybe_day(0.75)
        return Query(
            joined("NP", topic.en, in_english(town), day.en),
            [*topic.de, "in", town.text, *day.de],
            [*topic.fr, "à", town.text, *day.fr],
            [*day.zh, town.text, "的", *topic.zh],
        )

    def journey(self) -> Query:
        """night train from berlin to paris tomorrow"""
        vehicle, start, goal, day = self.pick("TRANSPORT"), self.town(), self.town(), self.maybe_day()
        route = f"(PP (IN from) {english.noun_phrase(start)}) (PP (TO to) {english.noun_phrase(goal)})"
        return Query(
            joined("NP", f"(NP {vehicle.en})", route, day.en),
            [*vehicle.de, "von", start.text, "nach", goal.text, *day.de],
            [*vehicle.fr, "de", start.text, "à", goal.text, *day.fr],
            [*day.zh, "从", start.text, "到", goal.text, "的", *vehicle.zh],
        )

    def works(self) -> Query:
        """songs by anna keller"""
        by = self.rng.random() < 0.5
        topic, person = self.pick("WORKS" if by else "LIFE"), self.person()
        return Query(
            f"(NP {topic.en} (PP (IN {'by' if by else 'of'}) {english.noun_phrase(person)}))",
            [*topic.de, "von", person.text],
            [*topic.fr, "de", person.text],
            [person.text, "的", *topic.zh],
        )

    def who(self) -> Query:
        """how old is anna keller"""
        person = self.person()
        name, en = person.text, english.noun_phrase(person)
        feminine = "e" if person.gender == "f" else ""
        return self.rng.choice(
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

    def recipe(self) -> Query:
        """recipe for onion soup with cheese and without cream"""
        dish = self.pick("DISHES")
        first, second, third = self.rng.sample(TABLES["INGREDIENTS"].items, 3)
        en, de, fr = f"(PP (IN with) {first.en})", ["mit", *first.de], ["avec", *first.fr]
        zh = ["加", *first.zh]
        if self.rng.random() < 0.35:
            en = f"(PP (IN with) (NP {first.en} (CC and) {second.en}))"
            de, fr, zh = [*de, "und", *second.de], [*fr, "et", *second.fr], [*zh, "和", *second.zh]
        if self.rng.random() < 0.35:
            en = f"(PP {en} (CC and) (PP (IN without) {third.en}))"
            de, fr, zh = [*de, "und", "ohne", *third.de], [*fr, "et", "sans", *third.fr], [*zh, "不", "加", *third.zh]
        return Query(
            f"(NP (NP (NN recipe)) (PP (IN for) (NP {dish.en} {en})))",
            ["rezept", "für", *dish.de, *de],
            ["recette", "de", *dish.fr, *fr],
            [*zh, "的", *dish.zh, "的", "做法"],
        )

    def disease(self) -> Query:
        """symptoms of flu in children"""
        remedy, disease = self.pick("REMEDIES"), self.pick("DISEASES")
        whom = self.of_class(self.rng.choice(("group", "animal")), "bare", plural=True, adjective=0)
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

    def jobs(self) -> Query:
        """jobs for nurses in berlin"""
        town = self.town()
        if self.rng.random() < 0.5:
            trade = self.of_class("trade", "bare", plural=True)
            return Query(
                f"(NP (NP (NNS jobs)) (PP (IN for) {english.noun_phrase(trade)}) {in_english(town)})",
                ["stellen", "für", *german.noun_phrase(trade, german.ACCUSATIVE), "in", town.text],
                ["emplois", "pour", *french.noun_phrase(trade), "à", town.text],
                [town.text, trade.noun.zh, "的", "职位"],
            )
        trade = self.of_class("trade", "a")
        self.facts.kinds.add("genitive")
        return Query(
            f"(NP (NP (NN salary)) (PP (IN of) {english.noun_phrase(trade)}) {in_english(town)})",
            ["gehalt", *german.noun_phrase(trade, german.GENITIVE), "in", town.text],
            ["salaire", "de", *french.noun_phrase(trade), "à", town.text],
            [town.text, trade.noun.zh, "的", "工资"],
        )

    def cost(self) -> Query:
        """how much does a new bike cost in berlin"""
        np = self.of_class("ware", "a")
        place = self.rng.random() < 0.5
        town = self.town() if place else None
        where = f" {in_english(town)}" if town else ""
        question = f"(WHADVP (WRB how) (RB much)) (SQ (VBZ does) {english.noun_phrase(np)} (VP (VB cost){where}))"
        return Query(
            f"(SBARQ {question})",
            ["wie", "viel", "kostet", *german.noun_phrase(np, german.NOMINATIVE), *(["in", town.text] if town else [])],
            ["combien", "coûte", *french.noun_phrase(np), *(["à", town.text] if town else [])],
            [*(["在", town.text] if town else []), *chinese.noun_phrase(np), "多少", "钱"],
        )

    def difference(self) -> Query:
        """difference between a laptop and a tablet"""
        name = self.rng.choice(("device", "appliance", "vehicle", "furniture", "lodging", "animal"))
        first, second = self.rng.sample(NOUNS[name], 2)
        pair = [self.noun_phrase(noun, "a", adjective=0.25) for noun in (first, second)]
        one, other = pair
        both = f"(NP {english.noun_phrase(one)} (CC and) {english.noun_phrase(other)})"
        return Query(
            f"(NP (NP (NN difference)) (PP (IN between) {both}))",
            ["unterschied", "zwischen", *german.noun_phrase(one, 2), "und", *german.noun_phrase(other, 2)],
            ["différence", "entre", *french.noun_phrase(one), "et", *french.noun_phrase(other)],
            [*bare_chinese(one), "和", *bare_chinese(other), "的", "区别"],
        )

    def may_eat(self) -> Query:
        """can dogs eat tomatoes"""
        eater = self.of_class("animal", "bare", plural=True, adjective=0)
        food = self.of_class("edible", "a", plural=True, adjective=0)
        eaters = NounPhrase(eater.noun, "the", plural=True)
        return Query(
            f"(SQ (MD can) {english.noun_phrase(eater)} (VP (VB eat) {english.noun_phrase(food)}))",
            ["dürfen", *german.noun_phrase(eater, 0), *german.noun_phrase(food, 1), "fressen"],
            ["est-ce", "que", *french.noun_phrase(eaters), "peuvent", "manger", *french.noun_phrase(food)],
            [eater.noun.zh, "能", "吃", food.noun.zh, "吗"],
        )

    def outing(self) -> Query:
        """what to do in berlin with children tomorrow"""
        town, day = self.town(), self.maybe_day()
        group = self.of_class("group", "a", plural=True, adjective=0)
        ending = f"{in_english(town)} (PP (IN with) {english.noun_phrase(group)})"
        self.facts.kinds.add("infinitive")
        return Query(
            f"(SBAR (WHNP (WP what)) (S (VP (TO to) {joined('VP', '(VB do)', ending, day.en)})))",
            ["was", "kann", "man", *day.de, "in", town.text, "mit", *german.noun_phrase(group, 2), "unternehmen"],
            ["que", "faire", "à", town.text, "avec", *french.noun_phrase(group), *day.fr],
            [*day.zh, "在", town.text, "可以", "和", group.noun.zh, "一起", "做", "什么"],
        )

    def rent(self) -> Query:
        """rent a quiet apartment in berlin for three days"""
        np, town, days = self.of_class("hired", "a"), self.town(), self.pick("AMOUNTS")
        how_long = f"(PP (IN for) (NP (CD {days.en}) (NNS days)))"
        self.facts.kinds.add("infinitive")
        return Query(
            f"(VP (VB rent) {english.noun_phrase(np)} {in_english(town)} {how_long})",
            [*german.noun_phrase(np, german.ACCUSATIVE), "in", town.text, "für", *days.de, "tage", "mieten"],
            ["louer", *french.noun_phrase(np), "à", town.text, "pour", *days.fr, "jours"],
            ["在", town.text, "租", *bare_chinese(np), *days.zh, "天"],
        )

    def hours(self) -> Query:
        """opening hours of the library in berlin"""
        np, town = self.of_class("open", "the", adjective=0.15), self.town()
        day = self.maybe_day(0.3)
        self.facts.kinds.add("genitive")
        head = "(NP (NN opening) (NNS hours))"
        return Query(
            joined("NP", head, f"(PP (IN of) {english.noun_phrase(np)})", in_english(town), day.en),
            ["öffnungszeiten", *german.noun_phrase(np, german.GENITIVE), "in", town.text, *day.de],
            ["horaires", *french.with_preposition("de", french.noun_phrase(np)), "à", town.text, *day.fr],
            [*day.zh, town.text, *bare_chinese(np), "的", "开放", "时间"],
        )


PATTERNS = Zipf(
    [
        QueryDeriver.sites,
        QueryDeriver.errand,
        QueryDeriver.how_to,
        QueryDeriver.wares,
        QueryDeriver.where_to,
        QueryDeriver.journey,
        QueryDeriver.works,
        QueryDeriver.rent,
        QueryDeriver.recipe,
        QueryDeriver.cost,
        QueryDeriver.town_topic,
        QueryDeriver.outing,
        QueryDeriver.who,
        QueryDeriver.hours,
        QueryDeriver.disease,
        QueryDeriver.jobs,
        QueryDeriver.difference,
        QueryDeriver.may_eat,
    ],
    12,
)

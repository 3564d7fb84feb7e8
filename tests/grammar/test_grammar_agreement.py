"""The grammar's languages obey their grammars, in hand-written cases."""

import pytest

from pipeline.grammar import chinese, english, french, german
from pipeline.grammar.corpus import capitalised, chinese_text, running_text, single_commas
from pipeline.grammar.lexicon import ADJECTIVES, NOUNS, NUMBERS, SUBORDINATORS, TIME, VERBS
from pipeline.grammar.structure import (
    ME,
    THEY,
    THIRD,
    YOU,
    Clause,
    Name,
    NounPhrase,
    Place,
    Pronoun,
    Relative,
    Statement,
    Utterance,
)


def noun(key):
    return next(noun for noun in NOUNS if noun.key == key)


def verb(base, german=None):
    return next(verb for verb in VERBS if verb.en.base == base and german in (None, verb.de.infinitive))


def adjective(word, kind):
    return next(adjective for adjective in ADJECTIVES if adjective.en == word and kind in adjective.classes)


def the(key, *adjectives, plural=False, determiner="the"):
    return NounPhrase(noun(key), determiner, plural, adjectives=adjectives)


def phrase(table, german_words):
    return next(phrase for phrase in table if phrase.de == tuple(german_words.split()))


def subordinator(word):
    return phrase([phrase for phrase, _ in SUBORDINATORS], word)


def texts(statement, question=""):
    """Return the English, German, French and Chinese text of a statement or clause."""
    statement = Statement(statement) if isinstance(statement, Clause) else statement
    utterance = Utterance(statement, question)
    return (
        running_text(english.tokens(english.sentence(utterance))),
        capitalised(running_text(single_commas(german.sentence(utterance)))),
        capitalised(running_text(french.elide(french.sentence(utterance)), space_before=frozenset("?"))),
        chinese_text(chinese.sentence(utterance)),
    )


OLD = adjective("old", "person")


FORMS = {
    ("the", "man", False): "der alte Mann|den alten Mann|dem alten Mann|des alten Mannes",
    ("the", "woman", False): "die alte Frau|die alte Frau|der alten Frau|der alten Frau",
    ("the", "child", False): "das alte Kind|das alte Kind|dem alten Kind|des alten Kindes",
    ("the", "man", True): "die alten Männer|die alten Männer|den alten Männern|der alten Männer",
    ("a", "man", False): "ein alter Mann|einen alten Mann|einem alten Mann|eines alten Mannes",
    ("a", "woman", False): "eine alte Frau|eine alte Frau|einer alten Frau|einer alten Frau",
    ("a", "child", False): "ein altes Kind|ein altes Kind|einem alten Kind|eines alten Kindes",
    ("a", "man", True): "alte Männer|alte Männer|alten Männern|alter Männer",
    ("no", "man", True): "keine alten Männer|keine alten Männer|keinen alten Männern|keiner alten Männer",
    ("this", "king", False): "dieser alte König|diesen alten König|diesem alten König|dieses alten Königs",
    ("the", "neighbour", False): "der alte Nachbar|den alten Nachbarn|dem alten Nachbarn|des alten Nachbarn",
    ("some", "king", True): "einige alte Könige|einige alte Könige|einigen alten Königen|einiger alter Könige",
}


@pytest.mark.parametrize(("determiner", "key", "plural"), FORMS)
def test_german_noun_phrases_agree_in_gender_case_and_number(determiner, key, plural):
    np = the(key, OLD, plural=plural, determiner=determiner)
    forms = [" ".join(german.noun_phrase(np, case)) for case in range(4)]
    assert forms == FORMS[determiner, key, plural].split("|")


@pytest.mark.parametrize(
    ("np", "expected"),
    [
        (the("camera", adjective("old", "device"), determiner="a"), "un vieil appareil photo"),
        (the("woman", OLD), "la vieille femme"),
        (the("coat", adjective("red", "clothes"), plural=True), "les manteaux rouges"),
        (the("dress", adjective("new", "clothes"), adjective("white", "clothes")), "la nouvelle robe blanche"),
        (the("friend", determiner="this"), "cet ami"),
        (the("hero", determiner="the"), "le héros"),
        (the("apple", adjective("small", "solid"), plural=True, determiner="a"), "de petites pommes"),
        (the("story", determiner="many", plural=True), "beaucoup d'histoires"),
        (the("potato", plural=True), "les pommes de terre"),
    ],
)
def test_french_agrees_and_elides(np, expected):
    assert running_text(french.elide(french.noun_phrase(np))) == expected


def test_french_possessive_is_masculine_before_a_vowel():
    owners = (("school", Pronoun(ME)), ("house", Pronoun(THIRD, "m")))
    phrases = [french.noun_phrase(NounPhrase(noun(key), "my", owner=owner)) for key, owner in owners]
    assert phrases == [["mon", "école"], ["sa", "maison"]]


@pytest.mark.parametrize(
    ("key", "text"),
    [("castle", "Il va au château."), ("hospital", "Il va à l'hôpital."), ("school", "Il va à l'école.")],
)
def test_french_prepositions_contract_except_before_vowels(key, text):
    assert texts(Clause(Pronoun(THIRD), verb("go", "gehen"), "present", object=the(key)))[2] == text


def test_french_participle_agrees_with_etre_or_preceding_object():
    came = Clause(Pronoun(THIRD, "f", "f", "f"), verb("come", "kommen"), "past", object=Name("Paris", "n", town=True))
    assert "venue" in texts(came)[2]
    letter = the("letter", determiner="a")
    letter.relative = Relative("object", Clause(Name("Paul", "m"), verb("write"), "past"))
    text = texts(Clause(Name("Anna", "f"), verb("read"), "past", object=letter))[2]
    assert text == "Anna a lu une lettre que Paul a écrite."


def test_german_verb_is_second_or_last_by_clause_type():
    main = Clause(the("man"), verb("call"), "past", object=the("doctor"))
    main.time, main.time_first = phrase(TIME["past"], "letzte Nacht"), True
    reason = Clause(the("child"), verb("wake"), "past")
    assert texts(Statement(main, subordinator("weil"), reason)) == (
        "Last night, the man called the doctor because the child woke up.",
        "Letzte Nacht hat der Mann den Arzt angerufen, weil das Kind aufgewacht ist.",
        "La nuit dernière, l'homme a appelé le médecin parce que l'enfant s'est réveillé.",
        "因为孩子醒了，所以昨晚男人给医生打了电话。",
    )


def test_fronted_subordinate_clause_takes_the_first_place():
    main = Clause(Pronoun(YOU), verb("open"), "present", object=the("door"))
    condition = Clause(the("dog"), verb("bark"), "present")
    statement = Statement(main, subordinator("wenn"), condition, subordinate_first=True)
    assert texts(statement)[1] == "Wenn der Hund bellt, öffnest du die Tür."


def test_german_separable_prefix_closes_the_clause():
    paul = Name("Paul", "m")
    calls = Clause(Name("Anna", "f"), verb("call"), "present", object=paul)
    to_call = Clause(None, calls.verb, "present", object=paul)
    says = Clause(Pronoun(THEY), verb("say"), "present", complement=calls)
    tries = Clause(Pronoun(ME), verb("try"), "past", infinitive=to_call)
    assert [texts(clause)[1] for clause in (calls, says, tries)] == [
        *("Anna ruft Paul an.", "Sie sagen, dass Anna Paul anruft.", "Ich habe versucht, Paul anzurufen."),
    ]


@pytest.mark.parametrize(
    ("role", "key", "pronoun"),
    [("subject", "man", "der"), ("object", "man", "den"), ("object", "woman", "die"), ("object", "child", "das")],
)
def test_german_relative_pronoun_has_gender_and_case(role, key, pronoun):
    head = the(key)
    inner = Clause(None, verb("see"), "past", object=the("dog"), agreement=head)
    if role == "object":
        inner = Clause(the("dog"), verb("see"), "past")
    head.relative = Relative(role, inner)
    words = german.noun_phrase(head, german.NOMINATIVE)
    assert words[2:4] == [",", pronoun]
    assert words[-3:] == ["gesehen", "hat", ","]


def test_helfen_governs_the_dative_even_in_relative_clauses():
    head = the("woman", plural=True)
    head.relative = Relative("object", Clause(the("boy"), verb("help"), "past"))
    assert " ".join(german.noun_phrase(head, 0)) == "die Frauen , denen der Junge geholfen hat ,"


def test_negation_takes_each_languages_form():
    clause = Clause(the("man"), verb("buy"), "past", object=the("book", determiner="no"), negation="not")
    assert texts(clause) == (
        "The man did not buy a book.",
        "Der Mann hat kein Buch gekauft.",
        "L'homme n'a pas acheté de livre.",
        "男人没有买书。",
    )


def test_chinese_relative_clauses_precede_the_noun():
    man = the("man", determiner="a")
    man.relative = Relative("subject", Clause(None, verb("buy"), "past", object=the("horse"), agreement=man))
    assert chinese_text(chinese.noun_phrase(man)) == "一个买马的男人"
    three = NounPhrase(noun("book"), "number", True, number=phrase(NUMBERS, "drei"))
    assert chinese_text(chinese.noun_phrase(three)) == "三本书"


def test_the_object_decides_the_translation_of_the_verb():
    def play(key):
        sense = next(v for v in VERBS if v.en.base == "play" and not v.en.fixed and noun(key).classes & set(v.objects))
        return texts(Clause(Pronoun(THIRD, "f", "f", "f"), sense, "present", object=the(key)))[3]

    assert (play("piano"), play("violin"), play("flute")) == ("她弹钢琴。", "她拉小提琴。", "她吹笛子。")


def test_pronouns_have_the_gender_of_the_thing_in_each_language():
    lamp = noun("lamp")
    it = Pronoun(THIRD, "n", lamp.de_gender, lamp.fr_gender, human=False)
    sold = texts(Clause(Name("Paul", "m"), verb("sell"), "past", object=it))
    assert sold == ("Paul sold it.", "Paul hat sie verkauft.", "Paul l'a vendue.", "Paul卖掉了它。")


def test_idioms_are_not_translated_word_by_word():
    idiom = next(verb for verb in VERBS if verb.key == "kick the bucket")
    english_text, *others = texts(Clause(Name("Rolf", "m"), idiom, "past"))
    assert english_text == "Rolf kicked the bucket."
    assert others == ["Rolf hat ins Gras gebissen.", "Rolf a cassé sa pipe.", "Rolf翘了辫子。"]


def test_questions_invert():
    clause = Clause(Name("Eva", "f"), verb("buy"), "past", object=the("car"), place=Place("in", Name("Lyon", "n")))
    assert texts(clause, "yes") == (
        "Did Eva buy the car in Lyon?",
        "Hat Eva das Auto in Lyon gekauft?",
        "Est-ce qu'Eva a acheté la voiture à Lyon ?",
        "Eva在Lyon买了汽车吗？",
    )

"""Tokenisation and segmentation lose only white space, and detokenisation restores ordinary text."""

import random

import pytest
from sacremoses import MosesTokenizer
from time_limit import within
from toy_corpus import make_dataset, random_lines
from written_languages import WRITTEN

from pipeline.data.text.cleaning import prepare_chunk
from pipeline.data.text.segmentation import dictionary, segment
from pipeline.data.text.spacing import correct_spaces, spaces_in
from pipeline.data.text.tokenisation import detokenise, tokenise

PERL = [
    ("en", "Don't worry, it's 3.50 (net) & fine.", "Don 't worry , it 's 3.50 ( net ) & fine ."),
    ("en", 'He said: "No [maybe] | <b>"', 'He said : " No [ maybe ] | < b > "'),
    ("en", "A well-known U.S. company.", "A well-known U.S. company ."),
    ("en", "The 1990's were John's; the Smiths' weren't.", "The 1990 's were John 's ; the Smiths ' weren 't ."),
    ("en", "See No. 7, pp. 3-9, e.g. Fig. 2.", "See No. 7 , pp. 3-9 , e.g. Fig . 2 ."),
    ("en", "What?! Really... yes -- no.", "What ? ! Really ... yes -- no ."),
    ("en", "a,b,c,1,000,d", "a , b , c , 1,000 , d"),
    ("en", "He's O'Brien's 'friend'.", "He 's O 'Brien 's ' friend ' ."),
    ("en", "Don't pay 3,000.50 to U.S. firms.", "Don 't pay 3,000.50 to U.S. firms ."),
    ("en", "e-mail: me@x.org, http://x.org/a?b=c&d=e", "e-mail : me @ x.org , http : / / x.org / a ? b = c & d = e"),
    ("en", "It rose 3.5% (from 2.0%) in Q1/2014.", "It rose 3.5 % ( from 2.0 % ) in Q1 / 2014 ."),
    ("en", "Rock 'n' roll.", "Rock ' n ' roll ."),
    ("de", "Das ist z. B. gut; 3,5 % mehr!", "Das ist z. B. gut ; 3,5 % mehr !"),
    ("de", "„Ja“, sagte Müller-Lüdenscheidt.", "„ Ja “ , sagte Müller-Lüdenscheidt ."),
    ("de", "Am 24. Dez. 2013 zahlte Dr. Weiß 1.234,50 €.", "Am 24. Dez . 2013 zahlte Dr. Weiß 1.234,50 € ."),
    ("de", "Usw. usf. ... und so weiter.", "Usw. usf. ... und so weiter ."),
    ("de", "»Nein«, rief er: ›Halt!‹", "» Nein « , rief er : › Halt ! ‹"),
    ("de", "Prof. Dr. h.c. Meier wohnt in St. Gallen.", "Prof. Dr. h.c. Meier wohnt in St. Gallen ."),
    ("de", "Das kostet 5,- Euro.", "Das kostet 5 , - Euro ."),
    ("de", "Straße, Größe, ÄÖÜ & ß.", "Straße , Größe , ÄÖÜ & ß ."),
    ("fr", "L'été, c'est aujourd'hui : 3 %.", "L' été , c' est aujourd' hui : 3 % ."),
    ("fr", "Qu'est-ce que c'est ?", "Qu' est-ce que c' est ?"),
    ("fr", "« Bonjour », dit-il à M. Dupont.", "« Bonjour » , dit-il à M. Dupont ."),
    ("fr", "Jusqu'à 1 234,5 € (env.) l'année.", "Jusqu' à 1 234,5 € ( env. ) l' année ."),
    ("fr", "L'U.E. et l'O.N.U. n'ont pas d'accord.", "L' U.E. et l' O.N.U. n' ont pas d' accord ."),
    ("fr", "Presqu'île, s'il vous plaît !", "Presqu' île , s' il vous plaît !"),
    ("fr", "L'eau d'Aix", "L' eau d' Aix"),
]
"""Language, line, and what Moses' `tokenizer.perl -no-escape` makes of it, at 59119c004 (2016) and 75d4c672e (2021)."""
PERL_AT_THE_END = [
    (
        "en",
        "Mr. Smith paid $3,000.50 on Jan. 5, 2014, at 5 p.m. in the U.K.",
        "Mr. Smith paid $ 3,000.50 on Jan. 5 , 2014 , at 5 p.m. in the U.K.",
    ),
    ("en", "The end of the U.S.", "The end of the U.S."),
    ("en", "I saw Dr.", "I saw Dr."),
    ("de", "Der 3. Oktober ist's.", "Der 3. Oktober ist ' s."),
    (
        "de",
        "Die E-Mail- und SMS-Nachrichten (ca. 20) kamen bzgl. Nr. 5.",
        "Die E-Mail- und SMS-Nachrichten ( ca. 20 ) kamen bzgl. Nr. 5.",
    ),
    ("fr", "Art. 5, p. 12, etc.", "Art . 5 , p. 12 , etc."),
]
"""The same for lines that may end in an abbreviation or ordinal number, at 59119c004; later the stop is split."""


@pytest.mark.parametrize(("language", "line", "tokens"), [*PERL, *PERL_AT_THE_END])
def test_tokens_are_those_of_tokenizer_perl(language, line, tokens):
    assert tokenise(line, language) == tokenise(f" {line}\t", language) == tokens


@pytest.mark.parametrize("line", ["He said: 'Go home.'", "U.S.&.'"])
@pytest.mark.parametrize("language", ["en", "de", "fr"])
def test_a_stop_and_a_quote_at_the_end_leave_no_empty_word(language, line):
    """Moses separates `.'` only after it has removed extra spaces."""
    words = tokenise(line, language).split(" ")
    assert "" not in words and words[-2:] == [".", "'"] and "".join(words) == line.replace(" ", "")


@pytest.mark.parametrize("language", ["en", "de", "fr", "zh", "th"])
def test_more_than_one_space_between_tokens_counts_as_one(language, seed):
    draw = random.Random(seed)
    for line in [*random_lines(50, seed), "⁇ ⁇ - a", ""]:
        spread = "".join(token + " " * draw.randint(1, 3) for token in ["", *line.split()])
        assert detokenise(spread, language) == detokenise(line, language)


@pytest.mark.parametrize("language", WRITTEN)
def test_typographic_marks_come_back_as_written(language):
    for line in WRITTEN[language]:
        assert detokenise(tokenise(line, language), language) == line


def test_an_entity_comes_back_as_written():
    assert detokenise(tokenise("Tom &amp; Jerry", "en"), "en") == "Tom &amp; Jerry"


@pytest.mark.parametrize(
    "line",
    [
        "他，在车站忘记了两张地图。",
        "他说：“好的”，然后……Anna Keller走了。",
        "《书》（三本）！",
        "UTF-8和cmd.exe用了5,000次。",
    ],
)
@pytest.mark.parametrize("segmenter", ["jieba", "characters"])
def test_chinese_comes_back_without_spaces(line, segmenter):
    assert detokenise(segment(line, segmenter), "zh") == line


@pytest.mark.parametrize("language", ["en", "de", "fr"])
def test_words_that_end_in_a_stop_are_split_as_by_sacremoses(seed, language):
    """Their letters, of any script and case, and the word after them decide."""
    draw, theirs = random.Random(seed), MosesTokenizer(lang=language)
    parts = [*"aBéÉßжЖ中5ªǅ²’'-_", ".", ".", "No", "U.S", "z.B", " ", " "]
    for _ in range(300):
        line = "".join(draw.choices(parts, k=draw.randint(1, 12))) + "."
        assert tokenise(f"{line} {line}", language).split() == theirs.tokenize(f"{line} {line}", escape=False)


def test_ascii_text_stays_as_moses_joined_it(seed):
    draw = random.Random(seed)
    for _ in range(100):
        tokens = [draw.choice(["a", "bc", "1", ",", ".", "[", "]", "'s", '"']) for _ in range(6)]
        text = "".join(token + draw.choice(["", " "]) for token in tokens).strip()
        assert correct_spaces(tokens, text, "en") == text
        spaces = [" " * count for count in (*spaces_in(tokens, text), 0)]
        assert "".join(map("".join, zip(tokens, spaces, strict=True))) == text


MIXED = "Anna Keller去年买了3.5公斤苹果，好吗？"


def test_characters_are_single_and_other_scripts_stay_whole():
    assert segment(MIXED, "characters") == "Anna Keller 去 年 买 了 3 . 5 公 斤 苹 果 ， 好 吗 ？"


@pytest.mark.parametrize(
    ("segmenter", "expected"), [("jieba", "我 喜欢 北京 。\n"), ("characters", "我 喜 欢 北 京 。\n")]
)
def test_the_dataset_chooses_for_the_chinese_side_alone(segmenter, expected):
    dataset = make_dataset(src="zh", tgt="en", segmenter=segmenter)
    chunk = prepare_chunk([("我 喜欢北京。".encode(), b"I like Beijing.")], dataset, drop_outliers=False)
    assert chunk.tokens == (expected, "I like Beijing .\n")


@pytest.mark.parametrize("segmenter", ["jieba", "characters"])
def test_equal_ideographs_take_linear_time(segmenter):
    line = random.choice("的哈龘") * 100_000
    segment(MIXED, segmenter)  # reads the dictionary
    with within(5):
        words = segment(line, segmenter)
    assert words.replace(" ", "") == line


def test_runs_of_usual_length_are_segmented_as_jieba_does():
    line = "".join(random.choices("我喜欢北京他说去年买了苹果", k=400)) + "。" + "北京" * 200 + "OK"
    assert segment(line, "jieba").split(" ") == list(dictionary().cut(line))


@pytest.mark.parametrize("token", ["—", "…", "’", "“", "— a", "’ n ’"])
def test_long_lines_of_marks_take_linear_time(token):
    with within(5):
        detokenise(" ".join([token] * 50_000), random.choice(["en", "es", "nl", "it"]))

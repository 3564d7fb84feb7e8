"""Tokenisation loses white space only, and detokenisation restores ordinary text."""

import random

import pytest
from toy_corpus import random_lines

from pipeline.data.text.tokenisation import detokenise, tokenise

SENTENCES = {
    "en": ["Don't worry, it's 3.50 (net) & fine.", 'He said: "No [maybe] | <b>"', "A well-known U.S. company."],
    "de": ["Das ist z. B. gut; 3,5 % mehr!", "„Ja“, sagte Müller-Lüdenscheidt.", "Der 3. Oktober ist's."],
    "fr": ["L'été, c'est aujourd'hui : 3 %.", "Qu'est-ce que c'est ?"],
}


@pytest.mark.parametrize("language", SENTENCES)
def test_tokens_are_the_text_split_by_single_spaces(language):
    for line in SENTENCES[language]:
        tokens = tokenise(f" {line}\t", language)
        assert tokens.replace(" ", "") == line.replace(" ", "")
        assert "  " not in tokens and tokens == tokens.strip()


@pytest.mark.parametrize("line", ["He said: 'Go home.'", "U.S.&.'"])
@pytest.mark.parametrize("language", SENTENCES)
def test_a_stop_and_a_quote_at_the_end_leave_no_empty_word(language, line):
    """Moses separates `.'` only after it has removed extra spaces."""
    words = tokenise(line, language).split(" ")
    assert "" not in words and words[-2:] == [".", "'"] and "".join(words) == line.replace(" ", "")


@pytest.mark.parametrize("language", ["en", "de"])
def test_ordinary_text_comes_back(language, seed):
    lines = [line for line in random_lines(50, seed) if not {"&", "don't"} & set(line.split())]
    assert [detokenise(tokenise(f"{line}, yes.", language), language) for line in lines] == [
        f"{x}, yes." for x in lines
    ]


@pytest.mark.parametrize("language", ["en", "de", "fr", "zh", "th"])
def test_more_than_one_space_between_tokens_counts_as_one(language, seed):
    draw = random.Random(seed)
    for line in [*random_lines(50, seed), "⁇ ⁇ - a", ""]:
        spread = "".join(token + " " * draw.randint(1, 3) for token in ["", *line.split()])
        assert detokenise(spread, language) == detokenise(line, language)


def test_moses_conventions():
    assert tokenise("Don't pay 3,000.50 to U.S. firms.", "en") == "Don 't pay 3,000.50 to U.S. firms ."
    assert tokenise("L'eau d'Aix", "fr") == "L' eau d' Aix"
    assert tokenise("well-known", "en") == "well-known"

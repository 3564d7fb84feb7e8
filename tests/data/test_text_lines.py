"""Order and content of the lines that text is taken from."""

import time
from itertools import islice
from random import Random

import pytest

from pipeline.data.dataset import FetchedText, GrammarText
from pipeline.data.speech.collect_text import fetched_lines, grammar_lines, keywords, segment_text
from pipeline.grammar.corpus import endless


def test_keywords_are_the_distinct_words_of_a_line_shuffled():
    line = "The man didn't see the well-known man."
    found = keywords(line, Random(1)).split()
    assert sorted(found) == ["didn't", "man", "see", "the", "well-known"]
    orders = {keywords("one two three four five six", Random(seed)) for seed in range(5)}
    assert len(orders) == 5 and keywords(line, Random(1)) == " ".join(found)


def fetched(in_turn, **first):
    parts = [{"source": "a.en", **first}, {"source": "b.en"}]
    sources = {name: {"urls": [f"http://127.0.0.1:9/{name}"], "sha256": "0" * 64} for name in ("a.en", "b.en")}
    return FetchedText(kind="fetched", sources=sources, splits={"train": parts}, in_turn=in_turn)


def test_parts_of_a_split_are_chained_or_interleaved(tmp_path):
    (tmp_path / "a").write_text("a 1\na 2\na 3\n")
    (tmp_path / "b").write_text("b 1\n", encoding="utf-8-sig")  # as editors on Windows do
    files = {"a.en": tmp_path / "a", "b.en": tmp_path / "b"}
    lines = {turns: [line for _, line in fetched_lines(fetched(turns), files)] for turns in (False, True)}
    assert lines == {False: ["a 1", "a 2", "a 3", "b 1"], True: ["a 1", "b 1", "a 2", "a 3"]}
    shuffled = [line for _, line in fetched_lines(fetched(False, keywords=True, lines=2), files)]
    assert [sorted(line.split()) for line in shuffled] == [["1", "a"], ["2", "a"], ["1", "b"]]


def test_queries_are_searches_in_turn_with_the_words_of_films():
    text = GrammarText(kind="grammar", domains=["queries"], sizes={"train": 200, "dev": 1, "test": 1}, seed=1)
    lines = [line for split, line in grammar_lines(text) if split == "train"]
    search = endless("search", Random("grammar/queries/1/train"), held_out=False)
    assert lines[0] == next(search).en
    film = {word.lower() for line in islice(endless("film", Random(3), False), 5000) for word in line.en[:-1].split()}
    known = [word in film or f"{word}," in film for line in lines[1::2] for word in line.split()]
    assert sum(known) > 0.95 * len(known) and all(
        len(set(words)) == len(words) for words in map(str.split, lines[1::2])
    )


@pytest.mark.parametrize("unit", ["(", "{", "<sil", " '", "(2", "{x "])
def test_unclosed_marks_of_stm_take_linear_time(unit):
    began = time.monotonic()
    assert segment_text(f"talk 1 speaker 0 1 <o> word(2) {{noise}} {unit * 100_000}").startswith("word")
    assert time.monotonic() - began < 5

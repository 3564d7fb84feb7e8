"""Lines of text: reading, order, checks, and sentences or speakers that several splits share."""

import hashlib
import random
from itertools import islice
from random import Random

import pytest
from made_records import decoded
from own_speech import own, write_manifests, write_noise
from time_limit import within

from pipeline.core.digests import require_digest
from pipeline.core.errors import UserError
from pipeline.core.records.corpus import PreparedSpeech
from pipeline.data.dataset import FetchedText, GrammarText
from pipeline.data.speech.collect_text import fetched_lines, grammar_lines, keywords, segment_text
from pipeline.data.speech.features import compute_features
from pipeline.data.speech.manifest import Utterance
from pipeline.data.text.checks import check_untokenised, comparison_key, shared_sentences
from pipeline.data.text.text_files import read_lines
from pipeline.grammar import new_items
from pipeline.grammar.corpus import endless
from pipeline.outputs.score_text import training_digest


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
    lines = {turns: [line for _, line in fetched_lines(fetched(turns), files, tmp_path)] for turns in (False, True)}
    assert lines == {False: ["a 1", "a 2", "a 3", "b 1"], True: ["a 1", "b 1", "a 2", "a 3"]}
    shuffled = [line for _, line in fetched_lines(fetched(False, keywords=True, lines=2), files, tmp_path)]
    assert [sorted(line.split()) for line in shuffled] == [["1", "a"], ["2", "a"], ["1", "b"]]


def test_queries_are_searches_in_turn_with_the_words_of_films():
    text = GrammarText(kind="grammar", domains=["queries"], sizes={"train": 200, "dev": 1, "test": 1}, seed=1)
    lines = [line for split, line in grammar_lines(text, "sizes") if split == "train"]
    search = endless("search", Random("grammar/queries/1/train"), held_out=False)
    assert lines[0] == next(search).en
    film = {word.lower() for line in islice(endless("film", Random(3), False), 2000) for word in line.en[:-1].split()}
    known = [word in film or f"{word}," in film for line in lines[1::2] for word in line.split()]
    assert sum(known) > 0.95 * len(known)
    assert all(len(set(words)) == len(words) for words in map(str.split, lines[1::2]))


def test_more_queries_than_exist_end_in_one_error(monkeypatch):
    """The grammar counts as exhausted at its first repeat here."""
    monkeypatch.setattr(new_items, "MOST_REPEATS", 1)
    text = GrammarText(kind="grammar", domains=["search"], sizes={"train": 10**9, "dev": 1, "test": 1}, seed=1)
    with pytest.raises(UserError, match=r"^toy\.yaml: text\.sizes\.train: asks for 1000000000, but .*; write at most"):
        list(grammar_lines(text, "toy.yaml: text.sizes"))


@pytest.mark.parametrize("unit", ["(", "{", "<sil", " '", "(2", "{x "])
def test_unclosed_marks_of_stm_take_linear_time(unit):
    with within(5):
        assert segment_text(f"talk 1 speaker 0 1 <o> word(2) {{noise}} {unit * 100_000}").startswith("word")


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("a\u2028b\x0cc\r\nd\n\ne".encode(), ["a\u2028b\x0cc\r", "d", "", "e"]),
        (b"a\n\n", ["a", ""]),
        (b"", []),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
    ],
    ids=["other ends", "an empty last line", "empty", "byte order marks"],
)
def test_lines_end_at_the_line_feed_alone(tmp_path, content, lines):
    (tmp_path / "text").write_bytes(content)
    assert read_lines(tmp_path / "text") == lines


def test_missing_or_non_utf8_text_is_named(tmp_path):
    (tmp_path / "text").write_bytes(b"ab\xff")
    with pytest.raises(UserError, match=r"text: is not UTF-8 \(invalid start byte\)"):
        read_lines(tmp_path / "text")
    with pytest.raises(UserError, match="no such file"):
        read_lines(tmp_path / "nothing")


def test_a_wrong_number_of_lines_or_digest_is_refused(tmp_path):
    (path := tmp_path / "test.de").write_text("ja\n", encoding="utf-8")
    assert read_lines(path, expected=1) == ["ja"]
    require_digest(path, hashlib.sha256(b"ja\n").hexdigest(), "")
    require_digest(tmp_path / "not even read", None, "")
    with pytest.raises(UserError, match="1 line, but the test set has 3003"):
        read_lines(path, expected=3003)
    with pytest.raises(UserError, match=r"test.de: sha256 is .*, expected 00; prepare it again"):
        require_digest(path, "00", "prepare it again")


def test_tokenised_text_is_distinguished_from_raw():
    raw = ["Er kam, sah und ging.", "Wo ist A. ?", "Ein Wort", "Quand même !", "Un mot."] * 20
    code, chinese = [*["ls -l"] * 200, "cp a .", "find ."], [*["我们走吧。"] * 500, *["OK."] * 10, "Mr .", "Dr ."]
    for lines in (raw, ["One odd line .", *raw], [], code, chinese, [*["Well . . ."] * 20, *["Yes."] * 80]):
        check_untokenised("raw", lines)
    for lines in (["Er kam , sah und ging .", "Un mot ."] * 10, ["it &apos;s", "fine"]):
        with pytest.raises(UserError, match="looks tokenised"):
            check_untokenised("tok", lines)


def test_decoded_text_names_the_training_behind_it(tmp_path):
    assert training_digest(tmp_path / "test.txt") is None
    decoded(training="abc", weights="of averaged checkpoints").write(tmp_path / "test.json")
    assert training_digest(tmp_path / "test.txt") == "abc"


def test_shared_sentences_equal_the_intersections_of_sets(tmp_path, caplog):
    sizes = {"train": 300, "dev": 40, "test": 40}
    splits = {split: [f"sentence {random.randrange(200)}" for _ in range(count)] for split, count in sizes.items()}
    splits["test2"] = ["only here"]
    for split, lines in splits.items():
        (tmp_path / split).write_text("".join(f"{line}\n" for line in lines))
    pairs = (("dev", "train"), ("test", "train"), ("dev", "test"))
    expected = {f"{a} and {b}": len({*splits[a]} & {*splits[b]}) for a, b in pairs}
    found = shared_sentences("toy", {split: tmp_path / split for split in splits})
    assert found == {name: count for name, count in expected.items() if count}
    assert f"toy: {found['dev and train']} sentences are in both dev and train" in caplog.text
    assert "test2" not in caplog.text


def test_shared_speakers_are_reported_or_refused(tmp_path):
    def spoken(split, speaker):
        return [Utterance(write_noise(tmp_path / f"{split}.wav", 1.0), "a", speaker, "x", 1.0)]

    speakers = {"train": "ann", "dev": "bob", "test": "ann"}
    manifests = write_manifests(tmp_path, **{split: spoken(split, who) for split, who in speakers.items()})
    compute_features(own(), manifests, tmp_path / "corpus", 1)
    assert PreparedSpeech.read(tmp_path / "corpus/prepared/report.json").shared_speakers == ["ann: train, test"]
    with pytest.raises(UserError, match=r"1 speaker is in several splits \(ann: train, test\).*disjoint_speakers"):
        compute_features(own(disjoint_speakers=True), manifests, tmp_path / "corpus", 1)


FORMS = {
    "white space": ("two  dogs\u00a0run .", "two dogs run."),
    "invisible characters": ("two\u200b dogs\u00ad \u202brun\u202c\ufeff", "two dogs run"),
    "Unicode form": ("cafe\u0301 \u2167 \ufb01n", "café VIII fin"),
    "full width": ("ＡＢＣ１２３", "abc123"),
    "case": ("STRASSE İ ΣΑΣ", "straße i̇ σας"),
    "quotes and dashes": ("“It’s” – `no` ―", "\"It's\" - 'no' -"),
    "quotes that Unicode takes apart": ("wie geht´s, 5″ ｀´", "wie geht's, 5\" ''"),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_one_sentence_have_one_key(form):
    one, other = FORMS[form]
    assert comparison_key(one) == comparison_key(other)


def test_sentences_of_other_letters_have_other_keys(seed):
    letters = "abcdeéèêabcя你好123.!?"
    rng = random.Random(seed)
    lines = {"".join(rng.choices(letters, k=6)) for _ in range(300)}
    assert len({comparison_key(line) for line in lines}) == len(lines)


def test_sentences_shared_in_another_form_are_counted(tmp_path):
    (tmp_path / "train").write_text("My  neighbour WAITS.\ncafe\u0301\nother\n")
    (tmp_path / "test").write_text("My neighbour waits.\ncafé\nnew\n")
    assert shared_sentences("toy", {split: tmp_path / split for split in ("train", "test")}) == {"test and train": 2}

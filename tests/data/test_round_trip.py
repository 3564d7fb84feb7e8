"""Text of every script survives tokens and subwords; losses are measured and reported."""

import random
import unicodedata

import pytest
from toy_corpus import make_dataset, write_raw, write_toy_raw

from pipeline.core.errors import UserError
from pipeline.core.records.corpus import PreparedPairs
from pipeline.data.text.prepare import prepare
from pipeline.data.text.subwords import learn_vocabularies, train
from pipeline.data.text.tokenisation import Tokenisation, detokenise, round_trip, tokenise
from pipeline.data.text.vocabulary import Subwords

RAW = Tokenisation("none")
BLOCK = 0x100


def blocks() -> list[list[str]]:
    """Return the assigned characters of each block of 256 code points, without controls and white space."""
    found = []
    for begin in range(0, 0x30000, BLOCK):
        characters = [chr(code) for code in range(begin, begin + BLOCK)]
        good = [
            character
            for character in characters
            if unicodedata.category(character) not in ("Cc", "Cn", "Co", "Cs", "Zl", "Zp", "Zs")
        ]
        if good:
            found.append(good)
    return found


def test_characters_of_every_block_survive_tokens_and_subwords(tmp_path, seed):
    draw = random.Random(seed)
    lines = []
    for block in blocks():
        words = ["".join(draw.choices(block, k=draw.randint(1, 6))) for _ in range(8)]
        lines += [" ".join(words[:4]), draw.choice(["", "a"]) + " ".join(words[4:])]
    lines += ["a  b\tc\x00\x1f\x07 d", " . "]
    tokens = [RAW.tokens(line, "xx") for line in lines]
    assert tokens == lines and [RAW.text(line, "xx") for line in tokens] == lines
    size = len({*"".join(lines)}) + 5
    (tmp_path / "model").write_bytes(train("bpe", iter(tokens), size, "all"))
    subwords = Subwords(tmp_path / "model")
    assert subwords.decode(subwords.encode(lines)) == lines


def test_lines_that_sentencepiece_skips_are_learnt_from(tmp_path, caplog):
    plain = [f"word {number}" for number in range(40)]
    odd = ["▅▅ άνεμος ▁", "one \x1f two ж", "я " * 200_000]
    (tmp_path / "model").write_bytes(train("bpe", iter([*plain, *odd]), 60, "toy"))
    subwords = Subwords(tmp_path / "model")
    assert subwords.decode(subwords.encode(odd[:2])) == odd[:2]
    assert all(1 not in ids for ids in subwords.encode(odd))


def test_characters_that_stay_unknown_are_logged(tmp_path, caplog, monkeypatch):
    write_toy_raw(tmp_path)
    write_raw(tmp_path, "train", ["a q b"] * 3, ["a b"] * 3)
    dataset = make_dataset(
        subwords={"kind": "bpe", "vocab_size": 9, "sample_pairs": 10}, cleaning={"max_tokens": 9, "max_ratio": 9}
    )
    prepare(dataset, tmp_path, 1)
    monkeypatch.setattr(
        "pipeline.data.text.subwords.split_for_sentencepiece", lambda lines: (line.replace("q", "") for line in lines)
    )
    learn_vocabularies(dataset, tmp_path)
    assert "the vocabulary lacks 1 characters of the sample: ['q']" in caplog.text


def test_the_ceiling_of_what_moses_loses_is_reported(tmp_path, caplog):
    write_toy_raw(tmp_path)
    lines = [f"nume\u0301ro {number} est ferme\u0301 a\u0300 Orle\u0301ans" for number in range(20)]
    write_raw(tmp_path, "test", lines, lines)
    report = prepare(make_dataset(), tmp_path, 1).splits
    assert report["train"].ceiling is None and report["dev"].ceiling > report["test"].ceiling
    assert report["test"].ceiling < 50 and report["test"].changed == 20
    assert "toy test: a perfect translation reaches sacreBLEU" in caplog.text and "the first on line 1;" in caplog.text
    caplog.clear()
    whole = prepare(make_dataset(tokeniser="none"), tmp_path, 1)
    assert whole.splits["test"].ceiling == 100 and "perfect" not in caplog.text
    assert whole == PreparedPairs.read(tmp_path / "prepared/report.json") and whole.tokeniser == "none"
    assert (tmp_path / "prepared/test.tok.de").read_text() == (tmp_path / "prepared/test.de").read_text()


def test_a_round_trip_of_lower_cased_text_ignores_case():
    how = Tokenisation("none", lowercase=True)
    text = ["My Neighbour waits.", "ÉTÉ, DIT-IL."] * 3
    found = round_trip(how, "fr", text, [how.tokens(line, "fr") for line in text])
    assert found.ceiling == 100 and not found.changed


@pytest.mark.parametrize("language", ["cs", "cs-CZ"])
def test_numbers_of_czech_text_stay_apart(language):
    line = "Má v bytě 3 psy a 4."
    assert detokenise(tokenise(line, language), language) == line


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tgt": "ja"}, "moses splits at spaces, but ja has none"),
        ({"tgt": "zh"}, "moses splits at spaces, but zh has none"),
        ({"tokeniser": "none", "tgt": "zh", "segmenter": "jieba"}, "segmenter has no effect"),
        ({"tokeniser": "none", "subwords": {"kind": "word", "vocab_size": 9}}, "needs the words of a tokeniser"),
        ({"tgt": False}, 'write "no" in quotation marks'),
        ({"tgt": "zh_tw"}, "moses splits at spaces, but zh-TW has none"),
        ({"tgt": "txtt"}, "not an ISO 639 code"),
    ],
)
def test_settings_that_do_not_fit_a_language_are_refused(changes, message):
    from pipeline.core.schema import validate
    from pipeline.data.dataset import CorpusRecord

    common = {"name": "x", "title": "t", "licence": "l", "citation": "c", "dev_set": "d", "test_set": "t", "src": "en"}
    common |= {"cleaning": {"max_tokens": 9, "max_ratio": 9}, "tokeniser": "moses", "compound_split": False}
    common |= {"subwords": {"kind": "bpe", "vocab_size": 9, "sample_pairs": 9}, "tgt": "de"}
    with pytest.raises(UserError, match=message):
        validate(CorpusRecord, common | changes, "x.yaml")


def test_unspaced_text_in_a_spaced_language_is_refused(tmp_path):
    write_toy_raw(tmp_path)
    write_raw(tmp_path, "test", ["a b"] * 3, ["他在车站忘记了两张地图。"] * 3)
    with pytest.raises(UserError, match=r"test\.de: has a script without spaces between words, unlike de"):
        prepare(make_dataset(tokeniser="none"), tmp_path, 1)

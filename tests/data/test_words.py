"""A word vocabulary keeps the most frequent words; every other word is one symbol, which decodes to <unk>."""

import json
from collections import Counter

import pytest
from toy_corpus import make_dataset, random_lines, write_toy_raw

from pipeline.core.errors import UserError
from pipeline.data.text.encode import encode
from pipeline.data.text.prepare import prepare
from pipeline.data.text.subwords import learn_vocabularies, train
from pipeline.data.text.vocabulary import UNKNOWN_WORD, Subwords, load_vocabularies
from pipeline.models.settings import BOS, EOS, PAD, UNK


def vocabulary(folder, lines, size):
    (folder / "m.model").write_bytes(train("word", iter(lines), size, "toy.vocab_size"))
    return Subwords(folder / "m.model")


def test_entries_are_the_most_frequent_words(tmp_path, seed):
    lines = random_lines(400, seed)
    counts = Counter(word for line in lines for word in line.split(" "))
    words = vocabulary(tmp_path, lines, 4 + 9)
    assert len(words) == 13
    rarest_kept = min(counts[word] for word in words.words)
    assert all(count <= rarest_kept for word, count in counts.items() if word not in words.words)


def test_each_unknown_word_is_one_symbol_even_beside_another(tmp_path):
    words = vocabulary(tmp_path, ["a b c"] * 3, 7)
    known = words.encode(["a b c"])[0]
    assert words.encode(["a x y c", "zz", "a\u2581 ab"]) == [[known[0], UNK, UNK, known[2]], [UNK], [UNK, UNK]]


def test_unknown_words_decode_to_unk_and_other_ids_to_nothing(tmp_path, seed):
    lines = random_lines(300, seed)
    words = vocabulary(tmp_path, lines, 10)
    ids = words.encode(lines)
    expected = [" ".join(word if word in words.words else UNKNOWN_WORD for word in line.split(" ")) for line in lines]
    assert words.decode([[BOS, *sentence, EOS, PAD] for sentence in ids]) == expected
    assert words.encode(expected) == ids


def test_more_words_than_the_text_has_are_refused():
    with pytest.raises(UserError, match=r"toy\.vocab_size = 9 does not fit this text"):
        train("word", iter(["a b c"]), 9, "toy.vocab_size")


def test_each_side_has_its_words_and_unknown_ones_are_counted(tmp_path):
    write_toy_raw(tmp_path)
    sides = {"subwords": {"kind": "word", "vocab_size": 10}, "tgt_subwords": {"kind": "word", "vocab_size": 8}}
    dataset = make_dataset(**sides)
    prepare(dataset, tmp_path, 1)
    learn_vocabularies(dataset, tmp_path)
    record = encode(dataset, tmp_path, 1)
    src, tgt = load_vocabularies(tmp_path)
    assert record.vocab_sizes == (len(src), len(tgt)) == (10, 8)
    assert json.loads((tmp_path / "subwords.json").read_text())["tgt"]["kind"] == "word"
    for side, words, language in (("src", src, "en"), ("tgt", tgt, "de")):
        text = (tmp_path / f"prepared/test.tok.{language}").read_text().split()
        counts = record.splits["test"]
        assert getattr(counts, f"{side}_tokens") == len(text)
        assert getattr(counts, f"{side}_unknown") == sum(word not in words.words for word in text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe\xff", "not a sentencepiece model; remove it"),
        (b"\xe2\x96\xc2", "not a sentencepiece model; remove it"),
        (b"a\nb", r"the piece '.+' breaks lines"),
    ],
)
def test_model_whose_pieces_are_no_text_is_refused(tmp_path, content, message):
    model = train("word", iter(["xyz other"] * 3), 6, "toy.vocab_size")
    assert model.count(b"xyz") == 1
    (tmp_path / "m.model").write_bytes(model.replace(b"xyz", content))
    with pytest.raises(UserError, match=rf"m\.model: {message}"):
        Subwords(tmp_path / "m.model")

"""Subwords and words are reproducible and reversible; encoded text is the tokenised text."""

import json
from collections import Counter

import numpy as np
import pytest
from toy_corpus import make_dataset, random_lines, write_toy_raw

from pipeline.core.digests import sha256_file
from pipeline.core.errors import UserError
from pipeline.core.records.corpus import read_corpus
from pipeline.data.dataset import BpeSubwords
from pipeline.data.sequence_store import TokenStore
from pipeline.data.text.encode import encode
from pipeline.data.text.prepare import prepare
from pipeline.data.text.subwords import learn_vocabularies, sample, sampled_lines, train
from pipeline.data.text.vocabulary import UNKNOWN_WORD, Subwords, load_vocabularies
from pipeline.models.settings import BOS, EOS, PAD, UNK


@pytest.fixture
def corpus(tmp_path):
    write_toy_raw(tmp_path)
    prepare(make_dataset(), tmp_path, 1)
    return tmp_path


def settings(**changes):
    return BpeSubwords(**{"kind": "bpe", "vocab_size": 60, "sample_pairs": 100, "seed": 1} | changes)


def test_two_trainings_agree_and_the_record_has_their_digest(corpus):
    learn_vocabularies(make_dataset(), corpus)
    first = sha256_file(corpus / "subwords.model")
    learn_vocabularies(make_dataset(), corpus)
    record = json.loads((corpus / "subwords.json").read_text())
    assert first == sha256_file(corpus / "subwords.model") == record["digest"]
    kept = (corpus / "prepared/train.tok.en").read_bytes().count(b"\n")  # cleaning may leave out a random pair
    assert record["sample"] == {"pairs": kept, "of": kept, "seed": 1} and record["vocab_size"] == 60 and kept > 290


def test_the_sample_is_a_function_of_its_seed():
    assert np.array_equal(sample(50, settings()), np.arange(50))
    drawn = sample(5000, settings())
    assert len(np.unique(drawn)) == 100 and (np.diff(drawn) > 0).all() and drawn.max() > 4000
    assert np.array_equal(drawn, sample(5000, settings()))
    assert not np.array_equal(drawn, sample(5000, settings(seed=2)))


def test_the_sample_takes_the_same_lines_of_both_sides(tmp_path, seed):
    files = [tmp_path / "en", tmp_path / "de"]
    for path in files:
        path.write_text("".join(f"{path.name} {n}\u2028\n" for n in range(500)), encoding="utf-8", newline="\n")
    chosen = sample(500, settings(seed=seed))
    assert list(sampled_lines(files, chosen)) == [f"{path.name} {n}\u2028" for path in files for n in chosen]


def test_reserved_ids_and_round_trip(tmp_path, seed):
    lines = random_lines(400, seed)
    (tmp_path / "m.model").write_bytes(train("bpe", iter(lines), 70, "toy"))
    subwords = Subwords(tmp_path / "m.model")
    assert len(subwords) == 70
    ids = subwords.encode(lines)
    assert min(min(sentence) for sentence in ids) > max(PAD, UNK, BOS, EOS)
    assert subwords.decode(ids) == lines
    assert subwords.decode([[BOS, *ids[0], EOS, PAD]]) == lines[:1]
    assert UNK in subwords.encode(["the 犬"])[0]


def test_random_ids_decode_to_words_with_single_spaces(tmp_path, seed):
    (tmp_path / "m.model").write_bytes(train("bpe", iter(random_lines(300, seed)), 40, "subwords.vocab_size"))
    subwords = Subwords(tmp_path / "m.model")
    ids = np.random.default_rng(seed).integers(0, len(subwords), (100, 20))
    ids[:, 5:8] = UNK
    for line in subwords.decode(ids):
        assert "<unk> <unk> <unk>" in line and "" not in line.split(" ")


def test_encoding_does_not_normalise_characters(tmp_path):
    lines = ["ﬁne … ½ Ａ", "e\u0301 é  two spaces"] * 20
    (tmp_path / "m.model").write_bytes(train("bpe", iter(lines), 40, "toy"))
    subwords = Subwords(tmp_path / "m.model")
    assert subwords.decode(subwords.encode(lines)) == lines


def test_very_long_lines_are_learnt_from(tmp_path):
    (tmp_path / "m.model").write_bytes(train("bpe", iter(["ab" * 5000, "cd"]), 12, "toy"))
    assert UNK not in Subwords(tmp_path / "m.model").encode(["abab"])[0]


def test_a_vocabulary_that_does_not_fit_the_text_is_refused():
    for size in (10, 5000):
        with pytest.raises(UserError, match=f"vocab_size.* {size}"):
            train("bpe", iter(random_lines(50, 1)), size, "subwords.vocab_size")


def test_bad_models_are_named(tmp_path):
    with pytest.raises(UserError, match="no such subword model"):
        Subwords(tmp_path / "m.model")
    (tmp_path / "m.model").write_bytes(b"not a model")
    with pytest.raises(UserError, match="not a sentencepiece model"):
        Subwords(tmp_path / "m.model")


@pytest.mark.parametrize("processes", [1, 2])
def test_encoded_text_decodes_to_the_tokenised_text(corpus, processes):
    dataset = make_dataset()
    learn_vocabularies(dataset, corpus)
    record = encode(dataset, corpus, processes)
    subwords = Subwords(corpus / "subwords.model")
    for split, side, language in (("train", "src", "en"), ("dev", "tgt", "de"), ("test", "src", "en")):
        store = TokenStore(corpus / f"encoded/{split}.{side}")
        text = (corpus / f"prepared/{split}.tok.{language}").read_bytes().decode().split("\n")[:-1]
        assert subwords.decode([store[i] for i in range(len(store))]) == text
        assert getattr(record.splits[split], f"{side}_tokens") == store.lengths().sum()
        assert getattr(record.splits[split], f"{side}_changed") == 0
        assert getattr(record.splits[split], f"{side}_unknown") == 0
    assert record == read_corpus(corpus / "encoded")
    assert (record.src, record.tgt, record.vocab_size) == ("en", "de", 60)
    assert record.vocab_digest == sha256_file(corpus / "subwords.model")


def test_the_digest_follows_the_content_alone(corpus):
    dataset = make_dataset()
    learn_vocabularies(dataset, corpus)
    digest = encode(dataset, corpus, 1).digest
    assert digest == encode(dataset, corpus, 2).digest
    path = corpus / "prepared/dev.tok.de"
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[1], lines[0], *lines[2:]]))
    assert encode(dataset, corpus, 1).digest != digest


def test_losses_are_counted(corpus):
    dataset = make_dataset()
    learn_vocabularies(dataset, corpus)
    path = corpus / "prepared/test.tok.de"
    path.write_bytes("\n".join(["犬 A", "A \u2581 A", *["A"] * 18, ""]).encode())
    counts = encode(dataset, corpus, 1).splits["test"]
    assert (counts.tgt_unknown, counts.tgt_changed, counts.src_changed) == (2, 2, 0)  # ▁ is an ordinary character


def test_misaligned_or_missing_text_is_refused(corpus):
    dataset = make_dataset()
    learn_vocabularies(dataset, corpus)
    path = corpus / "prepared/dev.tok.de"
    path.write_bytes(path.read_bytes() + b"one more\n")
    with pytest.raises(UserError, match="split dev: 20 source but 21 target lines"):
        encode(dataset, corpus, 1)
    assert not (corpus / "encoded/corpus.json").exists()
    path.unlink()
    with pytest.raises(UserError, match=r"dev\.tok\.de: no such file; run the stage `prepare`"):
        encode(dataset, corpus, 1)


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


@pytest.mark.parametrize("kind", ["bpe", "word"])
@pytest.mark.parametrize(
    "error", [UserError("train.tok.en: is damaged"), OSError(5, "Input/output error", "train.tok.en")]
)
@pytest.mark.parametrize("read", [0, 2000])
def test_read_error_during_training_is_passed_through(kind, error, read):
    def lines():
        yield from ["a dog sleeps", "the cat sees a bird"] * (read // 2)
        raise error

    with pytest.raises(type(error)) as found:
        train(kind, lines(), 30, "subwords.vocab_size")
    assert found.value is error

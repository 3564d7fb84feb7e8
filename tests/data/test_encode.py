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


@pytest.fixture
def learnt(corpus):
    """The same corpus with its vocabularies."""
    learn_vocabularies(make_dataset(), corpus)
    return corpus


def model(folder, kind, lines, size):
    """Learn a vocabulary."""
    (folder / "m.model").write_bytes(train(kind, iter(lines), size, "toy.vocab_size"))
    return Subwords(folder / "m.model")


def test_two_trainings_agree_and_the_record_has_their_digest(learnt):
    first = sha256_file(learnt / "subwords.model")
    learn_vocabularies(make_dataset(), learnt)
    record = json.loads((learnt / "subwords.json").read_text())
    assert first == sha256_file(learnt / "subwords.model") == record["digest"]
    kept = (learnt / "prepared/train.tok.en").read_bytes().count(b"\n")  # cleaning may leave out a random pair
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
    subwords = model(tmp_path, "bpe", lines, 70)
    assert len(subwords) == 70
    ids = subwords.encode(lines)
    assert min(min(sentence) for sentence in ids) > max(PAD, UNK, BOS, EOS)
    assert subwords.decode(ids) == lines
    assert subwords.decode([[BOS, *ids[0], EOS, PAD]]) == lines[:1]
    assert UNK in subwords.encode(["the 犬"])[0]


def test_random_ids_decode_to_words_with_single_spaces(tmp_path, seed):
    subwords = model(tmp_path, "bpe", random_lines(300, seed), 40)
    ids = np.random.default_rng(seed).integers(0, len(subwords), (100, 20))
    ids[:, 5:8] = UNK
    for line in subwords.decode(ids):
        assert "<unk> <unk> <unk>" in line and "" not in line.split(" ")


@pytest.mark.parametrize(
    ("kind", "lines", "size"),
    [("bpe", random_lines(50, 1), 10), ("bpe", random_lines(50, 1), 5000), ("word", ["a b c"], 9)],
)
def test_a_vocabulary_that_does_not_fit_the_text_is_refused(kind, lines, size):
    with pytest.raises(UserError, match=rf"toy\.vocab_size = {size} does not fit this text"):
        train(kind, iter(lines), size, "toy.vocab_size")


def test_bad_models_are_named(tmp_path):
    with pytest.raises(UserError, match="no such subword model"):
        Subwords(tmp_path / "m.model")
    (tmp_path / "m.model").write_bytes(b"not a model")
    with pytest.raises(UserError, match="not a sentencepiece model"):
        Subwords(tmp_path / "m.model")


@pytest.mark.parametrize("processes", [1, 2])
def test_encoded_text_decodes_to_the_tokenised_text(learnt, processes):
    record, subwords = encode(make_dataset(), learnt, processes), Subwords(learnt / "subwords.model")
    for split, side, language in (("train", "src", "en"), ("dev", "tgt", "de"), ("test", "src", "en")):
        store = TokenStore(learnt / f"encoded/{split}.{side}")
        text = (learnt / f"prepared/{split}.tok.{language}").read_bytes().decode().split("\n")[:-1]
        assert subwords.decode([store[i] for i in range(len(store))]) == text
        counts = [getattr(record.splits[split], f"{side}_{name}") for name in ("tokens", "changed", "unknown")]
        assert counts == [store.lengths().sum(), 0, 0]
    assert record == read_corpus(learnt / "encoded")
    assert (record.src, record.tgt, record.vocab_size) == ("en", "de", 60)
    assert record.vocab_digest == sha256_file(learnt / "subwords.model")


def test_the_digest_follows_the_content_alone(learnt):
    digest = encode(make_dataset(), learnt, 1).digest
    assert digest == encode(make_dataset(), learnt, 2).digest
    path = learnt / "prepared/dev.tok.de"
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[1], lines[0], *lines[2:]]))
    assert encode(make_dataset(), learnt, 1).digest != digest


def test_losses_are_counted(learnt):
    path = learnt / "prepared/test.tok.de"
    path.write_bytes("\n".join(["犬 A", "A \u2581 A", *["A"] * 18, ""]).encode())
    counts = encode(make_dataset(), learnt, 1).splits["test"]
    assert (counts.tgt_unknown, counts.tgt_changed, counts.src_changed) == (2, 2, 0)  # ▁ is an ordinary character


def test_misaligned_or_missing_text_is_refused(learnt):
    path = learnt / "prepared/dev.tok.de"
    path.write_bytes(path.read_bytes() + b"one more\n")
    with pytest.raises(UserError, match="split dev: 20 source but 21 target lines"):
        encode(make_dataset(), learnt, 1)
    assert not (learnt / "encoded/corpus.json").exists()
    path.unlink()
    with pytest.raises(UserError, match=r"dev\.tok\.de: no such file; run the stage `prepare`"):
        encode(make_dataset(), learnt, 1)


def test_entries_are_the_most_frequent_words(tmp_path, seed):
    lines = random_lines(400, seed)
    counts = Counter(word for line in lines for word in line.split(" "))
    words = model(tmp_path, "word", lines, 4 + 9)
    assert len(words) == 13
    rarest_kept = min(counts[word] for word in words.words)
    assert all(count <= rarest_kept for word, count in counts.items() if word not in words.words)


def test_each_unknown_word_is_one_symbol_even_beside_another(tmp_path):
    words = model(tmp_path, "word", ["a b c"] * 3, 7)
    known = words.encode(["a b c"])[0]
    assert words.encode(["a x y c", "zz", "a\u2581 ab"]) == [[known[0], UNK, UNK, known[2]], [UNK], [UNK, UNK]]


def test_unknown_words_decode_to_unk_and_other_ids_to_nothing(tmp_path, seed):
    lines = random_lines(300, seed)
    words = model(tmp_path, "word", lines, 10)
    ids = words.encode(lines)
    expected = [" ".join(word if word in words.words else UNKNOWN_WORD for word in line.split(" ")) for line in lines]
    assert words.decode([[BOS, *sentence, EOS, PAD] for sentence in ids]) == expected
    assert words.encode(expected) == ids


def test_each_side_has_its_words_and_unknown_ones_are_counted(tmp_path):
    write_toy_raw(tmp_path)
    sizes = {"subwords": 10, "tgt_subwords": 8}
    dataset = make_dataset(**{side: {"kind": "word", "vocab_size": size} for side, size in sizes.items()})
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
    trained = train("word", iter(["xyz other"] * 3), 6, "toy.vocab_size")
    assert trained.count(b"xyz") == 1
    (tmp_path / "m.model").write_bytes(trained.replace(b"xyz", content))
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

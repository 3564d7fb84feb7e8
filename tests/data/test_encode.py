"""Subwords are reproducible and reversible; encoded text is the tokenised text."""

import json

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
from pipeline.data.text.vocabulary import Subwords
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
    assert record["sample"] == {"pairs": 300, "of": 300, "seed": 1} and record["vocab_size"] == 60


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

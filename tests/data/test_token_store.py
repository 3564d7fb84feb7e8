"""The token store returns what was written, notices damage, and pads rows correctly."""

import numpy as np
import pytest

from pipeline.core.errors import UserError
from pipeline.data.sequence_store import TokenStore, token_type, write_tokens


def write(stem, sentences, vocab_size):
    with write_tokens(stem, vocab_size) as store:
        for part in (sentences[:7], sentences[7:]):
            store.append(np.array([i for s in part for i in s]), [len(s) for s in part])


@pytest.fixture
def sentences(seed):
    generator = np.random.default_rng(seed)
    return [generator.integers(4, 60000, generator.integers(0, 9)).tolist() for _ in range(20)]


@pytest.mark.parametrize("vocab_size", [1 << 16, (1 << 16) + 1])
def test_sentences_round_trip_in_the_narrowest_integer_type(tmp_path, sentences, vocab_size):
    write(tmp_path / "train.src", sentences, vocab_size)
    store = TokenStore(tmp_path / "train.src")
    assert len(store) == len(sentences)
    assert [store[i].tolist() for i in range(len(store))] == sentences
    assert store.lengths().tolist() == [len(s) for s in sentences]
    assert store.values.dtype == token_type(vocab_size) == np.dtype("<u2" if vocab_size == 1 << 16 else "<u4")


def test_rows_are_padded_and_framed(tmp_path, sentences, seed):
    write(tmp_path / "train.src", sentences, 1 << 16)
    store = TokenStore(tmp_path / "train.src")
    indices = np.random.default_rng(seed).permutation(len(sentences))[:6]
    longest = max(len(sentences[i]) for i in indices)
    for first, last in ((None, 3), (2, None), (2, 3), (None, None)):
        frame = (first is not None) + (last is not None)
        expected = [
            ([] if first is None else [first])
            + sentences[i]
            + ([] if last is None else [last])
            + [0] * (longest - len(sentences[i]))
            for i in indices
        ]
        rows = store.padded(indices, first, last, pad=0)
        assert rows.dtype == np.int64 and rows.shape == (6, longest + frame)
        assert rows.tolist() == expected


@pytest.mark.parametrize("name", ["train.src.tokens", "train.src.offsets"])
def test_missing_and_cut_files_are_named(tmp_path, sentences, name):
    write(tmp_path / "train.src", sentences, 1 << 16)
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(UserError, match=name):
        TokenStore(tmp_path / "train.src")
    path.unlink()
    with pytest.raises(UserError, match=f"{name}: no such file"):
        TokenStore(tmp_path / "train.src")


def test_a_failed_write_leaves_no_store(tmp_path):
    with pytest.raises(ZeroDivisionError), write_tokens(tmp_path / "train.src", 100) as store:
        store.append(np.array([5, 6]), [2])
        raise ZeroDivisionError
    assert not any(tmp_path.iterdir())


def test_an_empty_split_is_readable(tmp_path):
    with write_tokens(tmp_path / "train.src", 100):
        pass
    assert len(TokenStore(tmp_path / "train.src")) == 0

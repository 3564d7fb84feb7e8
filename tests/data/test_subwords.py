"""Read errors while a vocabulary is learnt name the file."""

import pytest

from pipeline.core.errors import UserError
from pipeline.data.text.subwords import train


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

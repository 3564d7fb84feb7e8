"""Who reads which utterance: a draw by the utterance's split and number, whatever its text."""

from dataclasses import dataclass
from random import Random

from pipeline.data.dataset import ReaderPool


@dataclass(frozen=True)
class Reader:
    """A voice with its rate and pitch."""

    voice: str
    words_per_minute: int
    pitch: int

    @property
    def name(self) -> str:
        """As the speaker of a manifest."""
        return self.voice.rpartition("/")[2]


def reader_of(pool: ReaderPool, split: str, number: int) -> Reader:
    """The reader of utterance `number` of `split`."""
    rng = Random(f"readers/{pool.seed}/{split}/{number}")
    return Reader(rng.choice(pool.voices), rng.randint(*pool.words_per_minute), rng.randint(*pool.pitch))

"""Recordings whose header lies: a line each, and no memory that such a file has asked for."""

import resource
import struct
from pathlib import Path

import numpy as np
import pytest
import soundfile

from pipeline.core.errors import UserError
from reprise.sound import features, read_sound

RATE = 16_000
AT_WAV_RATE, AT_FLAC_SAMPLES = 24, 21


@pytest.fixture
def little_memory():
    """Whatever the machine has: 16 GiB of addresses."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 34, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def recorded(path: Path, at: int, lie: bytes) -> Path:
    """A second of silence, with a lie in its header."""
    soundfile.write(path, np.zeros(RATE, np.float32), RATE)
    content = bytearray(path.read_bytes())
    content[at : at + len(lie)] = lie
    path.write_bytes(content)
    return path


@pytest.mark.usefixtures("little_memory")
def test_a_header_that_says_an_absurd_rate_is_refused(tmp_path):
    sound = read_sound(recorded(tmp_path / "a.wav", AT_WAV_RATE, struct.pack("<I", 2**31 - 1)))
    with pytest.raises(UserError, match=r"a\.wav: says that it has 2,147,483,647 samples a second"):
        features("a.wav", *sound, RATE, 7600.0)


@pytest.mark.usefixtures("little_memory")
def test_a_header_that_says_an_absurd_length_is_refused(tmp_path):
    path = recorded(tmp_path / "a.flac", AT_FLAC_SAMPLES, b"\xff" * 5)
    with pytest.raises(UserError, match=r"a\.flac: no audio that can be read"):
        read_sound(path)

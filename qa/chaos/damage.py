"""Damage to files between stages, and faulty input data."""

import io
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import soundfile

BLOCK = 512


def truncated(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content))]


def zeroed(content: bytes, rng: random.Random) -> bytes:
    """Replace a block by zeros, as a file system returns blocks that were never written."""
    first = rng.randrange(len(content))
    last = min(len(content), first + BLOCK)
    return content[:first] + bytes(last - first) + content[last:]


def torn(content: bytes, rng: random.Random) -> bytes:
    """Remove a part of the middle."""
    first, last = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    return content[:first] + content[max(last, first + 1) :]


def emptied(content: bytes, rng: random.Random) -> bytes:
    return b""


DAMAGES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    function.__name__: function for function in (truncated, zeroed, torn, emptied)
}


def spoilt_sound(value: float) -> Callable[[bytes, random.Random], bytes]:
    def spoil(content: bytes, rng: random.Random) -> bytes:
        samples, rate = soundfile.read(io.BytesIO(content), dtype="float32")
        samples[rng.randrange(len(samples))] = value
        buffer = io.BytesIO()
        soundfile.write(buffer, samples, rate, format="WAV", subtype="FLOAT")
        return buffer.getvalue()

    return spoil


def any_line(change: Callable[[bytes], bytes]) -> Callable[[bytes, random.Random], bytes]:
    def spoil(content: bytes, rng: random.Random) -> bytes:
        lines = content.splitlines(keepends=True)
        chosen = rng.randrange(len(lines))
        lines[chosen] = change(lines[chosen])
        return b"".join(lines)

    return spoil


POISONS: dict[str, tuple[str, Callable[[bytes, random.Random], bytes]]] = {
    "a sample that is not a number": (".wav", spoilt_sound(np.nan)),
    "an infinite sample": (".wav", spoilt_sound(np.inf)),
    "a huge sample": (".wav", spoilt_sound(3e38)),
    "invalid UTF-8": ("", any_line(lambda line: b"\xff\xfe\x80" + line)),
    "half a character": ("", any_line(lambda line: line[:-1] + b"\xe2\x82\n")),
    "one line less": ("", any_line(lambda line: b"")),
    "one line more": ("", any_line(lambda line: line + line)),
    "a giant line": ("", any_line(lambda line: line.rstrip(b"\n") + b" giant" * 500_000 + b"\n")),
}
"""Suffix of the files that are damaged, and the damage; an empty suffix stands for text."""


def is_text(path: Path) -> bool:
    """Return whether a file holds lines of natural language."""
    return path.suffix not in (".json", ".model", ".tokens", ".offsets", ".frames", ".safetensors", ".wav", ".gz")

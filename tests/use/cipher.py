"""A made-up language that a tiny model learns in seconds: each English word becomes another, in the same order."""

import random
import re
from itertools import product
from pathlib import Path

SUBJECTS = ["cooks", "children", "doctors", "friends", "teachers", "farmers", "singers", "guests"]
VERBS = ["see", "like", "paint", "find", "want", "sell", "keep", "forget"]
OBJECTS = ["houses", "gardens", "apples", "cars", "books", "rivers", "cats", "bread"]
ENDS = ["today", "often", "abroad", "weekly", "gladly", "here", "freely", "again"]
SYLLABLES = ["ba", "ko", "mi", "ru", "ta", "ne", "so", "lu"]
WORDS = [*SUBJECTS, *VERBS, *OBJECTS, *ENDS]
CIPHER = {word: SYLLABLES[place // 8] + SYLLABLES[place % 8] + "x" for place, word in enumerate(WORDS)}


def cipher(sentence: str) -> str:
    """Keep punctuation at the word before it."""
    return re.sub(r"\w+", lambda word: CIPHER[word[0]], sentence)


def write_texts(folder: Path, pairs: int = 2000) -> tuple[Path, Path]:
    every = [" ".join(words[:-1]) + words[-1] for words in product(SUBJECTS, VERBS, OBJECTS, ENDS, ".!")]
    sentences = random.Random(1).sample(every, pairs)  # no two alike
    src, tgt = folder / "talk.en", folder / "talk.xx"
    src.write_text("".join(f"{line}\n" for line in sentences))
    tgt.write_text("".join(f"{cipher(line)}\n" for line in sentences))
    return src, tgt

"""From lists of words to running text: spaces, capitals, punctuation."""

CLOSING = frozenset(",.?")


def running_text(words: list[str], space_before: frozenset[str] = frozenset()) -> str:
    """Words joined by spaces; commas and stops close up (but those in `space_before`), apostrophes join."""
    pieces: list[str] = []
    glue = ""
    for word in words:
        pieces.append(word if word in CLOSING and word not in space_before else glue + word)
        glue = "" if word.endswith("'") else " "
    return "".join(pieces)


def single_commas(words: list[str]) -> list[str]:
    """Without a comma before another punctuation mark (a clause that ends where its sentence ends)."""
    following = [*words[1:], "."]
    return [word for word, after in zip(words, following, strict=True) if word != "," or after not in CLOSING]


def capitalised(text: str) -> str:
    return text[0].upper() + text[1:]


def chinese_text(words: list[str]) -> str:
    """Unsegmented, but for a space between words in Latin script."""
    pieces: list[str] = []
    latin = False
    for word in words:
        pieces.append(" " + word if latin and word[0].isascii() else word)
        latin = word[-1].isascii()
    return "".join(pieces)

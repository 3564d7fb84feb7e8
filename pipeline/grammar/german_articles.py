"""German articles and the endings that adjectives take after them."""

from pipeline.grammar.structure import THIRD, NounPhrase, Pronoun, required

Endings = tuple[tuple[str, str, str, str], ...]  # [case][gender or plural]

THE = (
    ("der", "die", "das", "die"),
    ("den", "die", "das", "die"),
    ("dem", "der", "dem", "den"),
    ("des", "der", "des", "der"),
)
STRONG_ARTICLE = (("er", "e", "es", "e"), ("en", "e", "es", "e"), ("em", "er", "em", "en"), ("es", "er", "es", "er"))
EIN = (("", "e", "", "e"), ("en", "e", "", "e"), ("em", "er", "em", "en"), ("es", "er", "es", "er"))
WEAK = (("e", "e", "e", "en"), ("en", "e", "e", "en"), ("en", "en", "en", "en"), ("en", "en", "en", "en"))
MIXED = (("er", "e", "es", "en"), ("en", "e", "es", "en"), ("en", "en", "en", "en"), ("en", "en", "en", "en"))
STRONG = (("er", "e", "es", "e"), ("en", "e", "es", "e"), ("em", "er", "em", "en"), ("en", "er", "en", "er"))
OWN = {0: "mein", 1: "dein", 3: "unser", 4: "ihr"}
DECLINED = {"this": ("dies", WEAK), "every": ("jed", WEAK), "some": ("einig", STRONG), "many": ("viel", STRONG)}
"""Stems that end like strong adjectives, and what adjectives end in behind them."""


def determiner(np: NounPhrase, case: int, column: int) -> tuple[list[str], Endings]:
    """The determiner and the table of adjective endings that it asks for."""
    match np.determiner:
        case "the":
            return [THE[case][column]], WEAK
        case "a" if not np.plural:
            return ["ein" + EIN[case][column]], MIXED
        case "a" | "bare":
            return [], STRONG
        case "no":
            return ["kein" + EIN[case][column]], MIXED
        case "my":
            return [_possessive(required(np.owner), EIN[case][column])], MIXED
        case "number":
            return [required(np.number).de[0]], STRONG
        case name:
            stem, endings = DECLINED[name]
            return [stem + STRONG_ARTICLE[case][column]], endings


def _possessive(owner: Pronoun, ending: str) -> str:
    if owner.person == THIRD:
        return ("ihr" if owner.de_gender == "f" else "sein") + ending
    return OWN[owner.person] + ending

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


def determiner(np: NounPhrase, case: int, column: int) -> tuple[list[str], Endings]:
    """The determiner and the table of adjective endings that it asks for."""
    match np.determiner:
        case "the":
            return [THE[case][column]], WEAK
        case "this":
            return ["dies" + STRONG_ARTICLE[case][column]], WEAK
        case "every":
            return ["jed" + STRONG_ARTICLE[case][column]], WEAK
        case "a":
            return ([], STRONG) if np.plural else (["ein" + EIN[case][column]], MIXED)
        case "bare":
            return [], STRONG
        case "no":
            return ["kein" + EIN[case][column]], MIXED
        case "my":
            return [_possessive(required(np.owner), EIN[case][column])], MIXED
        case "number":
            return [required(np.number).de[0]], STRONG
        case "some":
            return ["einig" + STRONG_ARTICLE[case][column]], STRONG
        case "many":
            return ["viel" + STRONG_ARTICLE[case][column]], STRONG
    raise ValueError(f"no German determiner for {np.determiner!r}")


def _possessive(owner: Pronoun, ending: str) -> str:
    if owner.person == THIRD:
        return ("ihr" if owner.de_gender == "f" else "sein") + ending
    return OWN[owner.person] + ending

"""Installed fonts for characters that the usual font of figures lacks, such as Chinese ones."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture
    from matplotlib.font_manager import FontEntry
    from matplotlib.text import Text

log = logging.getLogger(__name__)


def add_fallback_fonts(picture: "Picture", name: object) -> None:
    """Give each text with a character that its font lacks further fonts, and warn of characters that none has.

    Args:
        picture: The picture.
        name: Name of the figure for the warning.
    """
    from matplotlib.text import Text

    lacking = {text: found for text in picture.findobj(Text) if (found := missing_characters(text))}
    if not lacking:
        return
    wanted: set[str] = set().union(*lacking.values())
    families, nowhere = installed_families(wanted)
    for text in lacking:
        text.set_fontfamily([*text.get_fontfamily(), *families])
    if nowhere:
        log.warning(
            "%s: no installed font has %s, shown as boxes in the PNG; install a font of that script, e.g. Noto Sans "
            "CJK, and draw the figure again (the SVG has the text)",
            name,
            " ".join(sorted(nowhere)[:10]) + (" …" if len(nowhere) > 10 else ""),
        )


def missing_characters(text: "Text") -> set[str]:
    """Return the visible characters of a text that its font lacks."""
    from matplotlib.font_manager import findfont, get_font

    font = get_font(findfont(text.get_fontproperties()))
    return {sign for sign in text.get_text() if sign.isprintable() and not font.get_char_index(ord(sign))}


def installed_families(wanted: set[str]) -> tuple[list[str], set[str]]:
    """Find installed fonts that together have the `wanted` characters, and make them known to matplotlib.

    A font that has more of them comes first; of equal ones, the plainest.

    Returns:
        Names of font families, and the characters that no font has.
    """
    fonts = [(entry, found) for entry, signs in readable_fonts() if (found := wanted & signs)]
    fonts.sort(key=lambda font: plainness(font[0]), reverse=True)
    families, left = [], wanted
    while any(found & left for _, found in fonts):
        best, found = max(fonts, key=lambda font: len(font[1] & left))
        make_known([entry for entry, _ in fonts if entry.name == best.name])
        families.append(best.name)
        left = left - found
    return families, left


def make_known(family: list["FontEntry"]) -> None:
    """Add the fonts of a family to matplotlib's list, which a file caches: fonts installed later are not in it."""
    from matplotlib.font_manager import fontManager

    for entry in family if family[0].name not in fontManager.get_font_names() else []:
        fontManager.addfont(entry.fname)


def readable_fonts() -> Iterator[tuple["FontEntry", set[str]]]:
    """Yield each installed font that matplotlib can draw, with its characters."""
    from matplotlib.font_manager import findSystemFonts, get_font, ttfFontProperty

    for path in sorted(findSystemFonts()):
        try:
            font = get_font(path)
            yield ttfFontProperty(font), set(map(chr, font.get_charmap()))
        except (RuntimeError, NotImplementedError):  # damaged, or bitmaps as of emoji
            continue


def plainness(entry: "FontEntry") -> tuple[bool, bool, int]:
    """Return how well a font suits labels, for sorting: sans-serif, upright, of usual weight."""
    return "Sans" in entry.name, entry.style == "normal", -abs(int(entry.weight) - 400)


@contextmanager
def without_glyph_warnings() -> Iterator[None]:
    """Silence matplotlib's warning about each missing character, which `add_fallback_fonts` replaces by one."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from")
        yield

"""The lexicon: words in four languages, read at import from the tables beside this file."""

from functools import partial

from pipeline.grammar.lexicon.entries import adjectives, noun, phrase, verb
from pipeline.grammar.lexicon.tables import read_tables

_verbs, _phrases, _names = map(read_tables, ("verbs", "phrases", "names"))

NOUNS = read_tables("nouns")["nouns"].each(noun)
ADJECTIVES = adjectives(read_tables("adjectives"))
VERBS = [made for kind, table in _verbs.items() for made in table.each(partial(verb, kind == "idioms"))]
TIME = {tense: _phrases[f"time {tense}"].each(phrase) for tense in ("past", "present", "future")}
FREQUENCY, MANNER, COORDINATORS, OPENERS, INTERJECTIONS, NUMBERS = (
    _phrases[name].each(phrase)
    for name in ("frequency", "manner", "coordinators", "openers", "interjections", "numbers")
)
SUBORDINATORS = _phrases["subordinators"].each(lambda *cells: (phrase(*cells[:4]), tuple(cells[4].split())))
MALE, FEMALE, SURNAMES, CITIES = (_names[name].words for name in ("male", "female", "surnames", "cities"))

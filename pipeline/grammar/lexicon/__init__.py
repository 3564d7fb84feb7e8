"""The lexicon: tables of words in four languages (one module each), read once at import."""

from pipeline.grammar.lexicon import adjectives, names, nouns, phrases, verbs
from pipeline.grammar.lexicon.reading import read_adjectives, read_nouns, read_phrases, read_verbs

NOUNS = read_nouns(nouns.NOUNS)
ADJECTIVES = read_adjectives(adjectives.BEFORE_NOUN, before_noun=True) + read_adjectives(
    adjectives.AFTER_NOUN, before_noun=False
)
VERBS = read_verbs(verbs.VERBS + verbs.PHRASES, idiom=False) + read_verbs(verbs.IDIOMS, idiom=True)
TIME = {tense: read_phrases(table) for tense, table in phrases.TIME.items()}
FREQUENCY = read_phrases(phrases.FREQUENCY)
MANNER = read_phrases(phrases.MANNER)
SUBORDINATORS = [
    (phrase, tuple(tenses.split()))
    for row in phrases.SUBORDINATORS.strip().split("\n")
    for cells, _, tenses in [row.rpartition(" | ")]
    for phrase in read_phrases(cells)
]
COORDINATORS = read_phrases(phrases.COORDINATORS)
OPENERS = read_phrases(phrases.OPENERS)
INTERJECTIONS = read_phrases(phrases.INTERJECTIONS)
NUMBERS = read_phrases(phrases.NUMBERS)
MALE, FEMALE, SURNAMES, CITIES = (
    tuple(table.split()) for table in (names.MALE, names.FEMALE, names.SURNAMES, names.CITIES)
)

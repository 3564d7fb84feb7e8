"""Share of idioms whose fixed words, those after the verb, stand in the translation verbatim."""

from pipeline.metrics.statistics.phenomena import contains, found

METRIC = found(
    "idioms",
    lambda translations, sentence: [idiom["en"].split(" ")[1:] for idiom in sentence.record["idioms"]],
    contains,
    "fixed-words-of-the-idiom-after-its-verb|verbatim",
)

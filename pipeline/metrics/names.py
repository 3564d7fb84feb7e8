"""Share of names, known to both vocabularies, that stand in the translation verbatim."""

from pipeline.metrics.statistics.phenomena import GrammarTranslations, contains, found

METRIC = found("names", GrammarTranslations.names, contains, "names-in-both-vocabularies|verbatim")

"""Share of names with a word in the rarer half of the target vocabulary that stand in the translation verbatim."""

from pipeline.metrics.statistics.phenomena import GrammarSentence, GrammarTranslations, contains, found


def rare_names(translations: GrammarTranslations, sentence: GrammarSentence) -> list[list[str]]:
    return [name for name in translations.names(sentence) if translations.rare_words.intersection(name)]


METRIC = found(
    "rare_names",
    rare_names,
    contains,
    "names-in-both-vocabularies|a-word-in-the-rarer-half-of-the-target-vocabulary|verbatim",
)

"""The embedded corpus: a grammar that writes English, German, French and Chinese from one derivation."""

from pipeline.grammar.corpus import DOMAINS, LANGUAGES, Sentence, generate
from pipeline.grammar.splits import write_splits

__all__ = ["DOMAINS", "LANGUAGES", "Sentence", "generate", "write_splits"]

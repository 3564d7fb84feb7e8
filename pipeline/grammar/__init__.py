"""The embedded corpus: a grammar that writes English, German, French and Chinese from one derivation."""

"""Outputs of trained models and their scores, with one manifest for each run and decoding.

- `plan`: outputs and scores to make; `manifest`: those that exist.
- `decode`, `maker`: translations, transcripts, parses, perplexities, attention maps, gates and alignments.
- `score`, `score_text`: score files.
"""

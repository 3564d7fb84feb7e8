"""Kinds of claims, one a file: what has to hold, what it stands on, and how it is judged by what was measured.

A file holds one record derived from `Claim` (shared/claim.py), whose `kind` is the file's name and what claims.yaml
says; that is all. Every dry run imports it, so it may import numpy, but neither torch nor what counts scores.
"""

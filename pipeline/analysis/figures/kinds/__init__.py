"""Kinds of figures, one a file: what each is drawn from, and how.

A file holds one record derived from `Figure` (shared/figure.py), whose `kind` is the file's name and what paper.yaml
says; that is all. Every dry run imports it, so it may import numpy; what draws is imported where it is used.
"""

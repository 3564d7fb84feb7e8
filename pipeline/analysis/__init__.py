"""Kinds of claims, figures and cells: what each is, what it needs, and how it is judged, drawn or filled in."""

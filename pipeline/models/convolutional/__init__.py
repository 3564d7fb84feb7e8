"""Convolutional Sequence to Sequence Learning (Gehring et al. 2017)."""

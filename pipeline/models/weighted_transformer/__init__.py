"""The Weighted Transformer (Ahmed et al. 2017)."""

"""A decoder fused with a language model (Sriram et al. 2017)."""

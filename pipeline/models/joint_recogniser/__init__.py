"""A recogniser trained by CTC and attention together (Watanabe et al. 2017)."""

"""The CTC recogniser of Deep Speech 2's shape (Amodei et al. 2015)."""

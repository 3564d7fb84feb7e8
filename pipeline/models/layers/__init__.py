"""What several architectures are built of."""

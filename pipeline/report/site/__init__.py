"""The results as pages: static, self-contained, opened from disk."""

"""Statistics of sentences: how they are counted for several metrics, resampled and kept. No metric itself."""

"""From a trained model to text: beam search, greedy search, averaging of checkpoints."""

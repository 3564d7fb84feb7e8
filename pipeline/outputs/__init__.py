"""What is made of a trained model: its outputs and their scores, one manifest a decoding each."""

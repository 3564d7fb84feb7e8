"""Reserved ids of every vocabulary."""

PAD, UNK, BOS, EOS = 0, 1, 2, 3

"""Dataset files for data of one's own, written from the data itself: paths, checksums, sizes that fit.

text.py: sentences and their translations; trees.py: a treebank; recordings.py: audio with transcripts. Where one file
is to be split in three, shares.py says what goes where.
"""

"""Dataset files for data of a user, with the paths, checksums and sizes of the data.

text.py: sentences and their translations; trees.py: a treebank; recordings.py: audio with transcripts; shares.py:
splitting one file in three.
"""

"""What several kinds of claims share: the record of all, those about scores, trainings or layers, what was measured."""

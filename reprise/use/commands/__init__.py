"""What the command `reprise` does, a module a command, as the stages are modules of theirs."""

COMMANDS = {
    "translate": ("pipeline.use.commands.text", "translate files, or standard input, line by line"),
    "parse": ("pipeline.use.commands.text", "write the tree of each line, whose words stand apart"),
    "transcribe": ("pipeline.use.commands.transcribe", "write down what is said in audio files"),
    "score": ("pipeline.use.commands.score", "decode a test set anew, as one likes, and score it"),
    "compare": ("pipeline.use.commands.compare", "say whether one run's score is better than another's"),
    "pack": ("pipeline.use.commands.pack", "put a trained model into one folder or .tar file that works anywhere"),
    "unpack": ("pipeline.use.commands.unpack", "unpack and verify the .tar file of a model"),
    "export": ("pipeline.use.commands.export", "write a Transformer for CTranslate2"),
    "new": ("pipeline.use.commands.new", "begin a dataset or a paper of one's own"),
    "report": ("pipeline.use.commands.report", "say what is in a prepared dataset"),
}
"""Command -> (module, one-line help)."""

"""What the command `reprise` does, a module a command, as the stages are modules of theirs."""

ABOUT = "Use what was trained, and bring what you have."
COMMANDS = {
    "translate": ("reprise.cli.text", "translate files, or standard input, line by line"),
    "parse": ("reprise.cli.text", "write the tree of each line, whose words stand apart"),
    "transcribe": ("reprise.cli.transcribe", "write down what is said in audio files"),
    "score": ("reprise.cli.score", "decode a test set anew, as one likes, and score it"),
    "compare": ("reprise.cli.compare", "say whether one run's score is better than another's"),
    "continue": ("reprise.cli.further", "train a run for more updates"),
    "pack": ("reprise.cli.pack", "put a trained model into one folder or .tar file that works anywhere"),
    "unpack": ("reprise.cli.unpack", "unpack and verify the .tar file of a model"),
    "export": ("reprise.cli.export", "write a Transformer for CTranslate2"),
    "new": ("reprise.cli.new", "begin a dataset or a paper of one's own"),
    "show": ("reprise.cli.show", "show a table in a terminal, with what it means"),
    "make": ("reprise.cli.make", "have Snakemake make something, and look on"),
    "status": ("reprise.cli.status", "say how far a campaign is, what failed and what to do"),
    "results": ("reprise.cli.results", "make tables, figures and claims of what is there now"),
    "record": ("reprise.cli.record", "keep what was measured of finished runs, and make a table over seeds"),
    "free": ("reprise.cli.free", "remove what finished work no longer needs on disk"),
    "verify": ("reprise.store.verify", "hash again all that was made or fetched, and set damaged files aside"),
    "completion": ("reprise.cli.completion", "write what a shell completes commands and options by"),
    "site": ("pipeline.report.site.build", "make pages of all results, to be opened from disk"),
    "report": ("reprise.cli.report", "say what is in a prepared dataset"),
}
"""Command -> (module, one-line help)."""

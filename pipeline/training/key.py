"""Identify a training run by one digest of its resolved specification and corpus. Needs no torch."""

from pathlib import Path

from pipeline.config import RunSpec, load_run
from pipeline.core.digests import sha256_json
from pipeline.core.layout import RUN_FILE
from pipeline.core.records.corpus import read_corpus


def run_key(run_folder: Path) -> str:
    """Return the digest of everything that decides the final weights of the run in `run_folder`.

    Two runs with the same key end in the same weights on the same machine. Checkpoints and `done.json` carry the key,
    so that files of another run are noticed. The folder's name does not hold it, as the built corpus is part of it.

    Raises:
        UserError: `run.yaml` or the corpus is missing or faulty.
    """
    return key_of(load_run(Path(run_folder) / RUN_FILE))


def key_of(spec: RunSpec) -> str:
    """Return the digest of a run's specification and of the corpus that it names.

    Settings at their defaults are left out, so that a setting added later does not change finished runs. Runs that
    provide initial weights count by their own keys.
    """
    parts = {name: run_key(Path(folder)) for name, folder in spec.weight_sources.items()}
    corpus = read_corpus(Path(spec.corpus)).digest
    return sha256_json({"spec": spec.content(), "corpus": corpus, "parts": parts})

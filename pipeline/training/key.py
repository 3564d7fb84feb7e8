"""What a training run is, as one digest: its resolved spec and the corpus it reads. Needs no torch."""

from pathlib import Path

from pydantic import Field

from pipeline.config import RunSpec, load_run
from pipeline.core.layout import RUN_FILE
from pipeline.core.records.corpus import read_corpus
from pipeline.core.records.record import Record
from pipeline.core.sha256 import sha256_json

ADOPTED_FILE = "adopted.json"


class Adopted(Record):
    """`adopted.json` of a run of an earlier version, whose files carry a key that this version makes otherwise."""

    key: str = Field(description="What the run's files carry")
    stands_for: str = Field(description="What this version made of the run when it was adopted")


def run_key(run_folder: Path) -> str:
    """Digest of everything that decides the final weights of the run in `run_folder`.

    Two runs of one key end in the same weights on the same machine; checkpoints and `done.json` carry the key, so that
    those of another run are noticed. It is not in the folder's name, for what was built of the data is part of it.

    Raises:
        UserError: `run.yaml` or the corpus is missing or faulty.
    """
    run_folder = Path(run_folder)
    key = key_of(load_run(run_folder / RUN_FILE))
    adopted = Adopted.read_if_there(run_folder / ADOPTED_FILE)
    return adopted.key if adopted and adopted.stands_for == key else key


def key_of(spec: RunSpec) -> str:
    """The same of a run's specification.

    Settings at their defaults are left out: a setting that a later version adds makes no finished run another one. Runs
    whose weights it takes count as what their own keys say.
    """
    parts = {name: run_key(Path(folder)) for name, folder in spec.taken.items()}
    return key_from(spec, read_corpus(Path(spec.corpus)).digest, parts)


def key_from(spec: RunSpec, corpus: str, parts: dict[str, str]) -> str:
    """corpus: its digest; parts: the keys of the runs whose weights it takes."""
    return sha256_json({"spec": spec.content(), "corpus": corpus, "parts": parts})

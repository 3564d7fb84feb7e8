"""What a training run is, as one digest: its resolved spec and the corpus it reads. Needs no torch."""

from pathlib import Path

from pipeline.config import load_run
from pipeline.files import sha256_json
from pipeline.layout import RUN_FILE
from pipeline.records.corpus import read_corpus


def run_key(run_folder: Path) -> str:
    """Digest of everything that decides the final weights of the run in `run_folder`.

    Two runs of one key end in the same weights on the same machine; checkpoints and `done.json` carry the key, so that
    those of another run are noticed. Settings at their defaults are left out: a setting that a later version adds makes
    no finished run another one. Runs whose weights it takes count as what their own keys say.

    Raises:
        UserError: `run.yaml` or the corpus is missing or faulty.
    """
    spec = load_run(Path(run_folder) / RUN_FILE)
    folders = {"language_model": spec.language_model and spec.language_model.run, "initial": spec.initial}
    parts = {name: run_key(Path(folder)) for name, folder in folders.items() if folder}
    digest = read_corpus(Path(spec.corpus)).digest
    content = {"spec": spec.model_dump(mode="json", exclude_defaults=True), "corpus": digest}
    return sha256_json(content | ({"parts": parts} if parts else {}))

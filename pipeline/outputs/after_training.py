"""Decode a run at the end of its training job, where its model and a GPU are at hand."""

import contextlib
import gc
import logging
from collections.abc import Iterator
from pathlib import Path

from pydantic import TypeAdapter

from pipeline.core.digests import recording
from pipeline.core.errors import UserError
from pipeline.core.intact import looking
from pipeline.core.json_file import read_json
from pipeline.core.layout import CORPUS_FILE, DECODINGS_FILE
from pipeline.outputs.decode import decode
from pipeline.outputs.plan import DecodingPlan, PlannedTraining

log = logging.getLogger(__name__)
PLANS = TypeAdapter(dict[str, PlannedTraining])


def decode_ready(run_folder: Path) -> None:
    """Make the outputs of a run that need no other run and no corpus that is not there yet.

    A failure is logged and recorded in the manifest: the rule `decode` tries the output again.
    """
    planned = plans_of(run_folder)
    if planned is None:
        return
    gc.collect()  # the trainer's tensors
    with indented_log():
        for plan in filter(is_ready, planned.plans):
            try:
                with looking(), recording():
                    decode(run_folder, plan, planned.threads)
            except UserError as error:
                log.error("%s: %s", plan.name, error)
            except Exception:  # an unforeseen fault here must not cost the training
                log.exception("%s", plan.name)


@contextlib.contextmanager
def indented_log() -> Iterator[None]:
    """Indent what is logged, so that the terminal shows the training's own lines alone."""

    def indent(record: logging.LogRecord) -> bool:
        record.msg = f"  {record.msg}"
        return True

    handlers = list(logging.getLogger().handlers)
    for handler in handlers:
        handler.addFilter(indent)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(indent)


def plans_of(run_folder: Path) -> PlannedTraining | None:
    """Return how a run is decoded, as the workflow noted it in the scale's folder when it started."""
    runs, scale = run_folder.parents[3], run_folder.parents[4]
    try:
        plans = PLANS.validate_python(read_json(scale / DECODINGS_FILE))
    except (UserError, ValueError):
        return None
    return plans.get(str(run_folder.relative_to(runs)))


def is_ready(plan: DecodingPlan) -> bool:
    """Return whether a decoding needs no language model and every other corpus that it reads is encoded."""
    corpora = (Path(output.corpus) / CORPUS_FILE for output in plan.outputs if output.corpus)
    return plan.language_model is None and all(path.exists() for path in corpora)

"""Open trained models by name, with a decoding. Loads torch with the first model."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pipeline.config import DecodingConfig
from pipeline.core.artifacts import Averaged, Score, Tuned
from pipeline.core.command_line import Argument
from pipeline.core.digests import recording_digests
from pipeline.core.errors import UserError
from pipeline.core.layout import WEIGHTS_FILE, path_in_run
from pipeline.core.records.outputs import AveragedWeights, TunedWeights
from pipeline.core.schema import refuse_unread, require_known, unknown, validate
from pipeline.core.yaml_file import parse_yaml
from pipeline.models.settings import ModelSettings
from pipeline.papers.config_file import parse_settings
from pipeline.papers.project import Settings
from pipeline.papers.reports import table_artifacts
from reprise.find_runs import PACKED_FILE, FoundRun, find_run

if TYPE_CHECKING:
    from reprise.model import Model

log = logging.getLogger(__name__)

SHORT = {"beam": "beam_size", "alpha": "length_penalty"}
"""Other names of settings, as in `--decoding beam=8,alpha=1.0`."""
TUNING = {"lm_weights", "word_bonuses", "tuning_sentences", "tuned_with"}
NEED_OTHER_WEIGHTS = {"average_last", "averaged", "language_model", *TUNING}


@dataclass(frozen=True)
class DecodingOptions:
    """Options of the commands that decode with a run.

    Attributes:
        decoding: Name of a decoding, settings that differ, or both, e.g. averaged, or beam=8,alpha=1.0.
        settings: Override a key of config.yaml. May be given several times.
    """

    decoding: Annotated[str, Argument(metavar="NAME,KEY=VALUE,…")] = ""
    settings: Settings = ()

    def find(self, name: str) -> FoundRun:
        """Return the run of that name.

        Raises:
            UserError: There is no such run, or it is not trained.
        """
        return find_run(name, parse_settings(self.settings))


@dataclass(frozen=True)
class ModelOptions(DecodingOptions):
    """Options of the commands that open a model.

    Attributes:
        threads: CPU threads; by default all cores.
    """

    threads: int | None = None

    def open(self, name: str) -> "Model":
        """Return the model of that name.

        Raises:
            UserError: There is no such model, or it is damaged.
        """
        return open_model(name, self.decoding, parse_settings(self.settings), self.threads)


@dataclass(frozen=True)
class NamedDecoding:
    """A decoding of a run, with its weights.

    Attributes:
        name: Name of the decoding in the paper.
        config: Its settings, with the user's changes.
        weights: File of the weights: averaged or final.
        language_model: Folder of the run of the external language model, if it uses one.
    """

    name: str
    config: DecodingConfig
    weights: Path
    language_model: Path | None


def open_model(name: str | Path, decoding: str, settings: Mapping[str, Any], threads: int | None) -> "Model":
    """Return the model of a run or a packed model, ready to use.

    Args:
        name: `paper/system/dataset/seed`, a run's folder, or a folder that `reprise pack` wrote.
        decoding: `NAME` of the run's paper, `KEY=VALUE,…` that differ, or both; "" means that of the paper's table.
        settings: Keys that replace those of config.yaml.
        threads: CPU threads; None means all cores that this process may use.

    Raises:
        UserError: There is no such model, it is damaged, or it is packed and would not read the settings.
    """
    from reprise.model import Model  # loads torch, as `portable` does
    from reprise.portable import open_packed

    if (Path(name) / PACKED_FILE).exists():
        if settings:
            raise UserError(f"{name}: a packed model has its own settings; leave out {', '.join(sorted(settings))}")
        return open_packed(Path(name), decoding, threads)
    return Model.of_run(find_run(str(name), dict(settings)), decoding, threads)


def decoding_of(found: FoundRun, text: str) -> NamedDecoding:
    """Resolve the text of `--decoding`.

    Args:
        found: The run.
        text: `NAME`, `KEY=VALUE,…` (changes of the default one) or `NAME,KEY=VALUE,…`.

    Returns:
        The decoding, with weights that exist.

    Raises:
        UserError: There is no such name or key, or weights that it needs do not exist and cannot be averaged.
    """
    spec, project = found.spec, found.project
    asked, changes = split_decoding(text)
    require_known(name := asked or usual_decoding(found), found.decodings, "--decoding")
    config, final = project.decoding(spec.paper, spec.system, name), found.folder / WEIGHTS_FILE
    if config.tuned:
        chosen = TunedWeights.read(tuned_weights(found, name))
        weights = {"lm_weight": chosen.lm_weight, "word_bonus": chosen.word_bonus, "lm_weights": [], "tuned_with": []}
        config = config.model_copy(update=weights)
    config = change_decoding(config, changes, spec.model)
    path = averaged_weights(found, name, config, bool(asked)) if config.reads_checkpoints else final
    other = project.decoding_language_model(found.id, name)
    return NamedDecoding(name, config, path, project.layout.run(other) if other else None)


def split_decoding(text: str) -> tuple[str, dict[str, str]]:
    """Return the name (or "") and the settings of `NAME,KEY=VALUE,…`.

    Raises:
        UserError: The text has another form, or a key twice.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    name = parts.pop(0) if parts and "=" not in parts[0] else ""
    if wrong := [part for part in parts if "=" not in part]:
        raise UserError(f"--decoding: {wrong[0]!r}: write NAME, KEY=VALUE, or NAME,KEY=VALUE, such as beam=8,alpha=1.0")
    pairs = [part.split("=", 1) for part in parts]
    keys = [SHORT.get(key, key) for key, _ in pairs]
    if double := [key for key in keys if keys.count(key) > 1]:
        raise UserError(f"--decoding: {double[0]}: occurs {keys.count(double[0])} times; keep one")
    return name, dict(pairs)


def change_decoding(config: DecodingConfig, changes: dict[str, str], model: ModelSettings) -> DecodingConfig:
    """Return a decoding with `changes`.

    Args:
        config: The decoding.
        changes: Values as YAML, by key or short key.
        model: Settings of the model that is decoded.

    Raises:
        UserError: A key is unknown, a value is invalid, or the change has no effect on the model or needs other
            weights.
    """
    if not changes:
        return config
    settings = {*DecodingConfig.model_fields, *SHORT}
    if fault := next((fault for key in changes if (fault := unknown(key, settings, "--decoding"))), None):
        raise UserError(fault)
    given = {SHORT.get(key, key): parse_yaml(value, "--decoding") for key, value in changes.items()}
    if unfit := NEED_OTHER_WEIGHTS & set(given):
        raise UserError(f"--decoding: {unfit.pop()}: needs other weights; name a decoding of paper.yaml that has it")
    if unread := [key for key in given if key in model.unread]:
        raise UserError(f"--decoding: {unread[0]}: has no effect on architecture {model.architecture}; leave it out")
    changed = validate(DecodingConfig, config.model_dump() | given, "--decoding")
    refuse_unread(changed, "--decoding", given)
    if changed.zero_weight_fault and {"ngram_order", "lm_weight", "language_model_use"} & set(given):
        raise UserError(f"--decoding: {changed.zero_weight_fault}")
    return changed


def tuned_weights(found: FoundRun, name: str) -> Path:
    """Return the file of the tuned fusion weights of a decoding.

    Raises:
        UserError: It does not exist.
    """
    artifact = Tuned(found.id, name)
    path = found.folder / path_in_run(artifact)
    if not path.exists():
        raise UserError(f"{found.missing(artifact)}, or choose another --decoding")
    return path


def averaged_weights(found: FoundRun, name: str, config: DecodingConfig, is_asked_for: bool) -> Path:
    """Return the averaged weights of a decoding, made now if they are missing or of other checkpoints.

    Args:
        found: The run.
        name: Name of the decoding, which averages.
        config: Its settings.
        is_asked_for: The user named it. If not, the final weights replace an average that cannot be made.

    Returns:
        File of the weights.

    Raises:
        UserError: The user named the decoding and a checkpoint is missing, or a checkpoint is damaged.
    """
    from pipeline.decoding.averaging import select_checkpoints, write_average  # loads torch
    from pipeline.training.specification import run_key

    path = found.folder / path_in_run(Averaged(found.id, name))
    count, best, key = config.average_last, config.averaged == "best", run_key(found.folder)
    record = AveragedWeights.read_if_valid(path.with_suffix(".json")) if path.exists() else None
    averaged = [checkpoint.file for checkpoint in record.inputs] if record and record.key == key else []
    try:
        chosen = select_checkpoints(found.folder, count, key, best)
    except UserError as error:
        if len(averaged) == count:
            return path
        if is_asked_for:
            raise UserError(f"--decoding {name}: {error}, or choose another --decoding") from error
        final = found.folder / WEIGHTS_FILE
        log.warning("%s: using the final weights; the checkpoints that %r averages are missing", final, name)
        return final
    if averaged != [checkpoint.name for checkpoint in chosen]:
        with recording_digests():
            write_average(found.folder, count, best, path)
    return path


def usual_decoding(found: FoundRun) -> str:
    """Return the decoding by which a table scores the run, preferably one that needs no language model."""
    project, run = found.project, found.id
    papers = dict.fromkeys([run.paper, *project.papers])
    tables = ((paper, table) for paper in papers for table in project.tables_here(paper))
    artifacts = (artifact for paper, table in tables for artifact in table_artifacts(project, paper, table))
    scored = (artifact for artifact in artifacts if isinstance(artifact, Score) and artifact.measure != "perplexities")
    names = [score.decoding for score in scored if (score.run.paper, score.run.system) == (run.paper, run.system)]
    plain = (name for name in names if not project.decoding(run.paper, run.system, name).reads_language_model)
    return next(plain, next(iter(names or found.decodings)))

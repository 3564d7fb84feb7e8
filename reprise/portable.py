"""A packed model: one self-contained folder, or an archive of it.

    model.json           all settings: `PortableModel`
    model.safetensors    all weights, with those of a fused language model
    subwords.model …     vocabulary of a model that reads or writes subwords
    README.md            the model card
    SHA256SUMS           digests of all these files, for `sha256sum --check`

It contains no sentence of the data, only sizes, scores and the vocabulary.
"""

import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import ClassVar

from pydantic import Field
from torch import Tensor

from pipeline.config import DecodingConfig, RunSpec
from pipeline.core.digests import sha256_file
from pipeline.core.disk import require_space
from pipeline.core.errors import UnreadableError, UserError
from pipeline.core.files import atomic_write, write_errors
from pipeline.core.layout import WEIGHTS_FILE
from pipeline.core.provenance import commit
from pipeline.core.records.corpus import AnyCorpus
from pipeline.core.records.outputs import MetricValue, ScoreFile
from pipeline.core.records.record import Record
from pipeline.core.yaml_file import yaml_text
from pipeline.data.dataset import may_be_passed_on
from pipeline.data.fetch.archives import members
from pipeline.data.text.alphabet import Alphabet
from pipeline.data.text.vocabulary import MODEL, TGT_MODEL, load_vocabularies
from pipeline.decoding.trained_model import TrainedModel
from pipeline.models.build import size_of
from pipeline.models.seq2seq import Seq2Seq
from pipeline.report.markup import literal
from pipeline.training.machine import prepare_device
from pipeline.training.run_model import build_run_model
from pipeline.training.tensor_file import DamagedFileError, load_into, read_tensor_file, tensors_of, write_tensor_file
from reprise.find_runs import PACKED_FILE, FoundRun
from reprise.model import Model
from reprise.model_input import Preparation
from reprise.opening import NamedDecoding, changed, decoding_of, split_decoding
from reprise.scaffold import SCAFFOLD, filled
from reprise.user_files import ANOTHER_PLACE, filling, whole_folder

CARD_FILE, SUMS_FILE = "README.md", "SHA256SUMS"
ELSEWHERE = "packed"
"""Replaces the folders in the settings of a packed model."""

MATRICES = 16
"""Matrices of a layer, estimated."""
UNASKED = 2**28
"""Scalars, a GiB, up to which the size is estimated; counting it takes torch 2 s."""


class PortableModel(Record):
    """The contents of `model.json`."""

    remedy: ClassVar[str] = "pack the model again"

    run: str = Field(description="paper/system/dataset/seed")
    spec: RunSpec = Field(description="Settings of model and training; folders of other runs are left out")
    corpus: AnyCorpus = Field(description="Of the training")
    preparation: Preparation
    decoding: DecodingConfig
    scores: dict[str, dict[str, MetricValue]] = Field(description="Metrics of this decoding by test set")
    title: str = Field(description="Of the data that it was trained on")
    licence: str = Field(description="Of the data, likewise")
    citation: str = Field(description="Of the data, likewise")
    redistributable: bool = Field(description="Whether anyone may pass the data on; they are not in here")
    weights: str = Field(description="Digest of the run's weights")
    training: str | None = Field(description="Digest of the weights that the training ended in")
    commit: str = Field(description="Of the code that packed it")


def pack(found: FoundRun, decoding: str, folder: Path) -> None:
    """Pack the model of a run, with one decoding, into a folder.

    Raises:
        UserError: The folder is not empty, or the decoding needs another model beside this one.
    """
    chosen = decoding_of(found, decoding)
    if chosen.config.reads_language_model:
        raise UserError(f"--decoding {chosen.name}: a language model beside it isn't packed; choose another decoding")
    model = Model.of_run(found, decoding)
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder}: is there and not empty; name a new folder")
    with whole_folder(folder) as new:
        write(model, found, chosen, new)


def write(model: Model, found: FoundRun, chosen: NamedDecoding, folder: Path) -> None:
    """Write every file of a packed model into a folder."""
    trained, vocabulary = model.trained, Path(found.spec.corpus).parent
    for path in (vocabulary / name for name in (MODEL, TGT_MODEL) if model.symbols[0] is not None):
        if path.exists():
            shutil.copyfile(path, folder / path.name)
    # Frozen parts are another run's weights, which stays behind.
    weights = tensors_of(trained.model.requires_grad_(True))
    write_tensor_file(folder / WEIGHTS_FILE, weights, {"key": trained.weights_digest})
    terms = {name: getattr(found.dataset, name) for name in ("title", "licence", "citation")}
    record = PortableModel(
        run=found.id.folder,
        spec=found.spec.map_folders(lambda _: ELSEWHERE),
        corpus=trained.corpus,
        preparation=model.preparation,
        decoding=chosen.config.model_copy(update={"average_last": 1, "averaged": "last"}),
        scores=scores_of(found, chosen.name),
        redistributable=may_be_passed_on(found.dataset),
        **terms,
        weights=trained.weights_digest,
        training=trained.training_digest,
        commit=commit(),
    )
    record.write(folder / PACKED_FILE)
    (folder / CARD_FILE).write_text(card(found.project.root, record, folder.name), encoding="utf-8")
    sums = {path.name: sha256_file(path) for path in sorted(folder.iterdir())}
    with atomic_write(folder / SUMS_FILE) as file:
        file.writelines(f"{digest}  {name}\n" for name, digest in sums.items())


def interval_of(metric: MetricValue) -> str:
    """Format the interval of a score; a dash for a single sentence."""
    return "–" if metric.low is None else f"{metric.low:.2f} to {metric.high:.2f}"


def card(root: Path, record: PortableModel, folder: str) -> str:
    """Return the model card in Markdown."""
    rows = [
        f"| {literal(test_set)} | {name} | {one.value:.2f} | {interval_of(one)} | `{one.signature}` |"
        for test_set, metrics in record.scores.items()
        for name, one in metrics.items()
    ]
    verb = {"speech": "transcribe", "trees": "parse"}.get(record.preparation.form, "translate")
    passed = f"It may {'' if record.redistributable else 'not '}be passed on by anyone."
    scores = "\n".join(rows) or "| none | | | | |"
    template = root / SCAFFOLD / "model_card.md"
    tags = "\n".join(hub_tags(record))
    terms = {name: literal(getattr(record, name)) for name in ("title", "licence", "citation")}
    return filled(
        template, it=record, tags=tags, folder=folder, verb=verb, scores=scores, may_be_passed_on=passed, **terms
    )


def hub_tags(record: PortableModel) -> list[str]:
    """Return the lines of YAML by which the Hugging Face Hub finds a model: its task, languages and architecture."""
    tasks = {"speech": "automatic-speech-recognition", "sentences": "translation"}
    task = tasks.get(record.preparation.form)
    sides = {record.preparation.src, record.preparation.tgt} - {"speech", "brackets"}
    lines = [f"pipeline_tag: {task}"] if task else []
    lines += ["language:", *(f"- {yaml_text(language)}" for language in sorted(sides))] if sides else []
    return [*lines, "tags:", f"- {yaml_text(record.spec.model.architecture)}", f"- {yaml_text(record.spec.paper)}"]


def scores_of(found: FoundRun, decoding: str) -> dict[str, dict[str, MetricValue]]:
    """Return the scores of a run with a decoding, by dev or test set and metric."""
    scores: dict[str, dict[str, MetricValue]] = {}
    for path in sorted(found.folder.glob(f"*/{decoding}/*.json")):
        if path.with_suffix(".npz").exists():
            record = ScoreFile.read(path)
            scores.setdefault(record.test_set, {}).update(record.metrics)
    return scores


def verify(folder: Path) -> list[str]:
    """Verify the digests of a packed model, and return the names of its files.

    Raises:
        UserError: A file is missing or altered, or the folder is no packed model.
    """
    try:
        lines = (folder / SUMS_FILE).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{folder}: no {SUMS_FILE}, so no packed model; `reprise pack` writes one") from error
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    for name in (PACKED_FILE, WEIGHTS_FILE, *sums):
        path = folder / name
        if name not in sums or not path.is_file() or sha256_file(path) != sums[name]:
            raise UserError(f"{path}: is not as it was packed; get the model anew")
    return list(sums)


def open_packed(folder: Path, decoding: str = "", threads: int | None = None) -> Model:
    """Open a packed model.

    Args:
        folder: Folder that `pack` or `unpack` wrote.
        decoding: `KEY=VALUE,…` that differ from the packed decoding.
        threads: CPU threads; None means all cores that this process may use.

    Raises:
        UserError: A file is missing or altered, or weights and settings do not fit.
    """
    verify(folder)
    record = PortableModel.read(folder / PACKED_FILE)
    name, changes = split_decoding(decoding)
    if name:
        raise UserError(f"--decoding: {name}: a packed model has one decoding; change keys of it, such as beam=8")
    config = changed(record.decoding, changes)
    if config.reads_language_model:
        raise UserError("--decoding: ngram_order: the text that it would count isn't packed")
    device = prepare_device(threads)
    try:
        weights = read_tensor_file(folder / WEIGHTS_FILE)[0]
        if is_larger(record, weights):
            raise DamagedFileError(f"holds less than the model that {PACKED_FILE} says")
        model = whole_model(record)
        load_into(model, weights)
    except DamagedFileError as error:
        raise UserError(f"{folder / WEIGHTS_FILE}: {error}; get the model anew") from error
    trained = TrainedModel(record.spec, model.to(device).eval(), device, record.corpus, record.weights, record.training)
    symbols = load_vocabularies(folder) if record.corpus.kind == "parallel" else (None, Alphabet())
    heard = (record.preparation.form == "speech", bool(record.preparation.sample_rate and record.preparation.high_hz))
    sizes = (len(symbols[0]), len(symbols[1])) if symbols[0] else record.corpus.vocab_sizes
    if sizes != record.corpus.vocab_sizes or (any(heard) and not (all(heard) and record.corpus.kind == "speech")):
        raise UserError(f"{folder / PACKED_FILE}: is of another model than what lies beside it; get the model anew")
    return Model.ready(trained, config, record.preparation, symbols)


def whole_model(record: PortableModel) -> Seq2Seq:
    """Build a model with untrained weights from its settings, without frozen parts."""
    return build_run_model(record.spec, record.corpus.vocab_sizes).requires_grad_(True)


def is_larger(record: PortableModel, weights: dict[str, Tensor]) -> bool:
    """Return whether the settings describe a larger model than the weights.

    Settings of strangers are not trusted: this is checked before memory is allocated.
    """
    spec, scalars = record.spec, sum(weight.numel() for weight in weights.values())
    parts = [spec.model, spec.fusion, spec.language_model and spec.language_model.model]
    settings = [setting for part in parts if part for setting in part.model_dump().items()]
    numbers = [(key, value) for key, value in settings if type(value) is int]
    layers = [value for key, value in numbers if "layers" in key]
    largest = max((value for _, value in numbers), default=0)
    if max(layers, default=0) > len(weights) or max(largest, *record.corpus.vocab_sizes) > scalars:
        return True
    if MATRICES * largest**2 * (1 + sum(layers)) + largest * sum(record.corpus.vocab_sizes) < UNASKED:
        return False
    try:
        return size_of(lambda: whole_model(record)) > scalars
    except RuntimeError:  # more scalars than can be counted
        return True


def pack_archive(found: FoundRun, decoding: str, archive: Path) -> None:
    """Pack a model into one .tar file, atomically. Raises UserError as `pack`, and if the file exists."""
    if archive.exists():
        raise UserError(f"{archive}: already exists; name a new file")
    above = archive.absolute().parent
    with write_errors(archive, ANOTHER_PLACE):
        above.mkdir(parents=True, exist_ok=True)
        beside = tempfile.TemporaryDirectory(dir=above)
    with filling(archive), beside as folder:
        pack(found, decoding, Path(folder) / archive.stem)
        with atomic_write(archive, "wb") as file, tarfile.open(fileobj=file, mode="w") as tar:
            tar.add(Path(folder) / archive.stem, arcname=archive.stem)


def unpack(archive: Path, into: Path) -> Path:
    """Unpack the folder of the model in an archive.

    Args:
        archive: What `pack_archive` wrote, or another archive of the same folder.
        into: The folder goes below this one, whole or not at all.

    Returns:
        The new folder.

    Raises:
        UserError: The archive is damaged or is no packed model, or the folder exists.
    """
    try:
        folder = into / only_folder(archive)
        if folder.exists():
            raise UserError(f"{folder} already exists; remove it, or name another FOLDER")
        with whole_folder(folder) as new:
            for member, size, content in members(archive, lambda _: True):
                path = new.parent / member
                require_space(new.parent, size, f"{member} of {archive}")
                path.parent.mkdir(parents=True, exist_ok=True)
                with open(path, "wb") as file:
                    shutil.copyfileobj(content, file)
    except OSError as error:
        raise UserError(f"{archive}: can't be unpacked into {into}: {error.strerror or error}") from error
    except UserError as error:
        raise UserError(f"{archive}: can't be unpacked: {error}") from error
    return folder


def only_folder(archive: Path) -> str:
    """Return the folder that holds all members of an archive. Raises UserError unless there is exactly one."""
    tops = set[str]()
    try:
        tops.update(Path(name).parts[0] for name, _, _ in members(archive, lambda _: True))
    except UnreadableError:
        raise
    except UserError:
        if tops:
            raise
    if len(tops) != 1:
        raise UserError("it is no packed model")
    return tops.pop()

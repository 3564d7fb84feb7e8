"""A packed model: one self-contained folder, or an archive of it.

    model.json           all settings: `PortableModel`
    model.safetensors    all weights, with those of a fused language model
    subwords.model …     vocabulary of a model that reads or writes subwords
    README.md            the model card
    SHA256SUMS           digests of all these files, for `sha256sum --check`

It contains no sentence of the data, only sizes, scores and the vocabulary.
"""

import os
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import ClassVar

from pydantic import Field
from torch import Tensor

from pipeline.analysis.run_folders import is_outdated
from pipeline.config import DecodingConfig, RunSpec
from pipeline.core import disk, files, layout
from pipeline.core.digests import sha256_file
from pipeline.core.errors import UnreadableError, UserError
from pipeline.core.provenance import commit
from pipeline.core.records.corpus import AnyCorpus
from pipeline.core.records.outputs import Decoded, MetricValue, ScoreFile
from pipeline.core.records.record import Record
from pipeline.data.dataset import is_redistributable
from pipeline.data.fetch.archives import members
from pipeline.data.text.vocabulary import MODEL, TGT_MODEL, Alphabet, load_vocabularies
from pipeline.decoding.trained_model import TrainedModel
from pipeline.metrics.error_rates import LogLikelihoods
from pipeline.models.seq2seq import Seq2Seq, count_parameters_on_meta
from pipeline.training import machine, run_model, tensor_file
from reprise.find_runs import PACKED_FILE, FoundRun
from reprise.model import Model
from reprise.model_input import Preparation
from reprise.opening import NamedDecoding, change_decoding, decoding_of, split_decoding
from reprise.scaffold import model_card
from reprise.user_files import ANOTHER_PLACE, filling, whole_folder

CARD_FILE, SUMS_FILE = "README.md", "SHA256SUMS"
ELSEWHERE = "packed"
"""Replaces the folders in the settings of a packed model."""

MATRICES = 16
"""Matrices of a layer, estimated."""
UNCOUNTED = 2**28
"""Weights, a GiB, up to which the size is estimated; counting them takes torch 2 s."""


class PortableModel(Record):
    """The contents of `model.json`."""

    remedy: ClassVar[str] = "pack the model again"

    run: str = Field(description="paper/system/dataset/seed")
    spec: RunSpec = Field(description="Settings of model and training; folders of other runs are left out")
    corpus: AnyCorpus = Field(description="Record of the training corpus")
    preparation: Preparation
    decoding: DecodingConfig
    scores: dict[str, dict[str, MetricValue]] = Field(description="Metrics of this decoding by test set")
    title: str = Field(description="Title of the training data")
    licence: str = Field(description="Licence of the training data")
    citation: str = Field(description="How to cite the training data")
    redistributable: bool = Field(description="Anyone may redistribute the training data, which is not included")
    weights: str = Field(description="Digest of the run's weights")
    training: str | None = Field(description="Digest of the weights that the training ended in")
    commit: str = Field(description="Commit of the code that packed it")


def pack(found: FoundRun, decoding: str, folder: Path) -> None:
    """Pack the model of a run, with the decoding of `--decoding`, into a `folder`, absent or empty.

    Raises:
        UserError: The folder is not empty, or the decoding needs another model beside this one.
    """
    chosen = decoding_of(found, decoding)
    if chosen.config.reads_language_model:
        raise UserError(f"--decoding {chosen.name}: its external language model isn't packed; choose another decoding")
    model = Model.of_run(found, decoding)
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder}: is not empty; name a new folder")
    with whole_folder(folder) as new:
        write(model, found, chosen, new)


def write(model: Model, found: FoundRun, chosen: NamedDecoding, folder: Path) -> None:
    """Write every file of a packed model into an empty `folder`; the model's parameters are all trainable."""
    trained, vocabulary = model.trained, Path(found.spec.corpus).parent
    for path in (vocabulary / name for name in (MODEL, TGT_MODEL) if model.symbols[0] is not None):
        if path.exists():
            shutil.copyfile(path, folder / path.name)
    # Frozen parts are another run's weights, which stays behind.
    weights = tensor_file.tensors_of(trained.model.requires_grad_(True))
    tensor_file.write_tensor_file(folder / layout.WEIGHTS_FILE, weights, {"key": trained.weights_digest})
    terms = {name: getattr(found.dataset, name) for name in ("title", "licence", "citation")}
    record = PortableModel(
        run=found.id.folder,
        spec=found.spec.map_folders(lambda _: ELSEWHERE),
        corpus=trained.corpus,
        preparation=model.preparation,
        decoding=chosen.config.model_copy(update={"average_last": 1, "averaged": "last"}),
        scores=scores_of(found.folder, chosen, trained.weights_digest, trained.training_digest),
        redistributable=is_redistributable(found.dataset),
        **terms,
        weights=trained.weights_digest,
        training=trained.training_digest,
        commit=commit(),
    )
    record.write(folder / PACKED_FILE)
    (folder / CARD_FILE).write_text(model_card(found.project.root, record, folder.name), encoding="utf-8")
    sums = {path.name: sha256_file(path) for path in sorted(folder.iterdir())}
    with files.atomic_write(folder / SUMS_FILE) as file:
        file.writelines(f"{digest}  {name}\n" for name, digest in sums.items())


def scores_of(
    folder: Path, chosen: NamedDecoding, weights: str, training: str | None
) -> dict[str, dict[str, MetricValue]]:
    """Return the scores of a run with a decoding, by dev or test set and metric.

    Args:
        folder: Folder of the run.
        chosen: The decoding; scores of outputs that other settings decoded, now or before, are left out.
        weights: Digest of the weights; scores of other weights are left out.
        training: Digest of the run's final weights; scores of an earlier training are left out.
    """
    scores: dict[str, dict[str, MetricValue]] = {}
    for path in sorted(folder.glob(f"*/{chosen.name}/*.json")):
        if not path.with_suffix(".npz").exists():
            continue
        record = ScoreFile.read(path)
        if path.parent.parent.name == LogLikelihoods.folder:  # computed without a search
            is_ours = record.weights == weights
        else:
            outputs = map(Decoded.read, folder.glob(f"trans*/{chosen.name}/{path.name}"))
            is_ours = any(it.weights == weights and not chosen.config.changed_since(it.decoding) for it in outputs)
        if is_ours and record.training in (None, training) and not is_outdated(path, record):
            scores.setdefault(record.test_set, {}).update(record.metrics)
    return scores


def verify(folder: Path) -> list[str]:
    """Verify the digests of a packed model.

    Returns:
        The names of its files.

    Raises:
        UserError: A file is missing or altered, or the folder is not a packed model.
    """
    try:
        lines = (folder / SUMS_FILE).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{folder}: has no {SUMS_FILE}, so it is not a packed model; `reprise pack RUN FILE.tar` writes one"
        ) from error
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    for name in (PACKED_FILE, layout.WEIGHTS_FILE, *sums):
        path = folder / name
        if name not in sums or not os.path.isfile(path) or sha256_file(path) != sums[name]:
            raise UserError(f"{path}: differs from the packed file; copy or download the model again")
    return list(sums)


def open_packed(folder: Path, decoding: str = "", threads: int | None = None) -> Model:
    """Return a packed model, ready to use.

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
    config = change_decoding(record.decoding, changes, record.spec.model)
    if config.reads_language_model:
        raise UserError("--decoding: ngram_order: a packed model has no text to count n-grams in; remove this key")
    device = machine.prepare_device(threads)
    try:
        model = load_model(record, folder / layout.WEIGHTS_FILE)
    except tensor_file.DamagedFileError as error:
        raise UserError(
            f"{folder / layout.WEIGHTS_FILE}: {error}; copy it again, or use the code that packed it"
        ) from error
    trained = TrainedModel(record.spec, model.to(device).eval(), device, record.corpus, record.weights, record.training)
    symbols = load_vocabularies(folder) if record.corpus.kind == "parallel" else (None, Alphabet())
    heard = (record.preparation.form == "speech", bool(record.preparation.sample_rate and record.preparation.high_hz))
    sizes = (len(symbols[0]), len(symbols[1])) if symbols[0] else record.corpus.vocab_sizes
    if sizes != record.corpus.vocab_sizes or (any(heard) and not (all(heard) and record.corpus.kind == "speech")):
        raise UserError(
            f"{folder / PACKED_FILE}: belongs to another model than the files beside it; copy the model again"
        )
    return Model.assemble(trained, config, record.preparation, symbols)


def load_model(record: PortableModel, path: Path) -> Seq2Seq:
    """Return the model of the settings `record` with all weights of the file `path`.

    Raises:
        DamagedFileError: The file is damaged, or its weights do not fit the settings.
    """
    weights = tensor_file.read_tensor_file(path)[0]
    if is_larger(record, weights):
        raise tensor_file.DamagedFileError(f"holds fewer weights than the model that {PACKED_FILE} describes")
    model = whole_model(record)
    tensor_file.load_into(model, weights)
    return model


def whole_model(record: PortableModel) -> Seq2Seq:
    """Build a model with untrained weights from its settings, without frozen parts."""
    return run_model.build_run_model(record.spec, record.corpus.vocab_sizes).requires_grad_(True)


def is_larger(record: PortableModel, weights: dict[str, Tensor]) -> bool:
    """Return whether the settings describe a larger model than the weights.

    A stranger may have written the settings, so this is checked before memory is allocated.

    Args:
        record: The settings.
        weights: Tensors of any shape, by name.
    """
    spec, scalars = record.spec, sum(weight.numel() for weight in weights.values())
    parts = [spec.model, spec.fusion, spec.language_model and spec.language_model.model]
    settings = [setting for part in parts if part for setting in part.model_dump().items()]
    numbers = [(key, value) for key, value in settings if type(value) is int]
    layers = [value for key, value in numbers if "layers" in key]
    largest = max((value for _, value in numbers), default=0)
    if max(layers, default=0) > len(weights) or max(largest, *record.corpus.vocab_sizes) > scalars:
        return True
    if MATRICES * largest**2 * (1 + sum(layers)) + largest * sum(record.corpus.vocab_sizes) < UNCOUNTED:
        return False
    try:
        return count_parameters_on_meta(lambda: whole_model(record)) > scalars
    except RuntimeError:  # more scalars than can be counted
        return True


def pack_archive(found: FoundRun, decoding: str, archive: Path) -> None:
    """Pack a model into one .tar file `archive`, atomically (see `pack`).

    Raises:
        UserError: The file exists, or the model cannot be packed (see `pack`).
    """
    if archive.exists():
        raise UserError(f"{archive}: already exists; name a new file")
    above = archive.absolute().parent
    with files.write_errors(archive, ANOTHER_PLACE):
        above.mkdir(parents=True, exist_ok=True)
        beside = tempfile.TemporaryDirectory(dir=above)
    with filling(archive), beside as folder:
        pack(found, decoding, Path(folder) / archive.stem)
        with files.atomic_write(archive, "wb") as file, tarfile.open(fileobj=file, mode="w") as tar:
            tar.add(Path(folder) / archive.stem, arcname=archive.stem)


def unpack(archive: Path, into: Path) -> Path:
    """Unpack the folder of the model in an archive.

    Args:
        archive: File that `pack_archive` wrote, or another archive of the same folder.
        into: Folder in which the model's folder is created, whole or not at all.

    Returns:
        The new folder.

    Raises:
        UserError: The archive is damaged or not a packed model, or the folder exists.
    """
    if not archive.is_file():
        raise UserError(f"{archive}: no such file; `reprise pack RUN FILE.tar` writes one")
    try:
        folder = into / only_folder(archive)
        if folder.exists():
            raise UserError(f"{folder} already exists; remove it, or name another FOLDER")
        with whole_folder(folder) as new:
            for member, size, content in members(archive, lambda _: True):
                path = new.parent / member
                disk.require_space(into, size, str(member), ANOTHER_PLACE)
                path.parent.mkdir(parents=True, exist_ok=True)
                with open(path, "wb") as file:
                    shutil.copyfileobj(content, file)
    except OSError as error:
        raise UserError(f"{archive}: can't be unpacked into {into}: {error.strerror or error}") from error
    except UserError as error:
        raise UserError(f"{archive}: can't be unpacked: {str(error).removeprefix(f'{archive}: ')}") from error
    return folder


def only_folder(archive: Path) -> str:
    """Return the folder that holds all members of an archive.

    Raises:
        UnreadableError: The archive can't be read.
        UserError: There is not exactly one folder.
    """
    tops = set[str]()
    try:
        tops.update(Path(name).parts[0] for name, _, _ in members(archive, lambda _: True))
    except UnreadableError:
        raise
    except UserError:
        if tops:
            raise
    if len(tops) != 1:
        raise UserError("it is not a packed model; name a .tar file that `reprise pack` wrote")
    return tops.pop()

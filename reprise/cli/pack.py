"""Move models elsewhere: pack and unpack them, export them to CTranslate2, publish them on the Hugging Face Hub."""

import logging
import re
import shutil
import tempfile
from pathlib import Path
from typing import Annotated, Literal

from pipeline.core.command_line import Argument
from pipeline.core.errors import UserError, count_of, one_line
from reprise.find_runs import PACKED_FILE
from reprise.opening import DecodingOptions, ModelOptions, split_decoding

log = logging.getLogger(__name__)
Run = Annotated[str, Argument(metavar="RUN")]
REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


def pack(model: Run, out: Path, *, options: DecodingOptions) -> None:
    """Pack a trained model into one folder or .tar file that works anywhere.

        reprise pack attention/base/wmt14-en-de/1 base-en-de.tar
        reprise translate base-en-de talk.en        # after `reprise unpack base-en-de.tar`

    The package works offline and by itself. It contains weights, vocabulary, preparation of text or sound, settings,
    scores, the licence of the data and a model card, but no sentences of the data.

    Args:
        model: Run as paper/system/dataset/seed, or its folder; not a packed model.
        out: Folder to write, or a file NAME.tar.
        options: How to decode, and the settings of the project.

    Raises:
        UserError: The output has the ending of another archive, or the model cannot be packed.
    """
    from reprise.portable import pack, pack_archive  # loads torch

    if is_other_archive(out):
        raise UserError(f"{out}: an archive of a model is a .tar file; write NAME.tar or a folder")
    found = options.find(model)
    (pack_archive if out.suffix == ".tar" else pack)(found, options.decoding, out)
    log.info("%s: %s", out, found.id.folder)


def is_other_archive(path: Path) -> bool:
    """Return whether a name has the ending of an archive other than .tar."""
    endings = {ending for _, known, _ in shutil.get_unpack_formats() for ending in known} - {".tar"}
    return path.name.lower().endswith(tuple(endings))


def unpack(
    model: Annotated[Path, Argument(metavar="FILE.tar")],
    into: Annotated[Path, Argument(metavar="FOLDER")] = Path(),
) -> None:
    """Unpack the .tar file of a model, and verify its files.

        reprise unpack base-en-de.tar [FOLDER]
        reprise unpack base-en-de/                  # only verify

    Args:
        model: File to unpack, or the folder of a packed model.
        into: Folder to unpack into.
    """
    from reprise.portable import unpack, verify  # loads torch

    folder = model if model.is_dir() else unpack(model, into)
    files = count_of(len(verify(folder)), "file is as it was packed", "files are as they were packed")
    print(f"{one_line(str(folder))}: {files}")


def publish(
    model: Annotated[Path, Argument(metavar="PACKED")],
    repository: Annotated[str, Argument(metavar="NAME/REPOSITORY")],
    *,
    private: bool = False,
) -> None:
    """Upload a packed model, with its card, to the Hugging Face Hub.

        reprise publish base-en-de.tar my-name/base-en-de
        reprise publish base-en-de/ my-name/base-en-de --private

    Creates the repository if it does not exist; every upload is one commit. Needs the extra `hub`
    (`pip install -e '.[hub]'`) and a token: run `hf auth login`, or set HF_TOKEN. A model whose data may not be
    redistributed is only uploaded with --private.

    Args:
        model: Packed model: the .tar file or folder that `reprise pack` wrote.
        repository: Repository on the Hub.
        private: Create the repository as a private one.

    Raises:
        UserError: The extra `hub` is not installed, the model is damaged, may not be redistributed, or the Hub refuses.
    """
    from reprise.portable import SUMS_FILE, PortableModel, unpack, verify  # loads torch

    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, HTTPError, LocalTokenNotFoundError
    except ImportError as error:
        raise UserError("huggingface_hub is not installed; `pip install -e '.[hub]'` installs it") from error
    if not REPOSITORY.fullmatch(repository):
        raise UserError(f"{repository}: write NAME/REPOSITORY, such as my-name/base-en-de")
    with tempfile.TemporaryDirectory() as beside:
        folder = model if model.is_dir() else unpack(model, Path(beside))
        files = verify(folder)
        record = PortableModel.read(folder / PACKED_FILE)
        if not (record.redistributable or private):
            raise UserError(f"{model}: its data may not be redistributed ({record.licence}); add --private")
        api = HfApi()
        try:
            address = api.create_repo(repository, private=private, exist_ok=True)
            if not (record.redistributable or api.model_info(repository).private):
                raise UserError(f"{repository}: is public, but the data of {model} may not be redistributed")
            message = f"Upload {record.run}, packed at commit {record.commit}"
            api.upload_folder(
                repo_id=repository, folder_path=folder, commit_message=message, allow_patterns=[*files, SUMS_FILE]
            )
        except (HfHubHTTPError, HFValidationError, LocalTokenNotFoundError) as error:
            hint = "is HF_TOKEN set, or did `hf auth login` run?"
            raise UserError(f"{repository}: not uploaded: {error}; {hint}") from error
        except (HTTPError, ConnectionError, TimeoutError) as error:
            hint = "is the Hub reachable from here? Pack the model and publish it from another machine otherwise"
            raise UserError(f"{repository}: not uploaded: {error}; {hint}") from error
    print(address)


def export(
    model: Run,
    out: Annotated[Path, Argument(metavar="FOLDER")],
    *,
    quantization: Literal["int8", "int16", "float16", "bfloat16"] | None = None,
    options: ModelOptions,
) -> None:
    """Export a plain Transformer to CTranslate2, which decodes several times as fast.

        reprise export attention/base/wmt14-en-de/1 base-ct2 --quantization int8

    `ctranslate2.Translator` opens the folder. Its `subwords.model` is a sentencepiece model, which turns tokenised text
    into pieces (`encode(line, out_type=str)`) and back. The name in --decoding chooses the weights; the settings of the
    search are those of `translate_batch`. Without a length penalty both rank hypotheses alike. With one, CTranslate2
    divides scores by length^alpha, and the papers by ((5 + length) / 6)^alpha.

    Args:
        model: paper/system/dataset/seed, a run's folder, or a packed model's.
        out: Folder to write.
        quantization: Type of the weights; by default float32.
        options: How to decode, and the settings of the project.

    Raises:
        UserError: `--decoding` has settings, or CTranslate2 can't express the model or its decoding.
    """
    from reprise.ctranslate2 import export  # loads torch

    if settings := split_decoding(options.decoding)[1]:
        raise UserError(
            f"--decoding: {next(iter(settings))}: is not exported; give it to CTranslate2's translate_batch"
        )

    opened = options.open(model)
    export(opened, out, quantization)
    log.info("%s: %s for CTranslate2", out, opened.name)

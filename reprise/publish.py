"""Upload packed models to the Hugging Face Hub."""

import re
import tempfile
from pathlib import Path

from pipeline.core.errors import UserError
from reprise.find_runs import PACKED_FILE
from reprise.portable import SUMS_FILE, PortableModel, unpack, verify

REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


def publish(model: Path, repository: str, private: bool) -> str:
    """Upload a packed model as one commit, and return the address of its page.

    Args:
        model: A .tar file that `reprise pack` wrote, or a folder that it wrote or `reprise unpack` unpacked.
        repository: `NAME/REPOSITORY`; created if it does not exist.
        private: Whether a new repository is private.

    Raises:
        UserError: The extra `hub` is not installed, the model is damaged or may not be passed on, or the Hub refuses.
    """
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalTokenNotFoundError
    except ImportError as error:
        raise UserError("huggingface_hub is not installed; `pip install '.[hub]'` installs it") from error
    if not REPOSITORY.fullmatch(repository):
        raise UserError(f"{repository}: write NAME/REPOSITORY, such as my-name/base-en-de")
    with tempfile.TemporaryDirectory() as beside:
        folder = model if model.is_dir() else unpack(model, Path(beside))
        files = verify(folder)
        record = PortableModel.read(folder / PACKED_FILE)
        if not (record.redistributable or private):
            raise UserError(f"{model}: its data may not be passed on ({record.licence}); add --private")
        api = HfApi()
        try:
            address = api.create_repo(repository, private=private, exist_ok=True)
            if not (record.redistributable or api.model_info(repository).private):
                raise UserError(f"{repository}: is public, but the data of {model} may not be passed on")
            message = f"Upload {record.run}, packed at commit {record.commit}"
            api.upload_folder(
                repo_id=repository, folder_path=folder, commit_message=message, allow_patterns=[*files, SUMS_FILE]
            )
        except (HfHubHTTPError, HFValidationError, LocalTokenNotFoundError, ConnectionError, OSError) as error:
            hint = "is HF_TOKEN set, or did `hf auth login` run?"
            raise UserError(f"{repository}: not uploaded: {error}; {hint}") from error
    return str(address)

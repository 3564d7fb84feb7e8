"""Settings have lower and upper bounds, and any number of faults is reported at once."""

from typing import Any, get_args

import pytest
from annotated_types import Ge, Gt, Le, Lt
from pydantic import AfterValidator, BaseModel
from real_project import real_project
from time_limit import within

from pipeline.config import DecodingConfig, RunSpec, TrainingConfig
from pipeline.core.errors import UserError
from pipeline.core.provenance import ROOT
from pipeline.core.schema import validate, within_bounds
from pipeline.data.dataset.loading import AnyDataset
from pipeline.models.architectures import architectures
from pipeline.papers.config_file import Config, require_work
from pipeline.papers.project import load_project
from pipeline.papers.scale import Scale
from reprise.opening import SHORT

RECORDS = [TrainingConfig, DecodingConfig, RunSpec, Scale, Config, *architectures().values()]


def numbers(kind: Any, metadata: tuple = ()) -> list[tuple[type, tuple]]:
    """Every number in a type, with its constraints; those of records inside it, too."""
    if kind in (int, float):
        return [(kind, metadata)]
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = kind.model_fields.values()
        return [number for field in fields for number in numbers(field.annotation, tuple(field.metadata))]
    extra = tuple(
        part for metadatum in getattr(kind, "__metadata__", ()) for part in getattr(metadatum, "metadata", [metadatum])
    )
    inner = [part for part in get_args(kind) if not isinstance(part, str)]
    if extra:
        return numbers(inner[0], (*metadata, *extra))
    found = [number for part in inner for number in numbers(part, metadata)]
    return [] if any(part is str for part in inner) else found  # a scale's rule is checked where it is applied


@pytest.mark.parametrize("record", [*RECORDS, AnyDataset], ids=lambda record: getattr(record, "__name__", "dataset"))
def test_every_number_has_bounds_on_both_sides(record):
    found = numbers(record)
    assert found
    for kind, constraints in found:
        if AfterValidator(within_bounds) in constraints:
            continue
        assert any(isinstance(constraint, Ge | Gt) for constraint in constraints), (kind, constraints)
        assert any(isinstance(constraint, Le | Lt) for constraint in constraints), (kind, constraints)


SETTINGS = {"max_steps": 10, "validate_every": 5, "checkpoint_every": 5, "tokens_per_update": 9, "warmup_steps": 2}


@pytest.mark.parametrize("key", ["max_steps", "validate_every", "micro_batch_tokens", "keep_checkpoints"])
@pytest.mark.parametrize("value", [2**62, 0, -1, 10**10])
def test_size_beyond_all_use_is_refused(key, value):
    validate(TrainingConfig, SETTINGS, "x")
    said = rf"^x: {key}: Input should be (less|greater) than or equal to .*, got {value}$"
    with pytest.raises(UserError, match=said):
        validate(TrainingConfig, SETTINGS | {key: value}, "x")


ALPHAS = (1e300, 11, -0.1, float("inf"), float("nan"))


@pytest.mark.parametrize(("name", "value"), [*(("alpha", alpha) for alpha in ALPHAS), ("beam", 1001), ("beam", 10**8)])
def test_search_beyond_all_use_is_refused(name, value):
    with pytest.raises(UserError, match=f"{SHORT[name]}: Input should be"):
        validate(DecodingConfig, {SHORT[name]: value}, "x")


@pytest.mark.parametrize("value", [[], [1.0], [1.0, 2.0, 3.0], [1e5, 2e5], ["a"], [None], {}, "", [[], []]])
def test_list_that_is_no_pair_is_refused_in_a_line(value):
    with pytest.raises(UserError, match=r"^x: noise_snr_db"):
        validate(TrainingConfig, SETTINGS | {"noise_snr_db": value}, "x")


KEYS = {f"key{number}": number for number in range(20_000)}
DEEP = {"systems": {name: {"model": {}, name: 1} for name in KEYS}}


@pytest.mark.parametrize(("kind", "keys"), [(DecodingConfig, KEYS), (Scale, DEEP)], ids=["top", "deep"])
def test_20000_unknown_keys_are_refused_at_once(kind, keys):
    with within(5), pytest.raises(UserError) as raised:
        validate(kind, keys, "x")
    assert len(str(raised.value).split("\n")) <= 21


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        *(
            ("work", value, r"config.yaml: work: starts with `-`.*write \./ before it")
            for value in ("-rf", "--help", "-")
        ),
        *(("mirror", value, "mirror: must be an existing folder or a URL") for value in ("m" * 300, "m/" * 3000)),
    ],
)
def test_impossible_folder_is_refused_when_settings_are_loaded(key, value, fault):
    with pytest.raises(UserError, match=fault):
        load_project(ROOT, {key: value})


@pytest.mark.parametrize(
    ("work", "fault"),
    [
        ("s3://bucket/x", "'s3://bucket/x': is an address; name a folder"),
        ("https://host/x", "is an address"),
        ("results/work", "is in the project's own folder results; choose another one"),
        ("workflow", "own folder workflow"),
        ("docs", "own folder docs"),
        ("qa/work", "own folder qa"),
        ("results/../pipeline", "own folder pipeline"),
        (f"a/{'b' * 300}/c", "longer than 255 bytes"),
        ("/".join(["a" * 200] * 20), "work: the path is longer than 3500 bytes; choose a shorter one"),
        ("config.yaml", r"work: config\.yaml is a file; .*folder.*\(got config\.yaml\)"),
        ("config.yaml/below", r"work: config\.yaml is a file; .*folder.*\(got config\.yaml/below\)"),
    ],
)
def test_unusable_work_folder_is_refused(work, fault, monkeypatch):
    monkeypatch.chdir(ROOT)
    with pytest.raises(UserError, match=fault) as raised:
        require_work(real_project({"work": work}).config, ROOT)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize("goal", ["gone/deep", "link"])
@pytest.mark.parametrize("below", ["", "/below"])
def test_work_folder_behind_a_link_to_nowhere_is_refused(goal, below, tmp_path):
    """A scratch disk may be cleared, or not be mounted on one node."""
    (tmp_path / "link").symlink_to(tmp_path / goal)
    fault = f"^work: {tmp_path}/link is a link to {tmp_path}/{goal}, which is not there; create that folder, or mount"
    with pytest.raises(UserError, match=fault):
        require_work(real_project({"work": f"{tmp_path}/link{below}"}).config, ROOT)

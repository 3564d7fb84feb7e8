"""Trees come from a mirror, documents or a licensed folder; a split that differs from its description is an error."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from treebank_records import make_treebank, sha256_lines, treebank_record, write_gz

from pipeline.core.errors import UserError
from pipeline.data.dataset import load_dataset
from pipeline.data.fetch import collect_trees, transfer
from pipeline.data.fetch.packages import expand_numbers

TREES = [f"( (S (NN w{number}) (. .)))" for number in range(10)]
SHIPPED = Path(__file__).parents[2] / "workflow/datasets"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(transfer, "FIRST_PAUSE_S", 0.0)


SPLITS = ("train", "dev", "test")


def collect(tmp_path: Path, record: dict, **options) -> dict[str, list]:
    """Run the stage on a dataset file and return the trees of each split."""
    dataset = tmp_path / "toy-trees.yaml"
    dataset.write_text(yaml.safe_dump(record), encoding="utf-8")
    folders = {"downloads": tmp_path / "downloads", "corpus": tmp_path / "corpus"}
    collect_trees.collect_trees(dataset=dataset, **folders, **options)
    texts = {split: (tmp_path / f"corpus/raw/{split}.trees").read_text(encoding="utf-8") for split in SPLITS}
    return {split: text.split("\n")[:-1] for split, text in texts.items()}


def fetched(source: dict, **changes) -> dict:
    """Return a dataset of ten trees in one file: seven train, two dev, one test."""
    places = {"train": (1, 7), "dev": (8, 2), "test": (10, 1)}
    parts = {split: {"source": "t.gz", "first": first, "trees": count} for split, (first, count) in places.items()}
    splits = {split: {"parts": [part]} for split, part in parts.items()}
    return treebank_record(kind="treebank", sources={"t.gz": source}, splits=splits, **changes)


def mirrored(tmp_path: Path, trees: list[str] = TREES, **changes) -> dict[str, list]:
    """Collect trees from a mirror."""
    source = write_gz(tmp_path / "mirror/t.gz", trees)
    return collect(tmp_path, fetched(source, **changes), mirror=str(tmp_path / "mirror"))


CUT = {"train": TREES[:7], "dev": TREES[7:9], "test": TREES[9:]}
EXPECTED = {"train": {"lines": 7, "sha256": sha256_lines(TREES[:7])}}


@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "with a byte order mark"])
def test_a_file_of_the_mirror_is_cut_into_splits(tmp_path, mark):
    assert mirrored(tmp_path, [mark + TREES[0], *TREES[1:]], expected=EXPECTED) == CUT


def test_documents_are_fetched_and_joined_without_a_mirror(tmp_path, monkeypatch):
    source = write_gz(tmp_path / "mirror/t.gz", TREES)
    web = tmp_path / "web"
    web.mkdir()
    (web / "a.tree").write_text("\n".join(TREES[:4]) + "\n", encoding="utf-8")
    (web / "b.tree").write_text("\n\n".join(tree.replace(" (", "\n   (") for tree in TREES[4:]), encoding="utf-8")
    monkeypatch.setattr(SimpleHTTPRequestHandler, "log_message", lambda *args: None)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(web))) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        source["documents"] = {"folder": f"http://127.0.0.1:{server.server_port}/", "names": ["a.tree", "b.tree"]}
        found = collect(tmp_path, fetched(source, expected=EXPECTED))
        server.shutdown()
    assert found == CUT


def test_unavailable_trees_give_one_message_with_a_remedy(tmp_path):
    source = write_gz(tmp_path / "mirror/t.gz", TREES)
    said = r"127.0.0.1:9/a\.tree.*put t\.gz into .*set `mirror:` to a folder that has it as t\.gz"
    with pytest.raises(UserError, match=said):
        collect(tmp_path, fetched(source))


OTHER = {"lines": 2, "sha256": "0" * 64}


@pytest.mark.parametrize(
    ("split", "trees", "expected", "message"),
    [
        ("train", TREES, {"lines": 8}, "7 trees found, expected 8"),
        ("dev", TREES, OTHER, "dev.trees: sha256 of the trees is .*, expected 000.*remove the"),
        ("dev", TREES[:8], None, "1 tree from number 8 on, expected 2"),
        ("train", [*TREES[:2], "(S (NN broken)", *TREES[2:]], None, r"t\.gz: line 3: this tree is not closed"),
    ],
    ids=["other number", "other digest", "too few", "broken"],
)
def test_split_that_is_not_as_described_is_not_written(tmp_path, split, trees, expected, message):
    with pytest.raises(UserError, match=message):
        mirrored(tmp_path, trees, expected={split: expected} if expected else {})
    assert not (tmp_path / f"corpus/raw/{split}.trees").exists()


def licensed() -> dict:
    """Return a dataset with two sections of a package for training and one file for testing."""
    files = {"train": ["wsj/02/w_{0200..0203}.mrg", "wsj/03/w_{00..01}.mrg"], "dev": ["d.mrg"], "test": ["t.mrg"]}
    return treebank_record(
        kind="treebank",
        packages={"LDC0": "a toy; the folder that holds wsj"},
        otherwise="toy",
        splits={split: {"parts": [{"package": "LDC0", "files": names}]} for split, names in files.items()},
    )


def write_package(folder: Path) -> None:
    names = [f"wsj/02/w_020{number}.mrg" for number in range(4)] + ["wsj/03/w_00.mrg", "wsj/03/w_01.mrg"]
    for name, tree in zip([*names, "d.mrg", "t.mrg"], TREES, strict=False):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"\n{tree}\n\n", encoding="utf-8")


def test_a_licensed_folder_is_read_in_the_order_of_its_files(tmp_path):
    write_package(tmp_path / "ldc")
    found = collect(tmp_path, licensed(), package=[f"LDC0={tmp_path / 'ldc'}", "LDC1=/nowhere"])
    assert found == {"train": TREES[:6], "dev": TREES[6:7], "test": TREES[7:8]}


def test_a_package_that_is_not_there_says_what_to_set(tmp_path):
    with pytest.raises(UserError, match="/dev/null/folder: no such folder; correct `licensed: LDC0`"):
        collect(tmp_path, licensed(), package=["LDC0=/dev/null/folder"])


def test_the_wsj_has_the_2058_files_of_its_22_sections():
    # of 100 files a section, sections 03, 08, 21 and 22 have 81, 21, 73 and 83
    splits = load_dataset(SHIPPED / "wsj.yaml").splits
    counts = {split: sum(len(expand_numbers(name)) for name in splits[split].parts[0].files) for split in SPLITS}
    assert counts == {"train": 2000 - 19 - 79 - 27, "dev": 83, "test": 100}


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"trees": 1}, "needs either a source, or a package and its files"),
        ({"source": "t.gz", "package": "p"}, "needs either a source"),
        ({"package": "p"}, "needs either a source"),
        ({"source": "t.gz"}, "split dev, test is missing"),
    ],
    ids=["no place", "two places", "a package without files", "a split too few"],
)
def test_a_fault_of_a_treebank_file_is_named(tmp_path, part, message):
    sources = {"t.gz": write_gz(tmp_path / "t.gz", TREES)}
    with pytest.raises(UserError, match=message):
        make_treebank(kind="treebank", sources=sources, splits={"train": {"parts": [part]}})


def test_sources_are_those_that_splits_name(tmp_path):
    record = fetched(source := write_gz(tmp_path / "t.gz", TREES))
    with pytest.raises(UserError, match=r"no split uses source u\.gz"):
        make_treebank(**record | {"sources": {"t.gz": source, "u.gz": source}})


@pytest.mark.parametrize("pattern", ["{1..999999999}", "{0..100000}", "{1.." + "9" * 5000 + "}"])
def test_pattern_of_too_many_files_is_refused(pattern):
    with pytest.raises(UserError, match="matches more than 100,000 files"):
        expand_numbers(f"wsj_{pattern}.mrg")


def test_pattern_that_counts_down_is_refused():
    assert expand_numbers("{7..7}") == ["7"]
    with pytest.raises(UserError, match="matches no file, as 0299 is above 0200"):
        expand_numbers("wsj_{0299..0200}.mrg")

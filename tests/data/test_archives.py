"""Archives that hold more than plain files, and archives with false headers."""

import random
import zipfile
from pathlib import Path

import pytest
from made_archives import entry, hard_link, pack, symbolic_link, tar
from time_limit import within

from pipeline.core.errors import UserError
from pipeline.data.dataset.parallel import Side
from pipeline.data.fetch import untrusted
from pipeline.data.fetch.archives import members, unpack
from pipeline.data.fetch.raw_text import read_side

RNG = random.Random()


@pytest.fixture(autouse=True)
def seeded(request):
    RNG.seed(request.node.name)


def write_tar(path: Path, *entries: bytes) -> Path:
    path.write_bytes(tar(*entries, kind=RNG.choice(["tar", "gz"])))
    return path


def read(archive: Path, wanted=lambda name: True) -> dict[str, bytes]:
    return {name: content.read() for name, _, content in members(archive, wanted)}


def noise() -> bytes:
    return RNG.randbytes(RNG.randrange(1, 2000))


def test_hard_links_have_the_content_of_their_target(tmp_path):
    first, second = noise(), noise()
    entries = [entry("d/one", first), hard_link("d/two", "d/one"), hard_link("d/three", "./d/two")]
    entries += [entry("d/one", second), hard_link("d/four", "d/one"), hard_link("d/nothing", "d/none")]
    archive = write_tar(tmp_path / "a.tar", *entries)
    assert read(archive) == {"d/one": second, "d/two": first, "d/three": first, "d/four": second}
    assert read(archive, "d/two".__eq__) == {"d/two": first}
    found = unpack(archive, "a", {"d/three", "d/four"}, tmp_path / "out")
    assert {name: path.read_bytes() for (_, name), path in found.items()} == {"d/three": first, "d/four": second}


@pytest.mark.parametrize("_", range(20))
def test_last_of_links_and_files_of_one_name_counts(tmp_path, _):
    entries, content = list[bytes](), dict[str, bytes]()
    for _ in range(RNG.randrange(3, 12)):
        name, target = RNG.choice("xyz"), RNG.choice("xyz")
        if target in content and target != name:
            entries.append(hard_link(name, target))
            content[name] = content[target]
        else:
            content[name] = noise()
            entries.append(entry(name, content[name]))
    assert read(write_tar(tmp_path / "a.tar", *entries)) == content


def test_link_is_read_once_in_place_of_a_replaced_link(tmp_path):
    entries = [entry("x", b"1"), hard_link("y", "x"), hard_link("z", "x"), entry("y", b"2")]
    found = members(write_tar(tmp_path / "a.tar", *entries), "yz".__contains__, once=True)
    assert {name: content.read() for name, _, content in found} == {"y": b"2", "z": b"1"}


@pytest.mark.parametrize("kind", ["tar", "gz", "zip"])
def test_symbolic_links_inside_an_archive_are_read(tmp_path, kind):
    content = noise()
    links = {"d/up": "../e/file", "d/chain": "up", "loop": "loop", "d/out": "../../etc/passwd", "abs": "/etc/passwd"}
    (tmp_path / "a").write_bytes(pack([("e/file", content)], kind, links))
    assert read(tmp_path / "a") == {"e/file": content, "d/up": content, "d/chain": content}


def random_tree(folder: Path) -> dict[str, str]:
    """Write files and links, some to folders and through links; return the targets of the links."""
    names = [f"{a}/{b}/{c}" for a in "ab" for b in "cd" for c in "ef" if RNG.random() < 0.7] or ["a/c/e"]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(noise())
    links = {}
    folders = ["", *(inner for inner in ("a", "b", "a/c", "a/d", "b/c", "b/d") if (folder / inner).is_dir())]
    for number in range(RNG.randrange(1, 6)):
        name = f"{RNG.choice(folders)}/l{number}".lstrip("/")
        steps = [RNG.choice(["..", "a", "b", "c", "d", "l0", "l1", "l2", "."]) for _ in range(RNG.randrange(1, 5))]
        links[name] = "/".join(steps)
        (folder / name).symlink_to(links[name])
    while broken := [name for name, target in links.items() if not all(map(Path.is_dir, way(folder / name, target)))]:
        for name in broken:
            (folder / name).unlink()
            del links[name]
    return links


def way(link: Path, target: str) -> list[Path]:
    """Return the folders that a link leads through. The system needs all of them, an archive only those with files."""
    steps = target.split("/")
    return [link.parent / "/".join(steps[:count]) for count in range(1, len(steps))]


def reached(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder by all names without a loop, as the system finds them."""
    found = {}

    def walk(path: Path, name: str, above: tuple[Path, ...]) -> None:
        for inner in path.iterdir():
            try:
                end = inner.resolve(strict=True)
            except (OSError, RuntimeError):  # nothing is there, or links in a circle
                continue
            inside = end == folder or folder in end.parents
            if end.is_file():
                found[f"{name}{inner.name}"] = end.read_bytes()
            elif inside and not (inner.is_symlink() and end in above):
                walk(end, f"{name}{inner.name}/", (*above, end) if inner.is_symlink() else above)

    walk(folder, "", ())
    return found


@pytest.mark.parametrize("kind", ["tar", "zip"])
@pytest.mark.parametrize("_", range(20))
def test_files_below_linked_folders_are_those_of_the_system(tmp_path, kind, _):
    folder = tmp_path / "tree"
    folder.mkdir()
    links = random_tree(folder)
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    real = {name: path.read_bytes() for name, path in files.items() if path.resolve() == path and name not in links}
    if kind == "tar":
        entries = [*(entry(*member) for member in real.items()), *(symbolic_link(*link) for link in links.items())]
        write_tar(tmp_path / "a", *RNG.sample(entries, len(entries)))
    else:
        (tmp_path / "a").write_bytes(pack(real.items(), "zip", links))
    assert read(tmp_path / "a") == reached(folder)


def test_linked_folders_that_name_too_many_files_are_refused(tmp_path):
    farm = [symbolic_link(f"d{number}/{side}", f"../d{number + 1}") for number in range(30) for side in "abc"]
    archive = write_tar(tmp_path / "a.tar", *farm, entry("d30/x", b"1"))
    refused = pytest.raises(UserError, match="its links to folders name more than 500,000 files; repack it")
    with within(5), refused:
        read(archive, "d0/none".__eq__)


def test_hard_links_to_symbolic_links_are_read(tmp_path):
    content = noise()
    links = [symbolic_link("d/soft", "../e/file"), hard_link("hard", "d/soft"), hard_link("lost", "d/none")]
    archive = write_tar(tmp_path / "a.tar", *links, entry("e/file", content))
    assert read(archive) == {"e/file": content, "d/soft": content, "hard": content}


@pytest.mark.parametrize("magic", [b"Rar!\x1a\x07\x01\x00", b"7z\xbc\xaf\x27\x1c", b"\x28\xb5\x2f\xfd"])
def test_other_archives_are_refused_with_those_that_are_read(tmp_path, magic):
    (tmp_path / "a").write_bytes(magic + noise()[:400])
    with pytest.raises(UserError, match="remove it and fetch it again; zip and tar archives are read"):
        read(tmp_path / "a")


def test_files_that_macos_adds_are_passed_over(tmp_path):
    content = noise()
    archive = write_tar(tmp_path / "a.tar", entry("d/._x", noise()), entry("d/Icon\r", b""), entry("d/x", content))
    files = [("d/x", content), ("__MACOSX/d/._x", noise()), ("__MACOSX/d/y", noise())]
    (tmp_path / "a.zip").write_bytes(pack(files, "zip"))
    assert read(archive) == read(tmp_path / "a.zip") == {"d/x": content}


def test_zip_names_of_windows_and_macos_are_found(tmp_path):
    content = noise()
    files = {"corpus\\": b"", "corpus\\train.en": content, "u\u0308ber/train.en": content}
    (tmp_path / "a.zip").write_bytes(pack(files.items(), "zip"))
    found = unpack(tmp_path / "a.zip", "a", {"corpus/train.en", "über/train.en"}, tmp_path / "out")
    assert [path.read_bytes() for path in found.values()] == [content, content]
    assert unpack(tmp_path / "a.zip", "a", {"corpus\\train.en"}, tmp_path / "out")


def test_zip_members_without_a_name_are_passed_over(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        nameless = zipfile.ZipInfo("x")
        nameless.filename = ""
        with archive.open(nameless, "w") as file:
            file.write(noise())
        archive.writestr("named", b"1")
    assert read(tmp_path / "a.zip") == {"named": b"1"}


@pytest.mark.parametrize("version", ["0.0", "0.1", "1.0"])
def test_sparse_files_are_filled_up_with_zeros(tmp_path, version):
    data, hole = noise()[:400], RNG.randrange(1, 5000)
    size = hole + len(data) + RNG.randrange(5000)
    places = f"1\n{hole}\n{len(data)}\n".encode().ljust(512, b"\0") if version == "1.0" else b""
    pax = {
        "0.0": {"size": size, "numblocks": 1, "offset": hole, "numbytes": len(data)},
        "0.1": {"size": size, "map": f"{hole},{len(data)}"},
        "1.0": {"major": 1, "minor": 0, "realsize": size},
    }[version]
    sparse = entry("sparse", places + data, {f"GNU.sparse.{key}": str(value) for key, value in pax.items()})
    archive = write_tar(tmp_path / "a.tar", sparse, entry("after", b"1"))
    assert read(archive) == {"sparse": bytes(hole) + data + bytes(size - hole - len(data)), "after": b"1"}


FALSE_HEADERS = {
    "huge size": {"size": "99999999999999"},
    "negative size": {"size": "-5000"},
    "size is no number": {"size": "nan"},
    "sparse map is no list": {"GNU.sparse.map": "1,x", "GNU.sparse.size": "9"},
    "sparse size is no number": {"GNU.sparse.size": "x"},
    "sparse map is missing": {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "9" * 14},
    "long header": {"comment": "9" * 50_000},
}


@pytest.mark.parametrize("pax", FALSE_HEADERS.values(), ids=FALSE_HEADERS)
def test_false_tar_headers_end_in_one_line(tmp_path, pax):
    archive = write_tar(tmp_path / "a.tar", entry("first", b"1"), entry("false", noise(), pax), entry("last", b"2"))
    for wanted in ((lambda name: True), "last".__eq__):
        with within(5), pytest.raises(UserError, match=r"a\.tar: damaged \(.+\); remove it"):
            read(archive, wanted)


def test_damaged_header_is_no_end_of_the_archive(tmp_path):
    bad = bytearray(entry("second", b"2"))
    bad[RNG.randrange(100)] ^= 1
    archive = write_tar(tmp_path / "a.tar", entry("first", b"1"), bytes(bad), entry("third", b"3"))
    with pytest.raises(UserError, match="bad header"):
        read(archive)


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zip"])
def test_small_file_that_expands_too_far_is_refused(tmp_path, monkeypatch, kind):
    """Each holds millions of empty lines; beyond the zip file, the free size is smaller here."""
    if kind != "zip":
        monkeypatch.setattr(untrusted, "FREE_ARCHIVE", 1 << 20)
        monkeypatch.setattr(untrusted, "FREE_TEXT", 1 << 20)
    path = tmp_path / f"a.{kind}"
    path.write_bytes(pack([("a", b"\n" * (untrusted.FREE_ARCHIVE + 1))], kind))
    said = r"bytes expand to [\d,]+ or more, beyond the limit of 100 times; [^\n]*decompress it"
    with pytest.raises(UserError, match=said) as refusal:
        [*members(path, lambda name: name == "b")] or read(path)
    assert str(path) in str(refusal.value)
    if kind == "gz":
        with pytest.raises(UserError, match=rf"^{path}: its [^\n]*beyond the limit of 100 times"):
            sum(1 for _ in read_side(Side(source="a.gz"), path))


def test_sparse_files_that_expand_too_far_together_are_refused(tmp_path):
    size = untrusted.FREE_ARCHIVE * 2 // 3
    holes = {"GNU.sparse.map": "0,1", "GNU.sparse.size": str(size)}
    entries = [entry(name, b"x", holes) for name in "ab"]
    archive = tmp_path / "a.tar"
    archive.write_bytes(tar(entries[0]))
    assert len(read(archive)["a"]) == size
    archive.write_bytes(tar(*entries))
    with pytest.raises(UserError, match=rf"a\.tar: its [\d,]+ bytes expand to {2 * size:,} or more, beyond the limit"):
        read(archive)


def test_archive_may_begin_with_silence(tmp_path, monkeypatch):
    """Its beginning expands a thousandfold, the whole of it twelvefold."""
    monkeypatch.setattr(untrusted, "FREE_ARCHIVE", 1 << 22)
    files = {"silence": bytes(untrusted.FREE_ARCHIVE + 1), "noise": RNG.randbytes(400_000)}
    (tmp_path / "a.tar.gz").write_bytes(pack(files.items(), "gz"))
    assert read(tmp_path / "a.tar.gz") == files


def test_disk_fault_is_not_taken_for_damage():
    unreadable = Path("/proc/self/mem")  # the system answers EIO at its first byte
    with pytest.raises(UserError, match="can't be read: Input/output error; nothing was removed") as raised:
        read(unreadable)
    assert isinstance(raised.value.__cause__, OSError)

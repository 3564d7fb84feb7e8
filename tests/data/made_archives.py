"""Archives that are made up member by member: tar entries with any header, and files and links packed as tar or zip."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Iterable, Mapping

COMPRESSIONS = {"tar": bytes, "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


def entry(name: str, content: bytes = b"", pax: dict[str, str] | None = None, **fields) -> bytes:
    """Return one tar entry with its content; `pax` headers may be false."""
    header = tarfile.TarInfo(name)
    header.size, header.pax_headers = len(content), pax or {}
    for field, value in fields.items():
        setattr(header, field, value)
    return header.tobuf(tarfile.PAX_FORMAT) + content + bytes(-len(content) % 512)


def hard_link(name: str, target: str) -> bytes:
    return entry(name, type=tarfile.LNKTYPE, linkname=target)


def symbolic_link(name: str, target: str) -> bytes:
    return entry(name, type=tarfile.SYMTYPE, linkname=target)


def tar(*entries: bytes, kind: str = "tar") -> bytes:
    """Return entries as a tar, compressed if `kind` is `gz`, `bz2` or `xz`."""
    return COMPRESSIONS[kind](b"".join(entries) + bytes(1024))


def pack(files: Iterable[tuple[str, bytes]], kind: str, links: Mapping[str, str] | None = None) -> bytes:
    """Return files and symbolic links, in their order, as a tar of some kind or as a zip; names may recur."""
    if kind != "zip":
        return tar(
            *(entry(*file) for file in files), *(symbolic_link(*link) for link in (links or {}).items()), kind=kind
        )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
        for name, target in (links or {}).items():
            link = zipfile.ZipInfo(name)
            link.external_attr = 0o120777 << 16
            archive.writestr(link, target)
    return buffer.getvalue()

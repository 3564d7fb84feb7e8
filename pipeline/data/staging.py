"""Copies of files on the local disk.

Network disks serve random reads badly, so training reads copies. Without room on the local disk, the corpus is read
once from end to end, which fills the page cache.
"""

import atexit
import contextlib
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from pipeline.core.digests import sha256_json
from pipeline.core.disk import format_bytes, own_folder

log = logging.getLogger(__name__)

NETWORK = ("nfs", "lustre", "beegfs", "gpfs", "ceph", "fuse", "cifs", "smb", "afs", "pvfs", "orangefs", "wekafs", "9p")
IN_MEMORY = ("tmpfs", "ramfs")
CHUNK = 16 << 20
MOUNTS = Path("/proc/mounts")
OCTAL = re.compile(rb"\\([0-3][0-7]{2})")


def stage_in(files: Iterable[Path]) -> None:
    """Copy files from a network disk to the local disk; files on other disks stay where they are.

    Files that cannot be copied are read where they are.
    """
    far = [path for path in files if file_system(path).startswith(NETWORK)]
    copies = {path: copy_of(path) for path in far}
    missing = [path for path, copy in copies.items() if not copy.exists()]
    if not missing:
        return
    needed = sum(path.stat().st_size for path in missing)
    there = Path(tempfile.gettempdir())
    near = not file_system(there).startswith((*NETWORK, *IN_MEMORY))
    if near and shutil.disk_usage(there).free > 2 * needed:  # other jobs may do the same
        try:
            for path in missing:
                copy(path, copies[path])
            log.info("copied %s of the corpus to the local disk, %s", format_bytes(needed), there)
            return
        except OSError as error:
            log.warning("%s: %s; reading the corpus from the network disk", there, error.strerror)
    for path in missing:
        read_through(path)
    log.info("read %s of the corpus in order: the local disk has no room for a copy", format_bytes(needed))


def staged_path(path: Path) -> Path:
    """Return the local copy of a file on a network disk if there is a current one, else the file."""
    if not file_system(path).startswith(NETWORK):
        return path
    copy = copy_of(path)
    return copy if copy.exists() else path


def copy_of(path: Path) -> Path:
    """Return the path of a file's copy, which depends on the file's path, size and modification time.

    So jobs on one node share a copy, and a changed file gets another one.

    Raises:
        UserError: Another user owns the folder for such files.
    """
    state = path.stat()
    digest = sha256_json([os.fsencode(path.resolve()).hex(), state.st_size, state.st_mtime_ns])[:16]
    return own_folder() / "corpora" / digest / path.name


def copy(path: Path, target: Path) -> None:
    """Copy `path` to `target` atomically, and delete the copy at exit; other processes keep it open until they end."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f"{target.name}.{os.getpid()}")
    atexit.register(shutil.rmtree, target.parent, ignore_errors=True)
    try:
        shutil.copyfile(path, unfinished)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def read_through(path: Path) -> None:
    """Read a file from end to end, so that the page cache holds it."""
    with contextlib.suppress(OSError), open(path, "rb", buffering=0) as file:  # the reader itself reports a fault
        while file.read(CHUNK):
            pass


def file_system(path: Path) -> str:
    """Return the type of the file system that holds `path`, such as `ext4` or `nfs4`; empty if unknown."""
    try:
        lines = MOUNTS.read_bytes().splitlines()
    except OSError:
        return ""
    mounts = {mounted_at(fields[1]): os.fsdecode(fields[2]) for line in lines if len(fields := line.split()) > 2}
    return next((mounts[above] for above in (path.resolve(), *path.resolve().parents) if above in mounts), "")


def mounted_at(field: bytes) -> Path:
    """Return the path in a `field` of `MOUNTS`, in which spaces and backslashes are octal numbers after a backslash."""
    return Path(os.fsdecode(OCTAL.sub(lambda found: bytes([int(found[1], 8)]), field)))

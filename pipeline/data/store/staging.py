"""An encoded corpus near the processor that reads it: training reads sentences all over it, which a network disk serves
badly. So it is copied to the node's own disk where there is room; where not, it is read once from end to end, which
leaves it in memory as far as that goes.
"""

import atexit
import contextlib
import logging
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from pipeline.core.disk import own_folder, size
from pipeline.core.sha256 import sha256_json

log = logging.getLogger(__name__)

NETWORK = ("nfs", "lustre", "beegfs", "gpfs", "ceph", "fuse", "cifs", "smb", "afs", "pvfs", "orangefs", "wekafs", "9p")
IN_MEMORY = ("tmpfs", "ramfs")
CHUNK = 16 << 20


def stage(files: Iterable[Path]) -> None:
    """Bring files of a network disk near; others are left alone. What can't be copied is read where it is."""
    far = [path for path in files if file_system(path).startswith(NETWORK)]
    copies = {path: copy_of(path) for path in far}
    missing = [path for path, copy in copies.items() if not copy.exists()]
    if not missing:
        return
    needed = sum(path.stat().st_size for path in missing)
    there = Path(tempfile.gettempdir())
    near = not file_system(there).startswith((*NETWORK, *IN_MEMORY))
    if near and shutil.disk_usage(there).free > 2 * needed:  # others may do the same
        try:
            for path in missing:
                copy(path, copies[path])
            log.info("%s of the corpus copied to this node's own disk, %s", size(needed), there)
            return
        except OSError as error:
            log.warning("%s: %s; the corpus is read where it is", there, error.strerror)
    for path in missing:
        read_through(path)
    log.info("%s of the corpus read in order: there is no room for it on this node's own disk", size(needed))


def nearest(path: Path) -> Path:
    """The copy of a file of a network disk on this node, if there is one of it as it is, else the file."""
    if not file_system(path).startswith(NETWORK):
        return path
    copy = copy_of(path)
    return copy if copy.exists() else path


def copy_of(path: Path) -> Path:
    """Where a file's copy lies: by what it is, so that jobs on one node share it and that of another state is another.

    Raises:
        UserError: the folder for such files is somebody else's.
    """
    state = path.stat()
    digest = sha256_json([str(path.resolve()), state.st_size, state.st_mtime_ns])[:16]
    return own_folder() / "corpora" / digest / path.name


def copy(path: Path, target: Path) -> None:
    """Whole or not at all; it goes with the process, and others that have it open keep it until they end."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.{os.getpid()}")
    atexit.register(shutil.rmtree, target.parent, ignore_errors=True)
    try:
        shutil.copyfile(path, partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def read_through(path: Path) -> None:
    with contextlib.suppress(OSError), open(path, "rb", buffering=0) as file:
        while file.read(CHUNK):
            pass


def file_system(path: Path) -> str:
    """The type of the file system that `path` lies on, such as `ext4` or `nfs4`; empty where nobody says."""
    try:
        lines = Path("/proc/mounts").read_text().splitlines()
    except OSError:
        return ""
    mounts = {Path(fields[1]): fields[2] for line in lines if len(fields := line.split()) > 2}
    return next((mounts[above] for above in (path.resolve(), *path.resolve().parents) if above in mounts), "")

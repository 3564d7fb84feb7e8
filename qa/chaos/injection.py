"""Faults at system calls: a preloaded library (faults.c), and the shared page that controls it."""

import ctypes
import dataclasses
import errno
import mmap
import os
import shutil
import subprocess
from pathlib import Path
from typing import ClassVar

CALLS = ("open to read", "open to write", "read", "write", "fsync", "rename")
SHORT, KILL = -1, -2
EVER = 1 << 40
ERRORS = {
    "open to read": (errno.EIO, errno.ESTALE, errno.EACCES),
    "open to write": (errno.EIO, errno.ESTALE, errno.EACCES, errno.ENOSPC),
    "read": (errno.EIO, errno.ESTALE, SHORT),
    "write": (errno.EIO, errno.ESTALE, errno.ENOSPC, SHORT),
    "fsync": (errno.EIO, errno.ENOSPC),
    "rename": (errno.EIO, errno.ESTALE, errno.EACCES, errno.ENOSPC),
}
"""Errors that each call can return."""
PASSING = (errno.EIO, errno.ESTALE, SHORT)
"""Errors that a stage survives by itself if they happen once."""


class Page(ctypes.Structure):
    """`struct page` of faults.c."""

    _fields_: ClassVar = [
        ("root", ctypes.c_char * 512 * 2),
        ("seen", ctypes.c_int64 * len(CALLS)),
        ("injected", ctypes.c_int64),
        ("armed", ctypes.c_int32),
        ("call", ctypes.c_int32),
        ("action", ctypes.c_int32),
        ("at", ctypes.c_int64),
        ("times", ctypes.c_int64),
        ("seed", ctypes.c_int64),
        ("per_million", ctypes.c_int64),
        ("where", ctypes.c_char * 512),
    ]


@dataclasses.dataclass(frozen=True)
class Fault:
    """An `action` (an errno, SHORT or KILL) for `times` calls from the `at`-th on; `at` 0: at random ones."""

    call: str
    action: int
    at: int = 0
    times: int = 1
    seed: int = 0
    per_million: int = 0

    def __str__(self) -> str:
        what = {SHORT: "cut short", KILL: "kill -9"}.get(self.action) or errno.errorcode[self.action]
        when = f"number {self.at}" if self.at else f"{self.per_million / 1e4:g} % of all, seed {self.seed}"
        often = "from then on" if self.times == EVER and self.at else "" if self.times == EVER else f"x {self.times}"
        return f"{what} at {self.call} {when} {often}".strip()


class Injector:
    """The library, compiled into `folder`, and its controls."""

    def __init__(self, folder: Path):
        if not shutil.which("cc"):
            raise SystemExit("error: there is no C compiler to build qa/chaos/faults.c with; apt-get install gcc")
        self.library, self.file, self.opened_file = (folder / name for name in ("faults.so", "page", "page.opened"))
        source = Path(__file__).with_name("faults.c")
        command = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(self.library), str(source), "-ldl"]
        subprocess.run(command, check=True)
        self.file.write_bytes(bytes(ctypes.sizeof(Page)))
        with open(self.file, "r+b") as handle:
            self.page = Page.from_buffer(mmap.mmap(handle.fileno(), ctypes.sizeof(Page)))

    def environment(self) -> dict[str, str]:
        """Return the environment of processes whose calls may fail."""
        return os.environ | {"LD_PRELOAD": str(self.library), "CHAOS_PAGE": str(self.file)}

    def arm(self, roots: tuple[Path, Path], fault: Fault | None) -> None:
        """Count the calls on files below `roots` from now on, and inject `fault`."""
        ctypes.memset(ctypes.addressof(self.page), 0, ctypes.sizeof(Page))
        for number, root in enumerate(roots):
            self.page.root[number].value = os.fsencode(f"{root}/")
        if fault:
            self.page.call, self.page.action = CALLS.index(fault.call), fault.action
            self.page.at, self.page.times = fault.at, fault.times
            self.page.seed, self.page.per_million = fault.seed, fault.per_million
        else:
            self.page.call = -1
        self.opened_file.unlink(missing_ok=True)
        self.page.armed = 1

    def disarm(self) -> None:
        self.page.armed = 0

    def seen(self) -> dict[str, int]:
        """Return the number of calls since `arm`."""
        return {call: self.page.seen[number] for number, call in enumerate(CALLS)}

    def opened(self, folder: Path) -> set[str]:
        """Return the files below `folder` that were opened to read since `arm`, if no fault was armed."""
        lines = self.opened_file.read_text().splitlines() if self.opened_file.exists() else []
        paths = (folder / line for line in lines)
        return {str(path.relative_to(folder)) for path in paths if path.is_relative_to(folder) and path.is_file()}

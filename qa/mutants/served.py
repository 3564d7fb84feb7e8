"""A pytest plugin that collects tests once, then runs some of them for each mutant in a forked process.

The fork gives the functions of the changed file their new code, so neither imports nor collection are repeated.
"""

import gc
import json
import os
import resource
import sys
from collections import Counter
from pathlib import Path
from types import CodeType, FunctionType

import pytest
from fork import waited

FUNCTION = 1
"""The flag (CO_OPTIMIZED) of code that runs when it is called; code of a module or class runs on import."""
Name = tuple[str, str, int]
"""Identity of a function: file, qualified name, first line."""


class Changed(Exception):
    """More than function bodies differ, so the file has to be imported again."""


def functions_below(folder: Path) -> dict[Name, list[FunctionType]]:
    """Return all functions made so far from files below a folder, with decorated functions and closures."""
    found: dict[Name, list[FunctionType]] = {}
    for made in gc.get_objects():
        if isinstance(made, FunctionType) and made.__code__.co_filename.startswith(f"{folder}/"):
            found.setdefault(name_of(made.__code__), []).append(made)
    return found


def name_of(code: CodeType) -> Name:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def pairs(before: CodeType, after: CodeType) -> list[tuple[CodeType, CodeType]]:
    """Return the functions that differ, if no code differs that runs on import."""
    nested = [[constant for constant in code.co_consts if isinstance(constant, CodeType)] for code in (before, after)]
    if len(nested[0]) != len(nested[1]) or (not before.co_flags & FUNCTION and shallow(before) != shallow(after)):
        raise Changed
    found = [pair for old, other in zip(*nested, strict=True) for pair in pairs(old, other)]
    differs = found or shallow(before) != shallow(after)
    return [*found, (before, after)] if before.co_flags & FUNCTION and differs else found


def shallow(code: CodeType) -> tuple:
    return (
        code.co_code,
        code.co_names,
        repr([constant for constant in code.co_consts if not isinstance(constant, CodeType)]),
    )


def replace_functions(path: Path, before: str, after: str, made: dict[Name, list[FunctionType]]) -> None:
    """Replace the functions of an imported module; a module not imported yet is read from the file."""
    if not any(getattr(module, "__file__", None) == str(path) for module in list(sys.modules.values())):
        return
    try:
        old, new = (compile(source, str(path), "exec", dont_inherit=True) for source in (before, after))
    except SyntaxError as error:
        raise Changed from error
    found = pairs(old, new)
    names = Counter(name_of(old) for old, _ in found)
    if not found or names.most_common(1)[0][1] > 1 or not any(name_of(old) in made for old, _ in found):
        raise Changed
    for first, other in found:
        for function in made.get(name_of(first), ()):
            try:
                function.__code__ = other
            except ValueError as error:  # it closes over other names
                raise Changed from error


class Served:
    def __init__(self, orders: int, answers: int):
        """Open the pipes: a line comes for each mutant, and one goes."""
        self.orders, self.answers = os.fdopen(orders), os.fdopen(answers, "w")
        self.noticed: Path | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        """Serve orders until there are no more; each fork runs the tests of its order."""
        by_name = {item.nodeid: item for item in session.items}
        gc.unfreeze()  # tests/conftest.py hides what was imported from functions_below
        made = functions_below(Path.cwd())
        gc.collect()
        gc.freeze()
        self.say({"ready": len(by_name)})
        for line in self.orders:
            order = json.loads(line)
            pid = os.fork()
            if not pid:
                os.setsid()
                resource.setrlimit(resource.RLIMIT_CPU, (order["cpu"], order["cpu"]))
                self.noticed = Path(order["noticed"])
                try:
                    replace_functions(Path(order["path"]), order["before"], order["after"], made)
                except Changed:
                    self.noticed.write_text("changed")
                    os._exit(0)
                session.items[:] = [by_name[name] for name in order["tests"]]
                session.testscollected = len(session.items)
                return None
            self.say({"code": waited(pid, order["limit"])})
        return True

    def say(self, answer: dict) -> None:
        self.answers.write(json.dumps(answer) + "\n")
        self.answers.flush()

    def pytest_runtest_logreport(self, report):
        if report.failed and self.noticed:
            self.noticed.write_text(report.nodeid)

"""A pytest plugin that records which test runs which line of the project, and how long each test takes."""

import json
import time
from collections import Counter
from functools import cache
from pathlib import Path

import coverage
import pytest


class Traced:
    def __init__(self, path: Path, limit: float | None = None):
        """Set up the trace.

        Args:
            path: File to write the traces to.
            limit: CPU seconds after which a test gets no further parameters; after four times that, a file no
                further tests.
        """
        self.path, self.limit = path, limit
        self.spent: Counter = Counter()
        """Seconds by test, without its parameters, and by file."""
        self.cover = coverage.Coverage(
            data_file=None, source=["pipeline", "reprise"], config_file=False, messages=False
        )
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self.sharing: dict[str, set[str]] = {}
        """Tests by the fixtures of wider scope that they use."""
        self.cover.start()

    def pytest_collection_finish(self, session):
        for item in session.items:
            for name, definitions in item._fixtureinfo.name2fixturedefs.items():
                if definitions[-1].scope != "function":
                    self.sharing.setdefault(f"{definitions[-1].baseid} {name}", set()).add(item.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        """Run a test; beyond the limit, it is left out."""
        test, file = item.nodeid.partition("[")[0], item.nodeid.partition("::")[0]
        if self.limit and (self.spent[test] > self.limit or self.spent[file] > 4 * self.limit):
            item.session._setupstate.teardown_exact(nextitem)  # of what it would have shared with those before
            return True
        self.spent[test] -= (now := time.process_time())
        self.spent[file] -= now
        return None

    def pytest_runtest_logfinish(self, nodeid):
        for name in (nodeid.partition("[")[0], nodeid.partition("::")[0]):
            self.spent[name] += time.process_time()

    def pytest_runtest_setup(self, item):
        self.cover.switch_context(f"setup {item.nodeid}")

    def pytest_runtest_call(self, item):
        self.cover.switch_context(f"call {item.nodeid}")

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0) + report.duration
        if report.failed:
            self.failed.append(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session):
        self.cover.stop()
        data, root, tests = self.cover.get_data(), Path.cwd(), cache(self.tests)
        lines = {
            str(Path(file).relative_to(root)): {
                line: sorted(set().union(*map(tests, contexts)))
                for line, contexts in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }
        found = {"lines": lines, "seconds": self.seconds, "failed": self.failed}
        self.path.write_text(json.dumps(found))

    def tests(self, context: str) -> set[str]:
        """Return the tests; fixtures shared by several are set up with the first of them."""
        phase, _, test = context.partition(" ")
        if phase != "setup":
            return {test}
        return {test}.union(*(tests for tests in self.sharing.values() if test in tests))

"""pytest plugin: watches what a library's operators do under its own tests. Does nothing unless asked.

    pytest --schema-observe mylib      fails where a schema is shown to be untrue
    pytest --schema-opcheck mylib      also replays each distinct call with torch.library.opcheck, after its test

`@pytest.mark.schema_allow("mylib::op", reason="…")`: in this test the operator may do what its schema does not say.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from esimd_ops.observe.opcheck import OpcheckFailure
    from esimd_ops.observe.record import SeenRecord
    from schema_patch.model import Report

MARKER = "schema_allow(op, ..., reason): in this test the operators may do what their schemas do not say"
SENT = "schema_kit"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("schema-kit", "what operators really write")
    group.addoption("--schema-observe", action="append", metavar="NS", help="watch the operators torch.ops.NS (repeat)")
    group.addoption("--schema-opcheck", action="append", metavar="NS", help="... and put their calls to opcheck")
    group.addoption("--schema-save", metavar="DIR", help="save each distinct call, for `--samples DIR`")
    group.addoption("--schema-table", metavar="FILE", help="write what they do as an operator table, or add it")
    group.addoption("--schema-strict", action="store_true", help="warnings count as findings")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    spaces = [*(config.getoption("schema_observe") or ()), *(config.getoption("schema_opcheck") or ())]
    if spaces:
        starts_others = getattr(config.option, "dist", "no") != "no" and not hasattr(config, "workerinput")
        config.pluginmanager.register(_Collected(config) if starts_others else _Observing(config, spaces))
    elif config.getoption("schema_save") or config.getoption("schema_table"):
        raise pytest.UsageError("--schema-save and --schema-table: name the operators, --schema-observe NS")


class _Reporting:
    """The end of a run: what was seen, judged, in the summary and in the exit status."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._strict = bool(config.getoption("schema_strict"))
        self.records: list[SeenRecord] = []
        self.refused: list[OpcheckFailure] = []
        self.lost: list[str] = []
        self._report: Report | None = None

    def conclude(self, session: pytest.Session) -> None:
        from dataclasses import replace

        from esimd_ops.observe import judge, opcheck, record, tables
        from esimd_ops.trials import given
        from schema_patch.model import ToolError

        found = record.merged(self.records)
        report = judge.report(found, strict=self._strict)
        errors = [*report.errors, *(ToolError(words) for words in self.lost)]
        table, save = self._config.getoption("schema_table"), self._config.getoption("schema_save")
        for path in filter(None, (table, save and Path(save) / given.TABLE)):
            try:
                tables.write(tables.table(found), Path(path))
            except ToolError as error:
                errors.append(error)
        report = replace(report, findings=(*report.findings, *opcheck.findings(self.refused)), errors=tuple(errors))
        self._report = report
        if report.exit_code and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        from esimd_ops.observe.judge import doubts
        from schema_patch.report import text

        if self._report is None:
            return
        terminalreporter.section("what operators really write", sep="-")
        for finding in self._report.findings:
            terminalreporter.write_line(text.finding_line(finding))
        for line in doubts(self._report):
            terminalreporter.write_line(line)
        for error in self._report.errors:
            terminalreporter.write_line(text.error_line(error))
        terminalreporter.write_line(text.summary(self._report))


class _Collected(_Reporting):
    """The process that starts others (pytest-xdist), which observe and send what they saw."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        sent = getattr(node, "workeroutput", {}).get(SENT)
        if sent is None:
            self.lost.append(f"worker {node.gateway.id} ended without telling what it saw: {error or 'it died'}")
            return
        import msgspec

        from esimd_ops.observe.opcheck import OpcheckFailure
        from esimd_ops.observe.record import SeenRecord

        record, refused = msgspec.json.decode(sent, type=tuple[SeenRecord, list[OpcheckFailure]])
        self.records.append(record)
        self.refused += [each for each in refused if each not in self.refused]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.conclude(session)


class _Observing(_Reporting):
    """A process that runs tests."""

    def __init__(self, config: pytest.Config, spaces: list[str]) -> None:
        super().__init__(config)
        from esimd_ops.observe.opcheck import Replay
        from esimd_ops.observe.saved import Folder
        from esimd_ops.observe.schedule import Schedule
        from esimd_ops.observe.session import Session, namespaces

        folder = config.getoption("schema_save")
        self._folder = Folder(Path(folder)) if folder else None
        self._replay = Replay(namespaces(config.getoption("schema_opcheck") or ()))
        self._observing = Session(namespaces(spaces), Schedule(), self._save)
        self._observing.start()

    def _save(self, op: Any, values: dict[str, Any]) -> Callable[[], None]:
        keeps = [each.save(op, values) for each in (self._folder, self._replay) if each]

        def keep() -> None:
            for each in keeps:
                each()

        return keep

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        for mark in item.iter_markers("schema_allow"):
            reason = str(mark.kwargs.get("reason", ""))
            if not reason or not mark.args:
                raise pytest.UsageError(f"{item.nodeid}: schema_allow needs operators and a reason=")
            self._observing.allowed.update(dict.fromkeys(mark.args, reason))
        try:
            return (yield)
        finally:
            self._observing.allowed.clear()
            with self._observing.paused():
                self.refused += self._replay.run(item.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._observing.stop()
        self.records.append(self._observing.record())
        if self._folder:
            self.lost += [f"{op}: a call was not saved: {why}" for op, why in self._folder.left_out.items()]
        if hasattr(self._config, "workeroutput"):
            import msgspec

            self._config.workeroutput[SENT] = msgspec.json.encode((self.records[0], self.refused)).decode()
        else:
            self.conclude(session)

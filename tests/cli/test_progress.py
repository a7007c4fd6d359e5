"""Progress in plain lines and in bars."""

from __future__ import annotations

import io

import pytest
from corral.cli.progress import BarProgress, PlainProgress, open_progress
from rich.console import Console


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _transfer(status: str, completed: int, total: int = 1000) -> dict[str, object]:
    return {"status": status, "total": total, "completed": completed}


def test_plain_progress_prints_a_status_once_while_it_stays() -> None:
    out = io.StringIO()
    printer = PlainProgress(out)
    for status in ("pulling manifest", "pulling manifest", "verifying sha256 digest", "success"):
        printer.update({"status": status})
    assert out.getvalue() == "pulling manifest\nverifying sha256 digest\nsuccess\n"


def test_plain_progress_prints_a_transfer_every_tenth() -> None:
    out = io.StringIO()
    printer = PlainProgress(out)
    for completed in range(0, 1001, 5):
        printer.update(_transfer("pulling a", completed))
    lines = out.getvalue().splitlines()
    assert len(lines) == 11
    assert lines[0] == "pulling a: 0% of 1 KB"
    assert lines[-1] == "pulling a: 100% of 1 KB"


def test_plain_progress_keeps_transfers_apart_when_they_alternate() -> None:
    out = io.StringIO()
    printer = PlainProgress(out)
    for completed in (0, 10, 20, 30):
        printer.update(_transfer("pulling a", completed))
        printer.update(_transfer("pulling b", completed))
    assert out.getvalue() == "pulling a: 0% of 1 KB\npulling b: 0% of 1 KB\n"


def test_bars_show_statuses_as_they_are_on_a_terminal() -> None:
    out = io.StringIO()
    printer = BarProgress(Console(file=out, force_terminal=True, width=100, color_system=None))
    printer.update({"status": "pulling [bold]manifest"})
    printer.update(_transfer("pulling a", 500))
    printer.close()
    assert "pulling [bold]manifest" in out.getvalue()
    assert "0.5/1.0 kB" in out.getvalue()


def test_bars_stay_above_what_comes_after_them() -> None:
    out = io.StringIO()
    printer = BarProgress(Console(file=out, force_terminal=True, width=60, color_system=None))
    printer.update(_transfer("pulling a", 1000))
    printer.update({"status": f"creating new layer sha256:{'ab' * 32}"})
    printer.close()
    shown = out.getvalue()
    assert shown.rindex("1.0/1.0 kB") < shown.index("creating new layer abababababab\n")


@pytest.mark.parametrize(("term", "kind"), [("dumb", PlainProgress), ("xterm", BarProgress)])
def test_terminal_gets_bars_unless_it_is_dumb(monkeypatch, term: str, kind: type) -> None:
    monkeypatch.setenv("TERM", term)
    printer = open_progress(FakeTerminal())
    printer.close()
    assert isinstance(printer, kind)

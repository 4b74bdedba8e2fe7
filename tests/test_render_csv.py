"""CSV that a spreadsheet reads as data: nothing in it is a formula, and numbers are numbers in every locale."""

import csv
import io
import locale
from collections.abc import Iterator

import pytest

from rooflens.report.render.csv import render_rows


def cells(*values: object) -> list[str]:
    return next(csv.reader(io.StringIO(render_rows(("x",), [values]).split("\n", 1)[1])))


@pytest.mark.parametrize("text", ["=cmd()", "+1", "-2+3", "-2", "@x", "\tx", "\rx", "＝1+1", '=HYPERLINK("http://x")'])
def test_text_that_would_run_is_quoted(text: str) -> None:
    assert cells(text)[0].startswith("'" + text[:1].replace("\t", "\\u0009").replace("\r", "\\u000d"))
    assert render_rows((text,), []).lstrip('"').startswith("'")


def test_numbers_stay_numbers() -> None:
    assert cells(-2, -2.5, 0.1, 1e22, 11689512, None, True, 10**30) == (
        ["-2", "-2.5", "0.1", "1e+22", "11689512", "", "true", "1" + "0" * 30]
    )


@pytest.mark.parametrize("text", ["a,b", 'say "x"', "plain", "layer1.0", "日本", "a'b"])
def test_text_comes_back_as_it_was(text: str) -> None:
    assert cells(text, 1) == [text, "1"]


@pytest.mark.parametrize("text", ["\x1b[31m", "nul\0", "\u202e", "\ud800", "a\nb", "x" * 10**6])
def test_text_that_would_break_readers_is_escaped(text: str) -> None:
    out = render_rows(("x",), [(text,)])
    assert out.count("\n") == 2 and len(out.encode("utf-8")) < 1100 and all(c.isprintable() or c == "\n" for c in out)


@pytest.fixture
def comma_locale() -> Iterator[None]:
    """A locale with decimal commas, where this machine has one."""
    before = locale.setlocale(locale.LC_NUMERIC)
    for name in ("de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE", "nl_NL.UTF-8"):
        try:
            locale.setlocale(locale.LC_NUMERIC, name)
            break
        except locale.Error:
            continue
    yield
    locale.setlocale(locale.LC_NUMERIC, before)


@pytest.mark.usefixtures("comma_locale")
def test_a_comma_locale_changes_no_number() -> None:
    assert render_rows(("a", "b"), [(1234567.5, -0.25)]) == "a,b\n1234567.5,-0.25\n"


def test_no_formatter_of_the_locale_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines without such a locale still check it: the only ways to it are closed."""
    monkeypatch.setattr(locale, "localeconv", lambda: {"decimal_point": ",", "thousands_sep": "."})
    monkeypatch.setattr(locale, "format_string", lambda *_: "1,5")
    assert render_rows(("a",), [(1.5,)]) == "a\n1.5\n"

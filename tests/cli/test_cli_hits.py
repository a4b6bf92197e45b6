"""The hits as ``search`` shows them: bars, columns, marked words, and no raw control characters."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
from io import StringIO
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

import trivet
from trivet.cli import bars, hits
from trivet.cli.output import Screen, clean
from trivet.text.highlight import MARK, Marker, wrapped
from trivet.types import Contribution, Document, Hit, Passage, Results


def terminal(width: int = 80, no_color: bool = False) -> Screen:
    console = Console(
        file=StringIO(), force_terminal=True, width=width, color_system="truecolor", no_color=no_color, highlight=False
    )
    return Screen(console)


def shown(screen: Screen) -> str:
    return screen.console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def gave(leg: str, share: float) -> Contribution:
    return Contribution(leg, 1, 1.0, 1.0, 0.5, share)


def hit(rank: int, title: str, text: str, **changes: object) -> Hit:
    document = Document(id=f"id-{rank}", text=text, title=title)
    given = {"contributions": (gave("lexical", 0.3), gave("dense", 0.2)), "fused": 0.5, **changes}
    return Hit(rank, document.id, 0.5, 0.4, document, Passage(0, 0, len(text), text), **given)  # type: ignore[arg-type]


def test_a_bar_is_as_long_as_its_shares() -> None:
    full = bars.stacked([gave("lexical", 0.5), gave("dense", 0.5)], 1.0, 12, True)
    assert full.plain == "█" * 12
    half = bars.stacked([gave("lexical", 0.25), gave("dense", 0.25)], 1.0, 12, True)
    assert half.plain == "█" * 6 + " " * 6
    assert {span.style for span in half.spans} == {bars.COLOURS["lexical"], bars.COLOURS["dense"]}


def test_a_border_inside_a_cell_has_both_colours() -> None:
    bar = bars.stacked([gave("lexical", 3), gave("dense", 5)], 8.0, 1, True)
    assert bar.plain == "▍"
    assert bar.spans[0].style == f"{bars.COLOURS['lexical']} on {bars.COLOURS['dense']}"


@pytest.mark.parametrize("shares", [(), (0.0, 0.0), (-1.0, 0.5), (1e-9,), (0.1, 0.2, 0.3)])
@pytest.mark.parametrize("coloured", [True, False])
def test_a_bar_always_fills_its_column(shares: tuple[float, ...], coloured: bool) -> None:
    given = [gave(leg, share) for leg, share in zip(("lexical", "dense", "graph"), shares, strict=False)]
    bar = bars.stacked(given, bars.longest([given]), 12, coloured)
    assert cell_len(bar.plain) == 12


def test_legs_are_told_apart_without_colour() -> None:
    bar = bars.stacked([gave("lexical", 0.5), gave("trigram", 0.25), gave("new", 0.25)], 1.0, 8, False)
    assert bar.plain == "████▒▒▪▪"


def marked(text: Text) -> list[str]:
    return [text.plain[span.start : span.end] for span in text.spans if span.style == MARK]


def test_words_are_marked_by_their_stem() -> None:
    snippet = Marker("rotating keys").snippet("Rotate the key ring of monkeys.", 80)
    assert marked(snippet) == ["Rotate", "key"]


def test_names_versions_and_chinese_are_marked() -> None:
    assert marked(Marker("GatewaySession.reconnect").snippet("GatewaySession::reconnect()", 80)) == [
        "GatewaySession",
        "reconnect",
    ]
    assert marked(Marker("firmware 1.6.2").snippet("see 1.6.2 of it", 80)) == ["1.6.2"]
    assert "".join(dict.fromkeys("".join(marked(Marker("休眠电流").snippet("先测休眠电流，必须", 80))))) == "休眠电流"


def test_misspelt_words_are_marked_where_letters_counted() -> None:
    text = "the coffee machine"
    assert marked(Marker("cofee machin", alike=True).snippet(text, 80)) == ["coffee", "machine"]
    assert "coffee" not in marked(Marker("cofee machin").snippet(text, 80))


def test_a_snippet_shows_the_part_that_answers() -> None:
    text = "filler words here. " * 50 + "The palm house alarm stayed silent. " + "more filler follows. " * 50
    snippet = Marker("silent palm house alarm").snippet(text, 100)
    assert "palm house alarm stayed silent" in snippet.plain
    assert snippet.plain.startswith("…")
    assert snippet.plain.endswith("…")
    assert cell_len(snippet.plain) <= 102


def test_the_last_words_of_a_long_text_are_shown() -> None:
    text = " ".join(f"word{number}" for number in range(200)) + " the needle"
    snippet = Marker("needle").snippet(text, 100).plain
    assert snippet.startswith("…word") and snippet.endswith("the needle")
    assert 80 < len(snippet) <= 101


def test_a_snippet_leaves_the_title_out() -> None:
    assert Marker("x").snippet("# Title\n\nBody text.", 80, "Title").plain == "Body text."
    assert Marker("x").snippet("# Title", 80, "Title").plain == "Title"


def test_chinese_is_wrapped_between_characters() -> None:
    lines = wrapped(Text("今天Reed v2的出厂测试流程今天确认"), 12, 2).plain.split("\n")
    assert len(lines) == 2
    assert all(cell_len(line) <= 12 for line in lines)
    assert lines[0].startswith("今天Reed v2")
    assert lines[1].endswith("…")


def test_columns_align_whatever_the_script() -> None:
    screen = terminal(60)
    found = [hit(1, "plain", "words " * 40), hit(2, "裕泰工厂的测试流程" * 9, "测试流程" * 60), hit(10, "last", "x")]
    screen.show(hits.hits(found, Marker("流程"), screen))
    text = Text.from_ansi(shown(screen)).plain.splitlines()
    assert all(cell_len(line) <= 60 for line in text)
    bodies = [line for line in text if line[:2].strip()]
    assert [line[:8] for line in bodies] == [" 1  0.40", " 2  0.40", "10  0.40"]


def test_a_terminal_gets_colour_bars_and_the_legend() -> None:
    screen = terminal()
    found = Results("words", (hit(1, "A title", "some words"),), "default#1", degraded=(), candidates=1)
    screen.show(hits.results(found, screen, explain=True))
    out = shown(screen)
    assert "\x1b[38;2;95;175;255m" in out
    assert "█ " in Text.from_ansi(out).plain
    assert "lexical" in out


def test_no_color_is_respected() -> None:
    screen = terminal(no_color=True)
    assert not screen.colour
    found = Results("words", (hit(1, "A title", "some words"),), "default#1", candidates=1)
    screen.show(hits.results(found, screen))
    out = shown(screen)
    assert "38;2" not in out
    assert "▓ dense" in Text.from_ansi(out).plain


@pytest.mark.parametrize(
    ("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_a_real_terminal(
    command: list[str], notes: Path, environment: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"TERM": "xterm-256color", "COLUMNS": "90", **environment}.items():
        monkeypatch.setenv(name, value)
    ours, theirs = pty.openpty()
    asking = [*command, "search", "steady red", "-s", str(notes), "-k", "2"]
    with subprocess.Popen(asking, stdout=theirs, stderr=subprocess.PIPE) as running:
        os.close(theirs)
        out = b""
        with contextlib.suppress(OSError):  # Linux raises it when the other side is closed
            while part := os.read(ours, 4096):
                out += part
        assert running.stderr is not None
        assert running.stderr.read() == b""
    os.close(ours)
    assert running.returncode == 0
    assert (b"\x1b[38;" in out) == coloured
    assert ("▓" in out.decode()) == (not coloured)


def test_escape_sequences_of_a_text_do_not_reach_the_terminal() -> None:
    assert clean("a\x1b[2Jb\rc\u202ed\n\te") == "a\ufffd[2Jb\ufffdc\ufffdd\n\te"
    screen = terminal()
    found = Results("x", (hit(1, "t\x1b]0;owned\x07", "evil \x1b[2J text"),), "p", candidates=1)
    screen.show(hits.results(found, screen))
    assert "\x1b[2J" not in shown(screen)
    assert "\x1b]0;" not in shown(screen)


@pytest.mark.parametrize("width", [64, 80, 100])
def test_an_account_fits_its_room(width: int) -> None:
    screen = terminal(width)
    given = tuple(Contribution(leg, 100, 25.295, 0.123, 0.3333, 0.1234) for leg in ("lexical", "trigram", "dense"))
    screen.show(hits.hits([hit(1, "t", "x", contributions=given)], Marker("x"), screen, explain=1))
    out = Text.from_ansi(shown(screen)).plain
    assert "25.295" in out
    assert "0.1234" in out
    assert "lexical" in out
    assert "…" not in out


def test_an_account_names_rerankers_and_the_passage(notes: Path) -> None:
    screen = terminal(100)
    with trivet.open(notes) as memory:
        results = memory.search("GatewaySession.reconnect", k=5, rerankers=["exact"])
    for item in results:
        screen.show(hits.numbers(item, screen))
    out = Text.from_ansi(shown(screen)).plain
    assert "exact  " in out
    assert " → " in out
    assert "passage " in out

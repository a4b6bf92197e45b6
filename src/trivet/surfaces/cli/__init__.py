"""What happens when `trivet` is typed?

The table of commands, and ``main``: run one, tell what went wrong in one line. Nothing heavy is imported here: a
command imports the engine when it runs, so that `trivet --help` answers at once.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from trivet._version import __version__
from trivet.surfaces.cli import (
    agents,
    care,
    comparing,
    copying,
    doctor,
    documents,
    evaluating,
    failures,
    forgetting,
    gating,
    importing,
    judging,
    keyring,
    learning,
    searching,
    serving,
    sweeping,
    tuning,
)


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    run: Callable[..., Any]
    group: str
    examples: tuple[str, ...]
    parts: tuple[Command, ...] = ()  # `trivet NAME PART`; ``run`` is what `trivet NAME` does alone


COMMANDS = (
    Command("add", documents.add, "Put in and take out", (
        'trivet add "The gateway reboots when its SIM roams." --meta project=gateway',
        "cat minutes.txt | trivet add --id meeting-12 --link meeting-11:part-of",
    )),
    Command("import", importing.import_, "Put in and take out", (
        "trivet import docs/ notes.md",
        "trivet import records.jsonl --collection tickets",
        "trivet export - | trivet import - --store copy.db",
    )),
    Command("get", documents.get, "Put in and take out", ("trivet get guide/setup.md",)),
    Command("delete", documents.delete, "Put in and take out", (
        "trivet delete meeting-11 meeting-12",
        "trivet delete --where 'created<2024-01-01' --where kind=episode --yes",
    )),
    Command("forget", forgetting.forget, "Put in and take out", (
        "trivet forget meeting-11 --compact",
        "trivet forget --where user=alice --yes --compact",
        "trivet forget --expired",
    )),
    Command("link", documents.link, "Put in and take out", (
        "trivet link decision-7 decision-3 --type supersedes",
        "trivet link --list decision-7",
    )),
    Command("copy", copying.copy, "Put in and take out", (
        "trivet copy memory.db postgresql://me@db.example/notes",
        "trivet copy memory.db copy.db --only tickets",
    )),
    Command("backup", copying.backup, "Put in and take out", (
        "trivet backup memory.db backups/monday.db",
    )),
    Command("restore", copying.restore, "Put in and take out", (
        "trivet restore backups/monday.db memory.db",
    )),
    Command("export", care.export, "Put in and take out", (
        "trivet export backup.jsonl --vectors",
        "trivet export - | head -3",
    )),
    Command("search", searching.search, "Ask", (
        'trivet search "why did the alarms stay silent" -k 5',
        "trivet search 'palm house' -w kind=incident -w 'severity>=4' --explain",
        "trivet search 'cofee machin' --weight trigram=0.5 --explain-id note-17",
        "trivet search 'retry_backoff_ms' --profile snippets --json",
    )),
    Command("settings", tuning.settings, "Tune", (
        "trivet settings",
        "trivet settings --set weights.dense=0.7 --set min_relevance=0.1",
        "trivet settings --profile memories",
    )),
    Command("profiles", tuning.profiles, "Tune", ("trivet profiles", "trivet profiles memories > mine.toml")),
    Command("feedback", judging.feedback, "Tune", (
        'trivet feedback "why did the alarms stay silent" incident-12',
        'trivet feedback "why did the alarms stay silent" minutes-3 --bad',
        "trivet feedback --list --json",
        'trivet feedback --forget "why did the alarms stay silent" minutes-3',
    )),
    Command("eval", evaluating.eval_, "Measure", (
        "trivet eval demo",
        "trivet eval data/scifact -p default -p memories --save results/ --report scifact.html",
        "trivet eval data/scifact -m nDCG@10 -m R@100 -k 100 --run-out default.trec",
        "trivet eval data/scifact --run bm25s.trec",
    )),
    Command("compare", comparing.compare, "Measure", (
        "trivet compare demo -p default -p memories",
        "trivet compare data/locomo --set fusion=rrf --without adversarial",
        "trivet compare results/eval-1a2b3c-*.json results/eval-4d5e6f-*.json --moved 10",
    )),
    Command("sweep", sweeping.sweep, "Measure", (
        "trivet sweep demo --over alpha=0:1:0.1",
        "trivet sweep data/scifact --set fusion=rrf --over rrf_k=2,5,20,60 --over depths.dense=50,100",
    )),
    Command("tune", learning.tune, "Measure", (
        "trivet tune data/scifact --split train --holdout test --out scifact.toml",
        "trivet tune demo --split train -p memories",
        "trivet tune --store memory.db --apply",
        "trivet tune --store memory.db --rerank",
    )),
    Command("gate", gating.gate, "Measure", (
        "trivet gate demo --against demo.json --write",
        "trivet gate demo --against demo.json --margin 0.02",
    )),
    Command("serve", serving.serve, "Serve", (
        "trivet serve --store memory.db",
        "trivet serve --workers 4 --host 0.0.0.0 --port 80 --check",
    )),
    Command("keys", keyring.keys, "Serve", (
        "trivet keys create dashboard --scope read --for tickets",
        "trivet keys create alice --scope write --where tenant=alice",
        "trivet keys list",
        "trivet keys revoke dashboard",
    )),
    Command("config", serving.config, "Serve", ("trivet config", "TRIVET_PORT=9000 trivet config --json")),
    Command("mcp", agents.mcp, "Serve", (
        "trivet mcp --store memory.db",
        "trivet mcp --http --port 8788 --read-only",
        "trivet mcp install --client claude-desktop --store memory.db",
    ), (
        Command("install", agents.install, "Serve", (
            "trivet mcp install --client claude-desktop --store memory.db",
            "trivet mcp install --client vscode --project --read-only --yes",
        )),
    )),
    Command("stats", care.stats, "Look after", ("trivet stats --json",)),
    Command("doctor", doctor.doctor, "Look after", ("trivet doctor --store memory.db",)),
    Command("reembed", care.reembed, "Look after", (
        "trivet reembed --embedder http://127.0.0.1:11434/v1#nomic-embed-text",
        "trivet reembed",
    )),
    Command("rebuild", care.rebuild, "Look after", ("trivet rebuild",)),
    Command("compact", forgetting.compact, "Look after", ("trivet compact --store memory.db",)),
)  # fmt: skip


def _quiet(option: Any) -> Any:
    """typer writes <bool> behind a flag, even behind --help."""
    if isinstance(option, TyperOption):
        option.metavar = ""
    return option


class _Command(TyperCommand):
    def get_help_option(self, ctx: Any) -> Any:
        return _quiet(super().get_help_option(ctx))


class _Group(TyperGroup):
    def get_help_option(self, ctx: Any) -> Any:
        return _quiet(super().get_help_option(ctx))


app = typer.Typer(cls=_Group, add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)


def _epilog(examples: Sequence[str]) -> str:
    shown = ("[dim]$[/] " + example.replace("[", r"\[") for example in examples)
    return "\n".join(("[bold]Examples[/]" if len(examples) > 1 else "[bold]Example[/]", *shown))


def _add(group: typer.Typer, command: Command) -> None:
    epilog = _epilog(command.examples)
    if not command.parts:
        group.command(command.name, cls=_Command, epilog=epilog, rich_help_panel=command.group)(command.run)
        return
    inner = typer.Typer(cls=_Group, add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
    inner.callback(invoke_without_command=True, epilog=epilog)(command.run)
    for part in command.parts:
        _add(inner, part)
    group.add_typer(inner, name=command.name, rich_help_panel=command.group)


for _command in COMMANDS:
    _add(app, _command)


def _version(asked: bool) -> None:
    if asked:
        print(f"trivet {__version__}")
        raise typer.Exit


@app.callback(
    invoke_without_command=True,
    epilog=_epilog(("trivet import docs/", 'trivet search "how do I rotate the keys"')),
)
def _trivet(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", metavar="", help="Print the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Hybrid retrieval for agent memory and RAG: found by words and by meaning, every hit explained.

    The store is one file: --store PATH, the variable TRIVET_STORE, or memory.db in the current folder.
    """
    if context.invoked_subcommand is None:
        print(context.get_help(), end="")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):  # a terminal that cannot show a character must not stop the answer
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        code = app(args=None if arguments is None else list(arguments), prog_name="trivet", standalone_mode=False)
        sys.stdout.flush()
        if code == failures.INTERRUPTED:  # what typer makes of Ctrl-C
            failures.told(KeyboardInterrupt())
    except (BrokenPipeError, SystemExit):  # typer makes the one into the other
        code = _closed_pipe()
    except (Exception, KeyboardInterrupt) as error:
        code = failures.told(error)
    sys.exit(code if isinstance(code, int) else 0)


def _closed_pipe() -> int:
    """The reader (`| head`) has seen enough: that is no failure, and nothing is left to be flushed at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0

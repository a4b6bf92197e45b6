"""The command line: ``COMMANDS`` is the table of all commands, ``main`` runs one and reports an error in one line.

A command's module is imported when that command is run or all are listed, and it imports the engine when it runs: so
`trivet --help` stays quick, and `trivet search` does not wait for the other commands.
"""

from __future__ import annotations

import contextlib
import os
import pkgutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn

import typer
from typer._coercion import build_runtime_param
from typer.core import TyperCommand, TyperGroup, TyperOption

from trivet import __version__
from trivet.cli import errors

DOCUMENTS, SEARCH, EVALUATION = "Documents", "Search and settings", "Evaluation"
STORES, SERVICE, MAINTENANCE = "Export, copy and backup", "Service", "Maintenance"


@dataclass(frozen=True, slots=True)
class Command:
    """A command: the function that runs it, as ``module:function``, its panel in the help, and its examples.

    ``subcommands`` are called as `trivet NAME SUBCOMMAND`; ``run`` is what `trivet NAME` does.
    """

    name: str
    run: str
    panel: str
    examples: tuple[str, ...]
    subcommands: tuple[Command, ...] = ()

    def load(self) -> Callable[..., Any]:
        """Import the command's module and return the function."""
        function: Callable[..., Any] = pkgutil.resolve_name(f"trivet.cli.{self.run}")
        return function


COMMANDS = (
    Command("add", "add:add", DOCUMENTS, (
        'trivet add "The gateway reboots when its SIM roams." --meta project=gateway',
        "cat minutes.txt | trivet add --id meeting-12 --link meeting-11:part-of",
    )),
    Command("remember", "remember:remember", DOCUMENTS, (
        'trivet remember "Raw readings are kept for 13 months."',
        'trivet remember "Kim moved to Oslo." --meta user=kim --link home-1:supersedes',
    )),
    Command("import", "import_:import_", DOCUMENTS, (
        "trivet import docs/ notes.md",
        "trivet import records.jsonl --collection tickets",
        "trivet export - | trivet import - --store copy.db",
    )),
    Command("list", "list_:list_", DOCUMENTS, (
        "trivet list -n 5",
        "trivet list --where 'path^=guide/' --json",
    )),
    Command("get", "get:get", DOCUMENTS, ("trivet get guide/setup.md",)),
    Command("delete", "delete:delete", DOCUMENTS, (
        "trivet delete meeting-11 meeting-12",
        "trivet delete --where 'created<2024-01-01' --where kind=episode --yes",
    )),
    Command("forget", "delete:forget", DOCUMENTS, (
        "trivet forget meeting-11 --compact",
        "trivet forget --where user=alice --yes --compact",
        "trivet forget --expired",
    )),
    Command("link", "link:link", DOCUMENTS, (
        "trivet link decision-7 decision-3 --type supersedes",
        "trivet link --list decision-7",
    )),
    Command("search", "search:search", SEARCH, (
        'trivet search "why did the alarms stay silent" -k 5',
        "trivet search 'palm house' -w kind=incident -w 'severity>=4' --explain",
        "trivet search 'cofee machin' --weight trigram=0.5 --explain-id note-17",
        "trivet search 'retry_backoff_ms' --profile snippets --json",
    )),
    Command("settings", "settings:settings", SEARCH, (
        "trivet settings",
        "trivet settings --set weights.dense=0.7 --set min_relevance=0.1",
        "trivet settings --profile memories",
    )),
    Command("history", "settings:history", SEARCH, ("trivet history", "trivet history -n 3 --json")),
    Command("revert", "settings:revert", SEARCH, ("trivet revert", "trivet revert --to 3")),
    Command("profiles", "settings:profiles", SEARCH, ("trivet profiles", "trivet profiles memories > mine.toml")),
    Command("feedback", "feedback:feedback", SEARCH, (
        'trivet feedback "why did the alarms stay silent" incident-12',
        'trivet feedback "why did the alarms stay silent" minutes-3 --bad',
        "trivet feedback --list --json",
        'trivet feedback --forget "why did the alarms stay silent" minutes-3',
    )),
    Command("eval", "eval:eval_", EVALUATION, (
        "trivet eval demo",
        "trivet eval data/scifact -p default -p memories --save results/ --report scifact.html",
        "trivet eval data/scifact -m nDCG@10 -m R@100 -k 100 --run-out default.trec",
        "trivet eval data/scifact --run bm25s.trec",
    )),
    Command("compare", "compare:compare", EVALUATION, (
        "trivet compare demo -p default -p memories",
        "trivet compare data/locomo --set fusion=rrf --without adversarial",
        "trivet compare results/eval-1a2b3c-*.json results/eval-4d5e6f-*.json --moved 10",
    )),
    Command("sweep", "sweep:sweep", EVALUATION, (
        "trivet sweep demo --over alpha=0:1:0.1",
        "trivet sweep data/scifact --set fusion=rrf --over rrf_k=2,5,20,60 --over depths.dense=50,100",
    )),
    Command("tune", "tune:tune", EVALUATION, (
        "trivet tune data/scifact --split train --holdout test --out scifact.toml",
        "trivet tune demo --split train -p memories",
        "trivet tune --store memory.db --apply",
        "trivet tune --store memory.db --rerank",
    )),
    Command("gate", "gate:gate", EVALUATION, (
        "trivet gate demo --against demo.json --write",
        "trivet gate demo --against demo.json --margin 0.02",
    )),
    Command("export", "export:export", STORES, (
        "trivet export backup.jsonl --vectors",
        "trivet export - | head -3",
    )),
    Command("copy", "copy:copy", STORES, (
        "trivet copy memory.db postgresql://me@db.example/notes",
        "trivet copy memory.db copy.db --only tickets",
    )),
    Command("backup", "copy:backup", STORES, ("trivet backup memory.db backups/monday.db",)),
    Command("restore", "copy:restore", STORES, ("trivet restore backups/monday.db memory.db",)),
    Command("serve", "serve:serve", SERVICE, (
        "trivet serve --store memory.db",
        "trivet serve --workers 4 --host 0.0.0.0 --port 80 --check",
    )),
    Command("config", "serve:config", SERVICE, ("trivet config", "TRIVET_PORT=9000 trivet config --json")),
    Command("keys", "keys:keys", SERVICE, (
        "trivet keys create dashboard --scope read --for tickets",
        "trivet keys create alice --scope write --where tenant=alice",
        "trivet keys list",
        "trivet keys revoke dashboard",
    )),
    Command("mcp", "mcp:mcp", SERVICE, (
        "trivet mcp --store memory.db",
        "trivet mcp --http --port 8788 --read-only",
        "trivet mcp install --client claude-desktop --store memory.db",
    ), (
        Command("install", "mcp:install", SERVICE, (
            "trivet mcp install --client claude-desktop --store memory.db",
            "trivet mcp install --client vscode --project --read-only --yes",
        )),
    )),
    Command("hook", "hook:hook", SERVICE, (
        """echo '{"hook_event_name": "UserPromptSubmit", "session_id": "1", "prompt": "the gateway"}' | trivet hook""",
        "trivet hook install --store memory.db",
    ), (
        Command("install", "hook:install", SERVICE, (
            "trivet hook install --store memory.db",
            "trivet hook install --project --where project=gateway --yes",
        )),
    )),
    Command("collections", "list_:collections", MAINTENANCE, ("trivet collections --store memory.db",)),
    Command("stats", "maintenance:stats", MAINTENANCE, ("trivet stats --json", "trivet stats --bytes")),
    Command("doctor", "doctor:doctor", MAINTENANCE, ("trivet doctor --store memory.db",)),
    Command("reembed", "maintenance:reembed", MAINTENANCE, (
        "trivet reembed --embedder http://127.0.0.1:11434/v1#nomic-embed-text",
        "trivet reembed",
    )),
    Command("rebuild", "maintenance:rebuild", MAINTENANCE, ("trivet rebuild",)),
    Command("compact", "maintenance:compact", MAINTENANCE, ("trivet compact --store memory.db",)),
    Command("redistribute", "redistribute:redistribute", MAINTENANCE, (
        "trivet redistribute -s postgresql://me@db.example/notes -c tickets",
        "trivet redistribute -s postgresql://me@db.example/notes -c tickets --by collections",
    )),
)  # fmt: skip


class _Value:
    """Turns what was given for a parameter into its type. typer would import pydantic (60 ms) for the defaults, too."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        kind, several = param.type_descriptor.annotation, param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        if not several and type(value) is kind:
            return value
        if several and kind == list[str] and all(isinstance(each, str) for each in value):
            return list(value)
        return build_runtime_param(param.type_descriptor).coerce(value, param=param, ctx=ctx)


def _quick(option: Any) -> None:
    option._runtime_param = _Value()


def _plain_help(option: Any) -> Any:
    """Remove the <bool> that typer writes after --help."""
    if isinstance(option, TyperOption):
        option.metavar = ""
        _quick(option)
    return option


class _Command(TyperCommand):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for param in self.params:
            _quick(param)

    def get_help_option(self, ctx: Any) -> Any:
        return _plain_help(super().get_help_option(ctx))


class _Group(TyperGroup):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for param in self.params:
            _quick(param)

    def get_help_option(self, ctx: Any) -> Any:
        return _plain_help(super().get_help_option(ctx))


def _typer(completion: bool = False) -> typer.Typer:
    return typer.Typer(
        cls=_Group,
        add_completion=completion,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
    )


def _epilog(examples: Sequence[str]) -> str:
    shown = ("[dim]$[/] " + example.replace("[", r"\[") for example in examples)
    return "\n".join(("[bold]Examples[/]" if len(examples) > 1 else "[bold]Example[/]", *shown))


def _add(group: typer.Typer, command: Command) -> None:
    epilog = _epilog(command.examples)
    if not command.subcommands:
        group.command(command.name, cls=_Command, epilog=epilog, rich_help_panel=command.panel)(command.load())
        return
    inner = _typer()
    inner.callback(invoke_without_command=True, epilog=epilog)(command.load())
    for subcommand in command.subcommands:
        _add(inner, subcommand)
    group.add_typer(inner, name=command.name, rich_help_panel=command.panel)


def _print_version(given: bool) -> None:
    if given:
        print(f"trivet {__version__}")
        raise typer.Exit


def _trivet(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", metavar="", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Hybrid retrieval for agent memory and RAG: search by words and by meaning, with an explanation of every hit.

    The store is one file: --store PATH, the environment variable TRIVET_STORE, or memory.db in the current folder.
    """
    if context.invoked_subcommand is None:
        print(context.get_help(), end="")


def application(arguments: Sequence[str]) -> typer.Typer:
    """Return the application, with the one command that is run, or with all where none is named."""
    named = [command for command in COMMANDS if command.name in arguments[:1]]
    app = _typer(completion=not named)
    epilog = _epilog(("trivet import docs/", 'trivet search "how do I rotate the keys"'))
    app.callback(invoke_without_command=True, epilog=epilog)(_trivet)
    for command in named or COMMANDS:
        _add(app, command)
    return app


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit: the console script."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):  # an ASCII terminal must not stop the output
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        code = application(given)(args=given, prog_name="trivet", standalone_mode=False)
        sys.stdout.flush()
        if code == errors.INTERRUPTED:  # typer turns Ctrl-C into this code
            errors.report(KeyboardInterrupt())
    except (BrokenPipeError, SystemExit):  # typer turns a broken pipe into SystemExit
        code = _ignore_closed_pipe()
    except (Exception, KeyboardInterrupt) as error:
        code = errors.report(error)
    sys.exit(code if isinstance(code, int) else 0)


def _ignore_closed_pipe() -> int:
    """Return 0: a reader that stops early (`| head`) is no error. Python must not flush to it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0

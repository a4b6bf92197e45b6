"""Options that several commands share, groups of options, and the parsing of ``key=value``.

A value is read as JSON where it is JSON (2, true, ["a"]) and as text otherwise.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from trivet.errors import InputError

if TYPE_CHECKING:
    from trivet.profile import Profile

DEFAULT_STORE = "memory.db"
DEFAULT_COLLECTION = "default"

STORE_PANEL, RANKING_PANEL = "Store", "Ranking"


# --- options ----------------------------------------------------------------------------------------------------------


def option(
    names: str, metavar: str, help: str, panel: str | None = None, default: bool = False, env: str | None = None
) -> Any:
    """Return an option that takes a value; ``default`` says whether the help shows its default."""
    return typer.Option(
        *names.split(), metavar=metavar, help=help, rich_help_panel=panel, show_default=default, envvar=env
    )


def flag(names: str, help: str, panel: str | None = None, env: str | None = None) -> Any:
    """Return an option without a value. Without the empty metavar typer would write <bool> after it."""
    return typer.Option(*names.split(), metavar="", help=help, rich_help_panel=panel, envvar=env)


def argument(metavar: str, help: str) -> Any:
    return typer.Argument(metavar=metavar, help=help, show_default=False)


Store = Annotated[str, option("--store -s", "PATH", "The store's file.", STORE_PANEL, default=True, env="TRIVET_STORE")]
Collection = Annotated[
    str,
    option("--collection -c", "NAME", "The collection in it.", STORE_PANEL, default=True, env="TRIVET_COLLECTION"),
]
Embedder = Annotated[
    str | None,
    option(
        "--embedder",
        "SPEC",
        "The embedding model of a new collection: builtin, multilingual, none, folder:PATH, http://HOST/v1#MODEL… "
        "Default: TRIVET_EMBEDDER, or builtin.",
        STORE_PANEL,
    ),
]
Scorer = Annotated[
    str | None,
    option(
        "--scorer",
        "SPEC",
        "The model of the reranker cross_encoder: folder:PATH, http://HOST/rerank, llm:http://HOST/v1#MODEL… "
        "Default: TRIVET_SCORER, or none.",
        STORE_PANEL,
    ),
]
Json = Annotated[bool, flag("--json", "Print one JSON value, for programs.")]
Where = Annotated[
    list[str] | None,
    option(
        "--where -w",
        "FILTER",
        "kind=note, year>=2020, tags=a,b (any of them), author!=sam, path^=docs/ (begins with), title*=pump "
        "(contains), due=* (has the field), or JSON. "
        "Repeat to combine: all must match.",
    ),
]
BoundTo = Annotated[
    list[str] | None,
    option("--where", "FILTER", "Restrict it to matching documents: tenant=alice. Repeat to combine: all must match."),
]
Redact = Annotated[bool, flag("--redact", "Remove secrets of known formats before storing, and print how many.")]
Yes = Annotated[bool, flag("--yes -y", "Do not ask for confirmation.")]
Alpha = Annotated[
    float | None, option("--alpha", "0–1", "Share of the dense leg: 0 is words only, 1 is meaning only.", RANKING_PANEL)
]
Weights = Annotated[
    list[str] | None,
    option("--weight", "LEG=N", "Weight of one leg; 0 turns it off. Repeat for more.", RANKING_PANEL),
]
Settings = Annotated[
    list[str] | None,
    option(
        "--set",
        "NAME=VALUE",
        "Any setting: rrf_k=20, depths.dense=200, rerankers=exact,dedup. Repeat for more.",
        RANKING_PANEL,
    ),
]


# --- groups of options ------------------------------------------------------------------------------------------------


def option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each dataclass among a command's parameters by one option per field.

    Commands that share a dozen options declare them once and pass them on as one value.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if is_dataclass(kind) and isinstance(kind, type)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name in groups:
            parameters += _fields(groups[parameter.name])
        else:
            parameters.append(_parameter(parameter.name, hints[parameter.name], parameter.default))

    @wraps(command)
    def called(**given: Any) -> None:
        grouped = {
            name: kind(**{field.name: given.pop(field.name) for field in fields(kind)}) for name, kind in groups.items()
        }
        command(**grouped, **given)

    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called


def _fields(kind: type) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [_parameter(item.name, hints[item.name], item.default) for item in fields(kind)]


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


# --- key=value --------------------------------------------------------------------------------------------------------


def parse_value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return text


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)  # NaN and Infinity are not JSON: they stay text


def parse_pair(item: str, flag: str, example: str) -> tuple[str, str]:
    key, equals, value = item.partition("=")
    if not equals or not key.strip():
        raise InputError(f"{flag}: {item!r} is not key=value; write {flag} {example}")
    return key.strip(), value.strip()


def parse_meta(items: Iterable[str]) -> dict[str, Any]:
    """Return the metadata of ``--meta``; a repeated key becomes a list of its values."""
    found: dict[str, list[Any]] = {}
    for item in items:
        key, value = parse_pair(item, "--meta", "author=sam")
        found.setdefault(key, []).append(parse_value(value))
    return {key: values[0] if len(values) == 1 else values for key, values in found.items()}


def parse_link(item: str) -> dict[str, str]:
    """Read ``ID`` or ``ID:type``; an id with a colon in it needs a type."""
    target, colon, kind = item.rpartition(":")
    return {"target": target, "type": kind} if colon else {"target": item}


def parse_changes(settings: Iterable[str] = (), weights: Iterable[str] = (), **given: Any) -> dict[str, Any]:
    """Return the changed fields of a profile; ``weights.dense=2`` goes into a mapping, None is left out."""
    found = {name: value for name, value in given.items() if value is not None}
    for item in weights:
        leg, value = parse_pair(item, "--weight", "dense=1.5")
        _put(found, ("weights", leg), parse_value(value))
    for item in settings:
        name, value = parse_pair(item, "--set", "rrf_k=5")
        field, dot, key = name.partition(".")
        if field == "rerankers" and not value.startswith("["):
            _put(found, (field,), [step.strip() for step in value.split(",") if step.strip()])
        else:
            _put(found, (field, key) if dot else (field,), parse_value(value))
    return found


def _put(found: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    if len(path) == 1:
        found[path[0]] = value
        return
    table = found.setdefault(path[0], {})
    if not isinstance(table, dict):
        raise InputError(f"--set: {path[0]} was given both as a whole and by its parts; choose one")
    table[path[1]] = value


def read_profile(name: str | None) -> Profile | None:
    """Return a shipped profile by its name, or the profile in a .toml or .json file."""
    if name is None:
        return None
    from trivet.profile import Profile, named

    readers: Mapping[str, Any] = {".toml": Profile.from_toml, ".json": Profile.from_json}
    path = Path(name)
    if path.suffix.lower() not in readers:
        return named(name)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--profile: cannot read {name!r}: {getattr(error, 'strerror', None) or error}") from None
    try:
        return readers[path.suffix.lower()](text)  # type: ignore[no-any-return]
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def check_order(context: typer.Context) -> None:
    """Refuse `trivet mcp --store a.db install`: it would set up another store than the one named."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            command, part = context.info_name, context.invoked_subcommand
            raise InputError(
                f"{command}: write --{name.replace('_', '-')} after {part}, as in `trivet {command} {part} …`"
            )

"""Which options do all commands have in common, and how is one written?"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

DEFAULT_STORE = Path("memory.db")
DEFAULT_COLLECTION = "default"

_PLACE = "Where"


def option(
    names: str, metavar: str, help: str, panel: str | None = None, default: bool = False, env: str | None = None
) -> Any:
    """An option with a value; its default is shown only where it tells something."""
    return typer.Option(
        *names.split(), metavar=metavar, help=help, rich_help_panel=panel, show_default=default, envvar=env
    )


def flag(names: str, help: str, panel: str | None = None) -> Any:
    # without the empty metavar typer writes <bool> behind it
    return typer.Option(*names.split(), metavar="", help=help, rich_help_panel=panel)


def argument(metavar: str, help: str) -> Any:
    return typer.Argument(metavar=metavar, help=help, show_default=False)


Store = Annotated[Path, option("--store -s", "PATH", "The store's file.", _PLACE, default=True, env="TRIVET_STORE")]
Collection = Annotated[
    str, option("--collection -c", "NAME", "The collection in it.", _PLACE, default=True, env="TRIVET_COLLECTION")
]
Embedder = Annotated[
    str | None,
    option(
        "--embedder",
        "SPEC",
        "The model of a new collection: builtin, none, folder:PATH, http://HOST/v1#MODEL… "
        "Else TRIVET_EMBEDDER says, or builtin.",
        _PLACE,
    ),
]
Scorer = Annotated[
    str | None,
    option(
        "--scorer",
        "SPEC",
        "What the reranker cross_encoder asks: folder:PATH, http://HOST/rerank, llm:http://HOST/v1#MODEL… "
        "Else TRIVET_SCORER says, or none.",
        _PLACE,
    ),
]
Json = Annotated[bool, flag("--json", "One JSON value on stdout, for programs.")]
Where = Annotated[
    list[str] | None,
    option(
        "--where -w",
        "FILTER",
        "kind=note, year>=2020, tags=a,b (any of), author!=sam, due=* (has one), or JSON. Repeat: all must hold.",
    ),
]


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """The command with each dataclass among its parameters taken apart into options, one a field.

    Commands that share a dozen options name them once, and hand them on as one value.
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

"""``trivet serve`` and ``trivet config``: run the HTTP service, and show its configuration."""

from __future__ import annotations

import json as json_
from dataclasses import asdict, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from trivet.cli import options, output
from trivet.cli.options import flag, option
from trivet.errors import MissingExtraError
from trivet.http.config import HELP, RULE, Config, Sourced, resolve

PIP_LINE = "pip install 'trivet[serve]'"
PANELS = {"max": "Limits", "body": "Limits", "request": "Limits", "drain": "Limits", "log": "Logging"}
SHORT = {"store": "-s", "collection": "-c"}
METAVARS = {"store": "PATH", "embedder": "SPEC", "scorer": "SPEC", "host": "ADDRESS", "evaluations": "DIR"}
TYPES = {bool: (bool, "BOOL"), int: (int, "N"), float: (float, "S"), tuple[str, ...]: (str, "A,B")}
DEFAULTS = Config()
NOT_AN_OPTION = "chat"  # a table of the configuration file


def _option(name: str, kind: Any) -> tuple[str, Any, None]:
    """Return one setting of the service as an option; its default is None, "not given"."""
    type_, metavar = TYPES.get(kind, (str, METAVARS.get(name, "NAME")))
    names = f"--{name.replace('_', '-')} {SHORT.get(name, '')}"
    default = getattr(DEFAULTS, name)
    help = f"{HELP[name]} (default: {default})" if default else HELP[name]
    return name, Annotated[type_ | None, option(names, metavar, help, PANELS.get(name.partition("_")[0]))], None


_FILE = option("--config", "FILE", "A TOML file. Default: TRIVET_CONFIG, or trivet.toml in the current folder.")

#: Every setting of ``Config`` as an option. One that is not given comes from the environment, the file or the default.
if TYPE_CHECKING:
    ServiceOptions = Any
else:
    ServiceOptions = make_dataclass(
        "ServiceOptions",
        [
            ("config", Annotated[Path | None, _FILE], None),
            *(_option(name, kind) for name, kind in get_type_hints(Config).items() if name != NOT_AN_OPTION),
        ],
    )


def _resolve(given: ServiceOptions) -> tuple[Config, list[Sourced]]:
    """Return the configuration, and where each value comes from."""
    values = asdict(given)
    return resolve(values, file=values.pop("config"))


@options.option_groups
def serve(
    given: ServiceOptions,
    check: Annotated[bool, flag("--check", "Check whether the service could start, and exit.")] = False,
) -> None:
    """Run the HTTP service and the web page, until Ctrl-C or SIGTERM. docs/reference/http.md lists every route."""
    config, _ = _resolve(given)
    _check_extra()
    from trivet.engine import shown
    from trivet.http import server

    if check:
        for name, found in server.check(config):
            print(f"{name}: {found}")
        print("ready to start")
        return
    output.message(f"trivet on http://{config.host}:{config.port} with {shown(config.store)} (Ctrl-C stops it)")
    server.serve(config)


def _check_extra() -> None:
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"serve: {error.name} is not installed; {PIP_LINE}") from None


@options.option_groups
def config(given: ServiceOptions, json: options.Json = False) -> None:
    """Show the configuration of the service, and where each value comes from."""
    _, found = _resolve(given)
    if json:
        output.print_json({item.name: {"value": item.value, "source": item.source} for item in found})
        return
    print(f"# {RULE}")
    for item in found:
        print(output.clean(f"{item.name} = {_toml(item.value)}  # {item.source}: {HELP[item.name]}"))


def _toml(value: Any) -> str:
    return json_.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)

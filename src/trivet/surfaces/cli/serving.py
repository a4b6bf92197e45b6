"""How is the service run and set up? (``serve``, ``config``)"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from trivet.errors import MissingExtraError
from trivet.surfaces.cli import options, screen
from trivet.surfaces.cli.options import flag, option

if TYPE_CHECKING:
    from trivet.surfaces.config import Config, Sourced

_LISTEN, _LIMITS, _LOG = "Where it listens", "Limits", "What it writes down"
PIP_LINE = "pip install 'trivet[serve]'"


@dataclass(frozen=True)
class Set:
    """Every setting of the service as a flag; None is "not given", and the environment or the file may say."""

    config: Annotated[
        Path | None, option("--config", "FILE", "A TOML file; else TRIVET_CONFIG, or trivet.toml in this folder.")
    ] = None
    store: Annotated[Path | None, option("--store -s", "PATH", "The store's file; made if it is new.")] = None
    collection: Annotated[str | None, option("--collection -c", "NAME", "The collection of routes that name none.")] = (
        None
    )
    embedder: Annotated[str | None, option("--embedder", "SPEC", "The model of new collections.")] = None
    scorer: Annotated[str | None, option("--scorer", "SPEC", "What the reranker cross_encoder asks.")] = None
    host: Annotated[str | None, option("--host", "ADDRESS", "127.0.0.1 if not said; others need a key.", _LISTEN)] = (
        None
    )
    port: Annotated[int | None, option("--port", "N", "8787 if not said.", _LISTEN)] = None
    workers: Annotated[int | None, option("--workers", "N", "Processes on the one store.", _LISTEN)] = None
    threads: Annotated[int | None, option("--threads", "N", "Calls of the engine at a time, a process.", _LISTEN)] = (
        None
    )
    require_key: Annotated[
        bool | None, option("--require-key", "BOOL", "Ask for a key even on this machine.", _LISTEN)
    ] = None
    cors_origins: Annotated[
        str | None, option("--cors-origins", "A,B", "Origins that browsers may ask from; none if not said.", _LISTEN)
    ] = None
    allowed_hosts: Annotated[
        str | None, option("--allowed-hosts", "A,B", "Names of a proxy that passes its own Host.", _LISTEN)
    ] = None
    max_body_bytes: Annotated[int | None, option("--max-body-bytes", "N", "The largest body: 413.", _LIMITS)] = None
    max_batch: Annotated[int | None, option("--max-batch", "N", "Documents in one request: 413.", _LIMITS)] = None
    max_filter_depth: Annotated[int | None, option("--max-filter-depth", "N", "Levels of a filter: 422.", _LIMITS)] = (
        None
    )
    max_waiting: Annotated[int | None, option("--max-waiting", "N", "Requests that wait: 429.", _LIMITS)] = None
    max_imports: Annotated[int | None, option("--max-imports", "N", "Imports at a time: 429.", _LIMITS)] = None
    max_chats: Annotated[int | None, option("--max-chats", "N", "Chat answers waited for: 429.", _LIMITS)] = None
    body_seconds: Annotated[float | None, option("--body-seconds", "S", "What a body may take: 408.", _LIMITS)] = None
    request_seconds: Annotated[
        float | None, option("--request-seconds", "S", "What a request may take: 504.", _LIMITS)
    ] = None
    drain_seconds: Annotated[
        float | None, option("--drain-seconds", "S", "What requests are given to end at shutdown.", _LIMITS)
    ] = None
    log_level: Annotated[str | None, option("--log-level", "NAME", "debug, info, warning, error.", _LOG)] = None
    log_format: Annotated[str | None, option("--log-format", "NAME", "json or text.", _LOG)] = None
    evaluations: Annotated[
        Path | None, option("--evaluations", "DIR", "Evaluations to show on the page: `trivet eval --save`.")
    ] = None


def _resolved(given: Set) -> tuple[Config, list[Sourced]]:
    from trivet.surfaces.config import resolve

    flags = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(given).items()}
    file = flags.pop("config")
    return resolve(flags, file=file)


@options.spread
def serve(
    given: Set, check: Annotated[bool, flag("--check", "Say whether it would start, and how; do not start.")] = False
) -> None:
    """Answer over HTTP, until Ctrl-C or SIGTERM. docs/HTTP.md has every route."""
    config, _ = _resolved(given)
    _need_extra()
    from trivet.surfaces.http import server

    if check:
        for name, found in server.check(config):
            print(f"{name}: {found}")
        print("ready to start")
        return
    screen.say(f"trivet on http://{config.host}:{config.port} with {config.store} (Ctrl-C ends it)")
    server.serve(config)


def _need_extra() -> None:
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"serve: {error.name} is not installed; {PIP_LINE}") from None


@options.spread
def config(given: Set, json: options.Json = False) -> None:
    """Show the service's configuration, and where each value comes from."""
    from trivet.surfaces.config import HELP, RULE

    _, found = _resolved(given)
    if json:
        screen.print_json({item.name: {"value": item.value, "source": item.source} for item in found})
        return
    print(f"# {RULE}")
    for item in found:
        print(screen.clean(f"{item.name} = {_toml(item.value)}  # {item.source}: {HELP[item.name]}"))


def _toml(value: Any) -> str:
    import json as jsons

    return jsons.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)

"""How well did it do, each time somebody looked? (the evaluations in the folder that the configuration names)"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Path as InPath
from pydantic import BaseModel
from starlette.responses import Response

from trivet import deadline
from trivet.errors import InputError, NotFoundError
from trivet.surfaces.http.access import Asking
from trivet.surfaces.http.replies import reply
from trivet.surfaces.http.routes.shared import NAMED, Asked, responses

router = APIRouter(tags=["operation"])
MOST = 200  # files read, the latest first
Named = Annotated[str, InPath(description="As in the list.", examples=["eval-4ff9867-default.json"])]


class EvaluationRecord(BaseModel):
    file: str
    name: str
    dataset: str
    identity: str | None
    overall: dict[str, float]
    strata: dict[str, dict[str, float]]
    topics: int
    made: dict[str, Any]
    notes: list[str]


class Evaluations(BaseModel):
    folder: bool
    evaluations: list[EvaluationRecord]
    unreadable: int


_REPORT = responses(None, *NAMED)
_REPORT[200]["content"] = {"text/html": {"schema": {"type": "string"}, "example": "<!doctype html>…"}}
#: The report has a policy of its own, with the hash of its one script. The sandbox keeps it from this origin's data.
SANDBOX = "sandbox allow-scripts"


@router.get("/v1/evaluations", responses=responses(Evaluations), summary="The evaluations that were saved")
async def evaluations(bridge: Asked, caller: Asking) -> Response:
    """Of the folder `evaluations` in the configuration; the latest first. Without one, none."""

    def work() -> dict[str, Any]:
        folder = bridge.config.evaluations
        found = [(path, _record(path)) for path in _files(folder)] if folder else []
        shown = [record for _, record in found if record is not None]
        return {"folder": bool(folder), "evaluations": shown, "unreadable": len(found) - len(shown)}

    return reply(await bridge.store(caller, "read", work))


@router.get("/v1/evaluations/{file}/report", responses=_REPORT, summary="One of them as a page, with its plots")
async def report(file: Named, bridge: Asked, caller: Asking) -> Response:
    """With all others over the same questions, so that the plots compare."""

    def work() -> str:
        from trivet.evaluate import compare, read_evaluation
        from trivet.evaluate.report import Material, render

        folder = bridge.config.evaluations
        known = {path.name: path for path in _files(folder)} if folder else {}
        if file not in known:
            raise NotFoundError(f"file: there is no evaluation {file!r}; GET /v1/evaluations lists them")
        chosen = read_evaluation(known[file])
        found = {chosen.name: chosen}
        for name, path in known.items():
            record = _record(path)
            if name != file and record and record["dataset"] == chosen.dataset:
                found.setdefault(record["name"], read_evaluation(path))
        several = list(found.values())
        main = next(iter(chosen.scores))
        comparable = [item for item in several if main in item.scores]
        pairs = [compare(comparable, main)] if len(comparable) > 1 else []
        return render(Material(f"{chosen.name} on {chosen.dataset}", several, pairs))

    page = await bridge.store(caller, "read", work)
    return Response(
        page.encode("utf-8", "replace"),
        media_type="text/html; charset=utf-8",
        headers={"Content-Security-Policy": SANDBOX, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"},
    )


def _files(folder: str) -> list[Path]:
    files = [path for path in Path(folder).glob("*.json") if path.is_file()]
    return sorted(files, key=lambda path: (path.stat().st_mtime, path.name), reverse=True)[:MOST]


def _record(path: Path) -> dict[str, Any] | None:
    """What the list says of a file; None where it is something else's."""
    from trivet.evaluate import read_evaluation

    deadline.check()
    try:
        item = read_evaluation(path)
    except InputError:
        return None
    told = item.to_dict(answers=False)
    kept = {name: told[name] for name in ("name", "dataset", "identity", "overall", "strata", "made", "notes")}
    return {"file": path.name, "topics": len(item.strata), **kept}

"""Saved evaluations, from the folder ``evaluations`` of the configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Path as InPath
from pydantic import BaseModel
from starlette.responses import Response

from trivet.concurrency import deadline
from trivet.errors import InputError, NotFoundError
from trivet.http.json_response import json_response
from trivet.http.response_models import NOT_FOUND, responses
from trivet.http.routes.parameters import Access

router = APIRouter(tags=["operation"])
MAX_FILES = 200  # the latest ones
Named = Annotated[str, InPath(description="A file name from the list.", examples=["eval-4ff9867-default.json"])]


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


_REPORT = responses(None, *NOT_FOUND)
_REPORT[200]["content"] = {"text/html": {"schema": {"type": "string"}, "example": "<!doctype html>…"}}
#: The report has its own content security policy. The sandbox keeps its script away from the data of this origin.
SANDBOX = "sandbox allow-scripts"


@router.get("/v1/evaluations", responses=responses(Evaluations), summary="List the saved evaluations")
async def list_evaluations(access: Access) -> Response:
    """The latest first, from the folder `evaluations` of the configuration; none if it is not set."""

    def work() -> dict[str, Any]:
        folder = access.config.evaluations
        found = [(path, _record(path)) for path in _files(folder)] if folder else []
        shown = [record for _, record in found if record is not None]
        return {"folder": bool(folder), "evaluations": shown, "unreadable": len(found) - len(shown)}

    return json_response(await access.run_on_store("read", work))


@router.get("/v1/evaluations/{file}/report", responses=_REPORT, summary="Get an evaluation as an HTML report")
async def get_evaluation_report(file: Named, access: Access) -> Response:
    """The plots compare it with all other evaluations of the same dataset."""

    def work() -> str:
        from trivet.evaluate import compare, read_evaluation
        from trivet.evaluate.report import Material, render

        folder = access.config.evaluations
        known = {path.name: path for path in _files(folder)} if folder else {}
        if file not in known:
            raise NotFoundError(f"Evaluation {file!r} not found; GET /v1/evaluations lists all.")
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

    page = await access.run_on_store("read", work)
    return Response(
        page.encode("utf-8", "replace"),
        media_type="text/html; charset=utf-8",
        headers={"Content-Security-Policy": SANDBOX, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"},
    )


def _files(folder: str) -> list[Path]:
    files = [path for path in Path(folder).glob("*.json") if path.is_file()]
    return sorted(files, key=lambda path: (path.stat().st_mtime, path.name), reverse=True)[:MAX_FILES]


def _record(path: Path) -> dict[str, Any] | None:
    """Return the list entry of a file; None if it is not an evaluation."""
    from trivet.evaluate import read_evaluation

    deadline.check()
    try:
        item = read_evaluation(path)
    except InputError:
        return None
    record = item.to_dict(answers=False)
    kept = {name: record[name] for name in ("name", "dataset", "identity", "overall", "strata", "made", "notes")}
    return {"file": path.name, "topics": len(item.strata), **kept}

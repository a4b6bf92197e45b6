"""What has been judged, and what can be learnt from it? (qrels, and jobs that tune and evaluate)"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from trivet.engine import Engine
from trivet.errors import NotFoundError
from trivet.profile import Profile, named
from trivet.surfaces.http import answers, bodies
from trivet.surfaces.http.access import Asking
from trivet.surfaces.http.jobs import Tell, Work
from trivet.surfaces.http.problems import Refused
from trivet.surfaces.http.replies import reply
from trivet.surfaces.http.routes.settings import shown
from trivet.surfaces.http.routes.shared import BODY, COLLECTION, NAMED, Asked, Name, responses

router = APIRouter(tags=["feedback"])
JOBS = f"{COLLECTION}/jobs"
Kind = Literal["tune", "evaluate"]
OfKind = Annotated[Kind, Path(description="tune or evaluate.", examples=["tune"])]


class JudgedQuestion(BaseModel):
    id: str
    text: str
    grades: dict[str, int]


class Qrels(BaseModel):
    topics: list[JudgedQuestion]
    needed: int
    few: int
    notes: list[str]


class NewJob(bodies.Body):
    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [{"kind": "tune", "measure": "nDCG@10"}]}
    )

    kind: Kind
    profiles: list[str] = Field(
        default=[],
        max_length=20,
        description="Shipped profiles: to start tuning from (one), or to evaluate beside the settings.",
    )
    measure: str = "nDCG@10"
    folds: int = Field(5, ge=2, le=50, description="Of the cross-validation that proves what was tuned.")


class JobState(BaseModel):
    kind: str
    state: str = Field(description="running, done, failed or stopped.")
    by: str
    started: str
    finished: str | None = None
    step: str
    done: int
    total: int
    result: dict[str, Any] | None = None
    error: str | None = None


class JobStates(BaseModel):
    jobs: list[JobState]


_QRELS = responses(Qrels, *NAMED)
_QRELS[200]["content"] = {"text/plain": {"schema": {"type": "string"}, "example": "3f2a9c0d11e2 0 door-7 1\n"}}


@router.get(f"{COLLECTION}/qrels", responses=_QRELS, summary="The feedback as judgements")
async def qrels(
    name: Name,
    bridge: Asked,
    caller: Asking,
    format: Annotated[Literal["json", "trec"], Query(description="trec: a qrels file.")] = "json",
) -> Response:
    """Good is grade 1, bad is 0; a verdict on a document that is gone, and a question nothing is good for, are left
    out, and `notes` says how many. `needed` questions are the least to learn from, `few` the least to change by."""
    from trivet.evaluate.judgements import FEWEST, judged, topic_id
    from trivet.evaluate.significance import FEW

    answered, notes = await bridge.run(caller, "read", name, judged)
    topics = [{"id": topic_id(text), "text": text, "grades": grades} for text, grades in answered.items()]
    if format == "trec":
        lines = [f"{item['id']} 0 {id} {grade}\n" for item in topics for id, grade in item["grades"].items()]  # type: ignore[attr-defined]
        return Response("".join(lines).encode("utf-8", "replace"), media_type="text/plain; charset=utf-8")
    return reply({"topics": topics, "needed": FEWEST, "few": FEW, "notes": notes})


@router.post(
    JOBS,
    status_code=202,
    responses=responses(JobState, *NAMED, 409, *BODY, status=202),
    summary="Tune or evaluate, in the background",
)
async def begin(name: Name, body: NewJob, bridge: Asked, caller: Asking) -> Response:
    """On the questions that were judged. One of a kind at a time; `GET` tells how far it is."""

    def work(engine: Engine) -> dict[str, Any]:
        from trivet.evaluate.judgements import from_feedback
        from trivet.evaluate.measures import canonical

        profiles = [named(item) for item in body.profiles]
        canonical(body.measure)  # refused now, not in the background
        from_feedback(engine)
        job = _tuning if body.kind == "tune" else _evaluating
        return bridge.jobs.begin(
            name, body.kind, caller.name, job(engine, profiles, body, bridge.config.evaluations or None)
        )

    return reply(await bridge.whole(caller, "write", name, work), 202)


def _tuning(engine: Engine, profiles: list[Profile], body: NewJob, _: str | None) -> Work:
    def work(tell: Tell) -> dict[str, Any]:
        from trivet.evaluate import Lab
        from trivet.evaluate.judgements import from_feedback
        from trivet.evaluate.tuning import tune

        start = profiles[0] if profiles else engine.settings
        with Lab(from_feedback(engine), engine) as lab:
            found = tune(lab, start, measure=body.measure, folds=body.folds, progress=tell)
            notes = list(lab.dataset.notes)
        return {**found.to_dict(), "votes": found.votes, "notes": notes, "toml": found.to_toml()}

    return work


def _evaluating(engine: Engine, profiles: list[Profile], body: NewJob, folder: str | None) -> Work:
    def work(tell: Tell) -> dict[str, Any]:
        from trivet.evaluate import MEASURES, Lab, compare, evaluate
        from trivet.evaluate.judgements import from_feedback

        asked = {"settings": engine.settings, **{profile.name: profile for profile in profiles}}
        measures = list(dict.fromkeys((body.measure, *MEASURES)))
        with Lab(from_feedback(engine), engine) as lab:
            found = [
                evaluate(
                    lab,
                    profile,
                    measures=measures,
                    name=label,
                    fast=True,
                    progress=lambda step, done, total, label=label: tell(f"{label}: {step}", done, total),  # type: ignore[misc]
                )
                for label, profile in asked.items()
            ]
        saved = [item.save(folder).name for item in found] if folder else []
        pairs = compare(found, body.measure).to_dict()["overall"] if len(found) > 1 else []
        return {"evaluations": [item.to_dict(answers=False) for item in found], "pairs": pairs, "saved": saved}

    return work


@router.get(JOBS, responses=responses(JobStates, *NAMED), summary="How far are they, and what came of them?")
async def jobs(name: Name, bridge: Asked, caller: Asking) -> Response:
    """The last of each kind, whichever worker runs it."""

    def work(engine: Engine) -> list[dict[str, Any]]:
        return bridge.jobs.of(engine.name)

    return reply({"jobs": await bridge.whole(caller, "read", name, work)})


@router.delete(
    f"{JOBS}/{{kind}}", status_code=202, responses=responses(JobState, *NAMED, status=202), summary="Stop it"
)
async def stop(name: Name, kind: OfKind, bridge: Asked, caller: Asking) -> Response:
    """It ends with its next step."""

    def work(engine: Engine) -> dict[str, Any]:
        job = bridge.jobs.last(engine.name, kind)
        if job is None:
            raise NotFoundError(f"kind: there was no {kind} here")
        if job["state"] == "running":
            bridge.jobs.stop(engine.name, kind)
        return job

    return reply(await bridge.whole(caller, "write", name, work), 202)


@router.post(
    f"{JOBS}/tune/apply",
    responses=responses(answers.SettingsInForce, *NAMED, 409),
    summary="Make what was tuned the settings",
)
async def apply(name: Name, bridge: Asked, caller: Asking) -> Response:
    """Only what held on questions it was not chosen on. It is a change like any other: the history can take it back."""

    def work(engine: Engine) -> Profile:
        job = bridge.jobs.last(engine.name, "tune")
        if job is None or job["state"] != "done":
            raise NotFoundError("tune: nothing has been tuned yet; POST {'kind': 'tune'} to jobs first")
        if not job["result"]["changed"]:
            raise Refused("conflict", f"tune: there is nothing to apply: {job['result']['reason']}")
        return engine.update_settings(Profile.from_dict(job["result"]["profile"]), by=f"{caller.name} (tuned)")

    return reply(shown(await bridge.whole(caller, "write", name, work)))

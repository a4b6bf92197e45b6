"""Jobs that tune or evaluate on the feedback of a collection, in the background."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from trivet.engine import Engine
from trivet.errors import NotFoundError
from trivet.http.jobs import Work
from trivet.http.json_response import json_response
from trivet.http.problem_details import Refused
from trivet.http.request_models import Body
from trivet.http.response_models import NOT_FOUND, WITH_BODY, SettingsInForce, responses
from trivet.http.routes.parameters import COLLECTION, Access, Name
from trivet.http.routes.settings import settings_of
from trivet.profile import Profile, named
from trivet.types import StepProgress

router = APIRouter(tags=["feedback"])
JOBS = f"{COLLECTION}/jobs"
Kind = Literal["tune", "evaluate"]
OfKind = Annotated[Kind, Path(description="The kind of job: tune or evaluate.", examples=["tune"])]


class NewJob(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"kind": "tune", "measure": "nDCG@10"}]})

    kind: Kind
    profiles: list[str] = Field(
        default=[],
        max_length=20,
        description="Shipped profiles: the one to start tuning from, or those to compare with the settings.",
    )
    measure: str = "nDCG@10"
    folds: int = Field(5, ge=2, le=50, description="Folds of the cross-validation that checks the tuned settings.")


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


@router.post(
    JOBS,
    status_code=202,
    responses=responses(JobState, *NOT_FOUND, 409, *WITH_BODY, status=202),
    summary="Start a job that tunes or evaluates",
)
async def start_job(name: Name, body: NewJob, access: Access) -> Response:
    """Uses the queries with feedback. One job of a kind runs at a time; `GET` returns its progress."""

    def work(engine: Engine) -> dict[str, Any]:
        from trivet.evaluate.feedback import from_feedback
        from trivet.evaluate.measures import canonical

        profiles = [named(item) for item in body.profiles]
        canonical(body.measure)  # refuse an unknown measure now, not in the background
        from_feedback(engine)
        job = _tuning if body.kind == "tune" else _evaluating
        return access.dispatcher.jobs.begin(
            name, body.kind, access.caller.name, job(engine, profiles, body, access.config.evaluations or None)
        )

    return json_response(await access.run_unbound("write", name, work), 202)


def _tuning(engine: Engine, profiles: list[Profile], body: NewJob, _: str | None) -> Work:
    def work(progress: StepProgress) -> dict[str, Any]:
        from trivet.evaluate import Lab
        from trivet.evaluate.feedback import from_feedback
        from trivet.evaluate.tuning import tune

        start = profiles[0] if profiles else engine.settings
        with Lab(from_feedback(engine), engine) as lab:
            found = tune(lab, start, measure=body.measure, folds=body.folds, progress=progress)
            notes = list(lab.dataset.notes)
        return {**found.to_dict(), "votes": found.votes, "notes": notes, "toml": found.to_toml()}

    return work


def _evaluating(engine: Engine, profiles: list[Profile], body: NewJob, folder: str | None) -> Work:
    def work(progress: StepProgress) -> dict[str, Any]:
        from trivet.evaluate import MEASURES, Lab, compare, evaluate
        from trivet.evaluate.feedback import from_feedback

        compared = {"settings": engine.settings, **{profile.name: profile for profile in profiles}}
        measures = list(dict.fromkeys((body.measure, *MEASURES)))
        with Lab(from_feedback(engine), engine) as lab:
            found = [
                evaluate(
                    lab,
                    profile,
                    measures=measures,
                    name=label,
                    fast=True,
                    progress=lambda step, done, total, label=label: progress(f"{label}: {step}", done, total),  # type: ignore[misc]
                )
                for label, profile in compared.items()
            ]
        saved = [item.save(folder).name for item in found] if folder else []
        pairs = compare(found, body.measure).to_dict()["overall"] if len(found) > 1 else []
        return {"evaluations": [item.to_dict(answers=False) for item in found], "pairs": pairs, "saved": saved}

    return work


@router.get(JOBS, responses=responses(JobStates, *NOT_FOUND), summary="List the jobs with progress and result")
async def list_jobs(name: Name, access: Access) -> Response:
    """The last job of each kind, from every worker."""

    def work(engine: Engine) -> list[dict[str, Any]]:
        return access.dispatcher.jobs.of(engine.name)

    return json_response({"jobs": await access.run_unbound("read", name, work)})


@router.delete(
    f"{JOBS}/{{kind}}", status_code=202, responses=responses(JobState, *NOT_FOUND, status=202), summary="Stop a job"
)
async def stop_job(name: Name, kind: OfKind, access: Access) -> Response:
    """It stops at its next step."""

    def work(engine: Engine) -> dict[str, Any]:
        job = access.dispatcher.jobs.last(engine.name, kind)
        if job is None:
            raise NotFoundError(f"kind: job {kind!r} not found in collection {engine.name!r}")
        if job["state"] == "running":
            access.dispatcher.jobs.stop(engine.name, kind)
        return job

    return json_response(await access.run_unbound("write", name, work), 202)


@router.post(
    f"{JOBS}/tune/apply", responses=responses(SettingsInForce, *NOT_FOUND, 409), summary="Apply the tuned settings"
)
async def apply_tuning(name: Name, access: Access) -> Response:
    """Only settings that passed the cross-validation. The change is in the history and can be reverted."""

    def work(engine: Engine) -> Profile:
        job = access.dispatcher.jobs.last(engine.name, "tune")
        if job is None or job["state"] != "done":
            raise NotFoundError("No finished tuning job found; start one with POST /v1/collections/NAME/jobs.")
        if not job["result"]["changed"]:
            raise Refused("conflict", f"tune: nothing to apply: {job['result']['reason']}")
        return engine.update_settings(Profile.from_dict(job["result"]["profile"]), by=f"{access.caller.name} (tuned)")

    return json_response(settings_of(await access.run_unbound("write", name, work)))

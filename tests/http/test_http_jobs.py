"""Feedback as judgements, and jobs: they run, report progress, stop, and survive a killed worker."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from trivet.errors import StoreError
from trivet.http.jobs import Jobs
from trivet.http.problem_details import Refused

HOME = "/v1/collections/default"
FISH = ["herring", "cod", "plaice", "sprat", "ling", "hake", "turbot", "brill", "dab", "sole", "bream"]


def judged(client: TestClient, count: int = len(FISH)) -> None:
    for fish in FISH[:count]:
        client.put(f"{HOME}/documents/{fish}", json={"text": f"the {fish} was landed today"}).raise_for_status()
        client.post(f"{HOME}/feedback", json={"query": f"landed {fish}", "id": fish}).raise_for_status()


def ended(client: TestClient, kind: str) -> dict[str, Any]:
    until = time.monotonic() + 120
    while time.monotonic() < until:
        (job,) = [job for job in client.get(f"{HOME}/jobs").json()["jobs"] if job["kind"] == kind]
        if job["state"] != "running":
            return dict(job)
        time.sleep(0.05)
    raise AssertionError(job)


def test_feedback_is_judgements(client: TestClient) -> None:
    judged(client, 2)
    client.post(f"{HOME}/feedback", json={"query": "landed cod", "id": "herring", "good": False})
    client.post(f"{HOME}/feedback", json={"query": "landed what", "id": "herring", "good": False})
    told = client.get(f"{HOME}/qrels").json()
    assert {topic["text"]: topic["grades"] for topic in told["topics"]} == {
        "landed herring": {"herring": 1},
        "landed cod": {"cod": 1, "herring": 0},
    }
    assert told["notes"] == ["queries without a document judged good, left out: 1 of 3"]
    ids = {topic["text"]: topic["id"] for topic in told["topics"]}
    lines = client.get(f"{HOME}/qrels?format=trec").text.splitlines()
    assert f"{ids['landed cod']} 0 herring 0" in lines
    assert len(lines) == 3


def test_too_little_is_refused_before_anything_runs(client: TestClient) -> None:
    pytest.importorskip("ir_measures")
    judged(client, 4)
    refused = client.post(f"{HOME}/jobs", json={"kind": "tune"})
    assert refused.status_code == 422
    assert "learning needs at least 5" in refused.json()["detail"]
    assert client.post(f"{HOME}/jobs", json={"kind": "polish"}).status_code == 422
    assert client.get(f"{HOME}/jobs").json()["jobs"] == []
    assert client.delete(f"{HOME}/jobs/tune").status_code == 404
    assert client.post(f"{HOME}/jobs/tune/apply").status_code == 404
    judged(client)
    assert client.post(f"{HOME}/jobs", json={"kind": "tune", "measure": "nDCG@ten"}).status_code == 422
    assert client.post(f"{HOME}/jobs", json={"kind": "tune", "profiles": ["best"]}).status_code == 422


def test_tuning_runs_and_keeps_what_it_cannot_better(client: TestClient) -> None:
    pytest.importorskip("ir_measures")
    judged(client)
    begun = client.post(f"{HOME}/jobs", json={"kind": "tune", "folds": 3})
    assert begun.status_code == 202
    job = ended(client, "tune")
    assert job["state"] == "done", job
    result = job["result"]
    assert (result["topics"], result["folds"], result["changed"]) == (11, 3, False)
    assert job["by"] == "http"
    assert sum(result["votes"].values()) == 15
    assert "[weights]" in result["toml"]
    assert client.post(f"{HOME}/jobs/tune/apply").status_code == 409


def test_evaluations_are_saved_listed_and_reported(service: Any, tmp_path: Path) -> None:
    pytest.importorskip("ir_measures")
    client = service(evaluations=str(tmp_path / "kept"))
    judged(client)
    client.post(f"{HOME}/jobs", json={"kind": "evaluate", "profiles": ["memories"]}).raise_for_status()
    job = ended(client, "evaluate")
    assert job["state"] == "done", job
    assert [one["name"] for one in job["result"]["evaluations"]] == ["settings", "memories"]
    assert job["result"]["pairs"][0]["challenger"] == "memories"
    (tmp_path / "kept/other.json").write_text("{}")
    told = client.get("/v1/evaluations").json()
    assert {one["name"] for one in told["evaluations"]} == {"settings", "memories"}
    assert told["unreadable"] == 1
    report = client.get(f"/v1/evaluations/{told['evaluations'][0]['file']}/report")
    assert report.headers["content-security-policy"] == "sandbox allow-scripts"
    assert "<svg" in report.text
    assert client.get("/v1/evaluations/..%2Fmemory.db/report").status_code == 404
    assert client.get("/v1/evaluations/none.json/report").status_code == 404
    assert service(name="second.db").get("/v1/evaluations").json()["folder"] is False


def test_a_dropped_collection_takes_its_jobs_along(client: TestClient, tmp_path: Path) -> None:
    client.put("/v1/collections/boats", json={}).raise_for_status()
    jobs = Jobs(str(tmp_path / "memory.db"))
    jobs.begin("boats", "tune", "sam", lambda tell: {})
    jobs.close()
    assert [job["state"] for job in client.get("/v1/collections/boats/jobs").json()["jobs"]] == ["done"]
    client.delete("/v1/collections/boats").raise_for_status()
    client.put("/v1/collections/boats", json={}).raise_for_status()
    assert client.get("/v1/collections/boats/jobs").json()["jobs"] == []


# --- jobs themselves --------------------------------------------------------------------------------------------------


def wait(jobs: Jobs, state: str) -> dict[str, Any]:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        job = jobs.last("c", "tune")
        if job is not None and job["state"] == state:
            return job
        time.sleep(0.02)
    raise AssertionError(job)


def test_another_worker_sees_it_run_and_stops_it(tmp_path: Path) -> None:
    one, other = Jobs(str(tmp_path / "s.db")), Jobs(str(tmp_path / "s.db"))

    def work(tell: Any) -> dict[str, Any]:
        for at in range(100_000):
            tell("step", at, 100_000)
            time.sleep(0.005)
        return {}

    one.begin("c", "tune", "sam", work)
    assert wait(other, "running")["by"] == "sam"
    with pytest.raises(Refused, match="already running"):
        other.begin("c", "tune", "kim", work)
    other.stop("c", "tune")
    assert wait(other, "stopped")["finished"]
    other.begin("c", "tune", "kim", lambda tell: {"made": 1})
    assert wait(one, "done")["result"] == {"made": 1}
    one.begin("c", "tune", "sam", work)
    one.close()
    assert wait(other, "stopped")


def test_what_goes_wrong_is_told_without_a_path(tmp_path: Path) -> None:
    jobs = Jobs(str(tmp_path / "s.db"))

    def broken(tell: Any) -> dict[str, Any]:
        raise StoreError(f"store: {tmp_path}/s.db is broken")

    jobs.begin("c", "tune", "sam", broken)
    assert str(tmp_path) not in wait(jobs, "failed")["error"]

    def strange(tell: Any) -> dict[str, Any]:
        raise ZeroDivisionError(str(tmp_path))

    jobs.begin("c", "tune", "sam", strange)
    jobs.close()
    assert wait(jobs, "failed")["error"] == "an unexpected error; see the log"


def test_a_job_whose_worker_was_killed_does_not_run_for_ever(tmp_path: Path) -> None:
    jobs = Jobs(str(tmp_path / "s.db"))
    jobs.begin("c", "tune", "sam", lambda tell: {})
    wait(jobs, "done")
    (file,) = (tmp_path / "s.db.index/jobs").glob("*.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "state": "running"}))
    assert wait(jobs, "failed")["error"] == "the worker that ran the job has ended"
    file.write_text("{")
    assert jobs.of("c") == [], "thrown away, or half written by another hand"


def test_the_jobs_of_a_local_address_make_no_folder_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    jobs = Jobs(f"qdrant+local:{tmp_path / 'folder'}")
    jobs.begin("default", "tune", "", lambda progress: {})
    jobs.close()
    assert not list(tmp_path.glob("qdrant*"))
    jobs.forget("default")

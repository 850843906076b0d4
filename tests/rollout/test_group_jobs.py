"""Jobs of groups: their names, and the job that has a pipeline as it is deployed."""

from __future__ import annotations

import pytest

from frazil.declaration import Pipeline, Table, Topic, canonical
from frazil.declaration.documents.document import document
from frazil.errors import InvalidInput
from frazil.release.upload import document_key
from frazil.rollout.desired import Desired, desired_document, desired_key, parse_desired
from frazil.rollout.group_jobs import deployed_pipelines, ingest_jobs, job_of, without_moved
from tests.support.fake_store import FakeStore
from tests.support.rollout_world import desired


def store(**jobs: tuple[str, ...]) -> FakeStore:
    """A store with the desired state of each job, by names of pipelines; `_` in a job's name means `-`."""
    made = FakeStore()
    for job, names in jobs.items():
        pipelines = [Pipeline(topic=Topic(name, value="text"), table=Table(f"shop.{name}")) for name in names]
        written = canonical(document(pipelines))
        made.put(document_key(written), written)
        wanted = desired(job=job.replace("_", "-"), document=document_key(written))
        made.put(desired_key(wanted.job), desired_document(wanted))
    return made


def test_the_deployed_jobs_are_those_with_a_desired_state() -> None:
    assert ingest_jobs(store(ingest_payments=("a",), ingest=("b",))) == ("ingest", "ingest-payments")
    assert ingest_jobs(store()) == ()


def test_the_pipelines_of_each_deployed_job_are_known_or_it_is_an_error() -> None:
    deployed = store(ingest=("a", "b"), ingest_payments=("c",))
    assert deployed_pipelines(deployed) == {"ingest": ("a", "b"), "ingest-payments": ("c",)}
    deployed.put(desired_key("ingest-broken"), b"{")
    with pytest.raises(InvalidInput):
        deployed_pipelines(deployed)


def test_a_pipelines_job_is_the_one_whose_document_has_it() -> None:
    deployed = store(ingest=("a", "b"), ingest_payments=("c",))
    assert job_of(deployed, ["b", "a"]) == "ingest"
    assert job_of(deployed, ["c"]) == "ingest-payments"


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a", "c"], "several jobs: ingest has a; ingest-payments has c"),
        (["a", "x"], "no deployed job has the pipeline x. Name some of a, c"),
    ],
)
def test_pipelines_of_several_jobs_or_of_none_are_refused(names: list[str], said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        job_of(store(ingest=("a",), ingest_payments=("c",)), names)
    assert said in str(refused.value)


def test_a_desired_state_that_cannot_be_read_hides_no_other_job() -> None:
    deployed = store(ingest=("a",), ingest_payments=("c",))
    deployed.put(desired_key("ingest-broken"), b"{")
    assert job_of(deployed, ["a"]) == "ingest"
    assert job_of(deployed, ["c"]) == "ingest-payments"
    with pytest.raises(
        InvalidInput, match=r"no deployed job has the pipeline x; ingest-broken cannot be read: .*Name some of a, c"
    ):
        job_of(deployed, ["x"])


def of(at: FakeStore, job: str) -> Desired:
    held = at.read(desired_key(job))
    assert held is not None
    return parse_desired(held.data)


def test_a_job_that_returns_leaves_the_pipelines_that_moved_to_another_job() -> None:
    proven = of(before := store(ingest=("a", "b", "c")), "ingest")
    after = store(ingest=("c",), ingest_payments=("a",))
    after.objects.update({key: value for key, value in before.objects.items() if key.startswith("documents/")})
    after.put(desired_key("ingest-broken"), b"{")
    wanted = of(after, "ingest")
    found = without_moved(proven, wanted, after)
    assert (found.stopped, found.is_stopped) == (("a",), False), "b was removed, and runs again as before"
    assert found.unstopped == proven.unstopped
    assert without_moved(found, wanted, after) == found
    assert without_moved(wanted, wanted, after) == wanted
    alone = of(before, "ingest")
    assert without_moved(alone, alone, before) == alone


def test_a_job_that_returns_and_has_lost_all_pipelines_does_not_run() -> None:
    proven = of(before := store(ingest=("a",)), "ingest")
    after = store(ingest=("c",), ingest_payments=("a",))
    after.objects.update({key: value for key, value in before.objects.items() if key.startswith("documents/")})
    assert without_moved(proven, of(after, "ingest"), after).is_stopped

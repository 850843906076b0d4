"""Jobs of groups: their names, and the job that has a pipeline as it is deployed."""

from __future__ import annotations

import pytest

from frazil.declaration import Pipeline, Table, Topic, canonical
from frazil.declaration.document import document
from frazil.errors import InvalidInput
from frazil.release.upload import document_key
from frazil.rollout.desired import desired_document, desired_key
from frazil.rollout.group_jobs import INGEST, MAINTAIN, ingest_jobs, job_name, job_of
from tests.support.fake_store import FakeStore
from tests.support.rollout_world import desired


def store(**jobs: tuple[str, ...]) -> FakeStore:
    """A store with the desired state of each job, by names of pipelines; `_` in a job's name means `-`."""
    made = FakeStore()
    for job, names in jobs.items():
        pipelines = [Pipeline(topic=Topic(name, value_format="text"), table=Table(f"shop.{name}")) for name in names]
        written = canonical(document(pipelines))
        made.put(document_key(written), written)
        wanted = desired(job=job.replace("_", "-"), document=document_key(written))
        made.put(desired_key(wanted.job), desired_document(wanted))
    return made


def test_pipelines_without_a_group_keep_the_names_of_their_jobs() -> None:
    assert [job_name(kind, None) for kind in (INGEST, MAINTAIN)] == ["ingest", "maintain"]
    assert [job_name(kind, "payments") for kind in (INGEST, MAINTAIN)] == ["ingest-payments", "maintain-payments"]


def test_the_deployed_jobs_are_those_with_a_desired_state() -> None:
    assert ingest_jobs(store(ingest_payments=("a",), ingest=("b",))) == ("ingest", "ingest-payments")
    assert ingest_jobs(store()) == ()


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

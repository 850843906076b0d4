"""When a review is refused, and what it says of what it could not see."""

from __future__ import annotations

import json
from typing import Any

import pytest

from policies.review.markdown.page import markdown
from policies.review.review import Verdict, in_comments
from tests.policies.review.cases import APPLICATION, DESIRED, TOPIC, topic
from tests.policies.review.planning import FLIGHTS, change, declared, plan, reviewed

LOST = change(TOPIC, "delete", topic())


def test_outputs_alone_are_a_change() -> None:
    assert reviewed(plan(outputs={"a": "update"})).verdict is Verdict.CHANGES
    assert reviewed(plan(outputs={"a": "no-op"})).verdict is Verdict.NOTHING


@pytest.mark.parametrize("more", [{"errored": True}, {"complete": False}])
def test_a_plan_that_is_not_whole_is_refused_even_if_it_changes_nothing(more: dict[str, bool]) -> None:
    assert reviewed({**plan(), **more}).verdict is Verdict.REFUSED


def test_a_deployed_document_that_cannot_be_read_is_a_danger() -> None:
    old = {**declared(FLIGHTS), "content": json.dumps({"version": 1, "pipelines": [{"of": "another release"}]})}
    made = reviewed(plan(change("aws_s3_object.pipelines", "replace", old, declared(FLIGHTS))))
    assert [danger.rule for danger in made.dangers] == ["not_reviewed"]
    assert made.effects == ()


def test_without_a_document_nothing_is_said_of_data_and_that_is_told() -> None:
    made = reviewed(plan(change("aws_sns_topic.a", "update", {"name": "a"}, {"name": "b"})))
    assert made.effects == ()
    assert any("effects on data are unknown" in note for note in made.notes)


def test_what_the_application_is_called_later_hides_no_stop() -> None:
    """The desired state names the application, which is known later when it is new: the stack tells the rest."""
    wanted = {**DESIRED, "is_stopped": True, "generation": 5, "application": "${aws_emrserverless_application.a.id}"}
    synthesised = {
        "resource": {"aws_s3_object": {"desired": {"key": "desired/ingest.json", "content": json.dumps(wanted)}}}
    }
    old = {"key": "desired/ingest.json", "content": json.dumps({**DESIRED, "application": "00f1"})}
    made = plan(
        change("aws_s3_object.desired", "update", old, {"key": "desired/ingest.json"}, unknown={"content": True})
    )
    told = reviewed(made, synthesised=synthesised)
    assert ([each.outcome.value for each in told.effects], told.open_codes) == (["stops"], ("data_effect",))


def test_a_desired_state_that_goes_is_a_danger() -> None:
    made = reviewed(plan(change("aws_s3_object.desired", "delete", {"key": "k", "content": json.dumps(DESIRED)})))
    assert [danger.resource for danger in made.dangers] == ["job ingest"]


def test_a_job_that_is_started_again_is_told() -> None:
    before, after = (
        {"key": "k", "content": json.dumps({**DESIRED, "is_stopped": off, "generation": n})}
        for off, n in ((True, 1), (False, 2))
    )
    [effect] = reviewed(plan(change("aws_s3_object.desired", "update", before, after))).effects
    assert (effect.outcome.value, effect.is_dangerous) == ("from now on", False)


def acceptances(digest: str, *codes: str) -> dict[str, Any]:
    line = {"digest": digest, "codes": codes, "reason": "it is empty", "by": "ann", "url": ""}
    return {"environment": "dev", "accepted": [line]}


def accepting(*codes: str, digest: str = "") -> Any:
    """What is accepted of the plan with this digest; of the reviewed one if left out."""
    return lambda found: list(in_comments(acceptances(digest or found, *codes), "dev", found))


def test_an_acceptance_is_of_one_plan_and_of_the_named_codes() -> None:
    gone = plan(LOST, change("aws_emrserverless_application.a", "delete", {"id": "n"}))
    assert reviewed(gone).open_codes == ("application_change", "data_lost")
    assert reviewed(gone, accepted=accepting("data_lost")).open_codes == ("application_change",)
    assert reviewed(gone, accepted=accepting("data_lost")).verdict is Verdict.REFUSED
    assert reviewed(gone, accepted=accepting("data_lost", "application_change")).verdict is Verdict.CHANGES
    assert reviewed(gone, accepted=accepting("all")).verdict is Verdict.CHANGES
    assert reviewed(gone, accepted=accepting("all", digest="0" * 64)).verdict is Verdict.REFUSED


@pytest.mark.parametrize("digits", [0, 2, 16, 63])
def test_a_part_of_a_digest_accepts_nothing(digits: int) -> None:
    """`frazil deploy acceptances` prints complete digests, so such a file is from another version or was written by hand."""
    digest = "ab" * 32
    with pytest.raises(ValueError, match=f"the acceptance of ann names {digits} digits of a plan, and 64 are needed"):
        list(in_comments(acceptances(digest[:digits]), "dev", digest))
    assert len(list(in_comments(acceptances(digest), "dev", digest))) == 1


def test_a_digest_with_the_same_first_63_digits_is_another_plan() -> None:
    assert list(in_comments(acceptances("a" * 63 + "b"), "dev", "a" * 64)) == []


def test_the_review_names_who_accepted_and_what_is_open() -> None:
    gone = plan(LOST, change("aws_emrserverless_application.a", "delete", {"id": "n"}))
    made = reviewed(gone, accepted=accepting("data_lost"))
    page = markdown(made)
    assert "`ann` accepts `data_lost`: it is empty" in page
    assert f"`frazil accept {made.form.digest} application_change: the reason`" in page


@pytest.mark.parametrize("verb", ["update", "replace", "delete"])
def test_a_changed_application_is_a_danger(verb: str) -> None:
    after = None if verb == "delete" else {**APPLICATION, "name": "b"}
    made = reviewed(plan(change("aws_emrserverless_application.a", verb, APPLICATION, after)))
    assert made.open_codes == ("application_change",)


def test_fewer_partitions_are_one_danger_and_another_cause_is_named_too() -> None:
    was, will = {"topic_name": "flights", "partitions_count": 6}, {"topic_name": "flights", "partitions_count": 3}
    fewer = plan(change(TOPIC, "replace", was, will, forced=[["partitions_count"]]))
    assert reviewed(fewer).open_codes == ("partitions_lowered",)
    both = [["partitions_count"], ["topic_name"]]
    renamed = plan(change(TOPIC, "replace", was, {**will, "topic_name": "u"}, forced=both))
    assert reviewed(renamed).open_codes == ("data_lost", "partitions_lowered")

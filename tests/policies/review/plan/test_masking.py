"""No secret of a plan comes out of a review, wherever it stands in it."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.review.markdown.page import markdown
from policies.review.plan.masking import MASK, OTHER, cleaned, hidden
from tests.policies.review.planning import change, plan, reviewed

SECRET = 'Zq9-PLANTED-s3cr3t/+"<&>é'
CORE = "PLANTED"


def everywhere(secret: str) -> dict[str, Any]:
    """A plan that has a secret in every place that Terraform writes values to, marked once."""
    marked = change(
        "confluent_api_key.k",
        "update",
        {"id": "K", "secret": "x"},
        {"id": "K", "secret": secret},
        secret={"secret": True},
    )
    spread = {
        "bucket": f"frazil-{secret}",
        "tags": {secret: "as a key", "list": ["a", {"b": secret}]},
        "content": json.dumps({"version": 1, "catalog": {"inside": secret}}),
        "policy": json.dumps(
            {"Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": f"arn:aws:s3:::{secret}"}]}
        ),
        "escaped": json.dumps(secret),
        "quoted": f"https://host/{quote(secret, safe='')}",
        "encoded": base64.b64encode(secret.encode()).decode(),
    }
    return plan(
        marked,
        change("aws_s3_bucket.gone", "delete", spread, None),
        change(f'aws_s3_object.x["{secret}"]', "replace", spread, {**spread, "key": secret}, forced=[["key", secret]]),
        change("aws_sns_topic.moved", "stay", spread, spread, importing=secret, previous_address=f"aws_sns_topic.{secret}"),
        change("aws_iam_role_policy.p", "update", {"name": "r", "policy": "{}"}, {"name": "r", "policy": spread["policy"]}),
        resource_drift=[change("aws_s3_bucket.drift", "update", {"bucket": "b", **spread}, {"bucket": secret})],
        prior_state={"values": {"outputs": {"o": {"sensitive": True, "value": secret}}, "root_module": {"resources": [
            {"address": "a.b", "type": "a", "values": {"password": secret}, "sensitive_values": {"password": True}}]}}},
        variables={"v": {"value": secret}},
        configuration={"root_module": {"variables": {"v": {"sensitive": True}}, "resources": [
            {"address": "aws_s3_bucket.gone", "expressions": {"bucket": {"constant_value": secret}}}]},
            "provider_config": {"confluent": {"expressions": {"cloud_api_secret": {"constant_value": secret}}}}},
    )  # fmt: skip


def texts(value: Any) -> list[str]:
    """All names and texts of a JSON value."""
    if isinstance(value, dict):
        return [text for key, part in value.items() for text in (key, *texts(part))]
    if isinstance(value, list):
        return [text for part in value for text in texts(part)]
    return [value] if isinstance(value, str) else [json.dumps(value)]


def test_a_planted_secret_is_nowhere_in_the_review() -> None:
    made = everywhere(SECRET)
    assert json.dumps(made).count(CORE) > 15
    review = reviewed(made)
    assert CORE not in markdown(review)
    assert CORE not in "".join(texts(review.form.content))
    assert CORE not in repr(review)
    encoded = base64.b64encode(SECRET.encode()).decode().rstrip("=")
    assert encoded not in markdown(review)


def test_the_planted_secret_would_be_seen_if_it_were_not_marked() -> None:
    """The test above can fail."""
    made = everywhere(SECRET)
    made["resource_changes"][0]["change"]["after_sensitive"] = {}
    made["resource_changes"][0]["change"]["before_sensitive"] = {}
    for place in ("prior_state", "planned_values", "variables"):
        del made[place]
    assert CORE in markdown(reviewed(made))


def test_a_cleaned_plan_holds_no_constant_of_the_configuration() -> None:
    made = everywhere(SECRET)
    assert CORE not in json.dumps(cleaned(made))
    assert "constant_value" not in json.dumps(cleaned(made))


def test_the_plan_itself_stays_as_it_is() -> None:
    made = everywhere(SECRET)
    copy = json.loads(json.dumps(made))
    cleaned(made)
    assert made == copy


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ("old", "new", (MASK, OTHER)),
        ("same", "same", (MASK, MASK)),
        (None, "new", (None, OTHER)),
        ("old", None, (OTHER, None)),
    ],
)
def test_a_secret_that_changes_is_told_from_one_that_stays(before: Any, after: Any, wanted: tuple[Any, Any]) -> None:
    one = change("a.b", "update", {"secret": before}, {"secret": after}, secret={"secret": True})
    told = cleaned(plan(one))["resource_changes"][0]["change"]
    shown = (told["before"]["secret"], told["after"]["secret"])
    assert shown == tuple(MASK if text and before != after and side == 0 else text for side, text in enumerate(wanted))


def test_what_is_sensitive_on_one_side_only_is_masked_on_both() -> None:
    one = change("a.b", "update", {"v": "was plain and secret"}, {"v": "becomes secret"})
    one["change"]["after_sensitive"] = {"v": True}
    assert "secret and" not in json.dumps(cleaned(plan(one)))
    assert cleaned(plan(one))["resource_changes"][0]["change"]["before"]["v"] == MASK


def test_short_secrets_are_masked_where_they_are_marked_and_hide_no_words() -> None:
    one = change(
        "a.b", "update", {"pin": "1234", "year": "1234"}, {"pin": "4321", "year": "1234"}, secret={"pin": True}
    )
    after = cleaned(plan(one))["resource_changes"][0]["change"]["after"]
    assert after == {"pin": OTHER, "year": "1234"}


def test_a_whole_block_that_is_sensitive_is_masked_as_one() -> None:
    one = change("a.b", "create", None, {"credentials": [{"key": "K", "secret": SECRET}]}, secret={"credentials": True})
    assert cleaned(plan(one))["resource_changes"][0]["change"]["after"]["credentials"] == OTHER


def test_parts_of_a_secret_json_text_are_secrets_too() -> None:
    stored = json.dumps({"kafka_secret": SECRET, "n": 1})
    one = change(
        "a.b", "create", None, {"secret_string": stored, "note": f"it is {SECRET}"}, secret={"secret_string": True}
    )
    after = cleaned(plan(one))["resource_changes"][0]["change"]["after"]
    assert after == {"secret_string": OTHER, "note": f"it is {MASK}"}


def test_terraforms_own_words_lose_the_secrets_of_their_plan() -> None:
    assert hidden(f"bad value {SECRET}", everywhere(SECRET)) == f"bad value {MASK}"


def test_what_one_stack_marks_is_hidden_in_the_others() -> None:
    marked = plan(change("confluent_api_key.k", "create", None, {"secret": SECRET}, secret={"secret": True}))
    other = plan(change("aws_s3_bucket.b", "delete", {"bucket": SECRET}))
    assert CORE not in repr(reviewed(marked, other))


def test_what_stacks_hand_to_each_other_is_not_secret_for_that() -> None:
    """CDKTF marks all of it, the key's ARN too, which stands in every policy."""
    arn = "arn:aws:kms:eu-central-1:123456789012:key/1111"
    output = {"actions": ["no-op"], "before": arn, "after": arn, "before_sensitive": True, "after_sensitive": True}
    made = plan(change("aws_s3_bucket.b", "update", {"key": "x"}, {"key": arn}))
    made["output_changes"] = {"cross-stack-output-aws_kms_keyarn": output}
    assert cleaned(made)["resource_changes"][0]["change"]["after"] == {"key": arn}
    made["output_changes"] = {"password": output}
    assert cleaned(made)["resource_changes"][0]["change"]["after"] == {"key": MASK}


# ── Any plan ────────────────────────────────────────────────────────────────────────────────────
words = st.text(alphabet=st.characters(exclude_categories=()), max_size=12)
secret_texts = words.map(lambda text: f"{text}{CORE}-0123{text}")
leaves = st.none() | st.booleans() | st.integers() | words


def holding(secret: str) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves | words.map(lambda text: f"{text}{secret}{text}"),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
        max_leaves=8,
    )


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    """Plans of any resources with any values, one of them a secret that also stands where it is not marked."""
    secret = draw(secret_texts)
    kinds = st.sampled_from(
        ["aws_s3_bucket", "confluent_kafka_topic", "aws_kms_key", "confluent_schema", "null_resource"]
    )
    changes = [change("confluent_api_key.k", "create", None, {"secret": secret}, secret={"secret": True})]
    for number in range(draw(st.integers(1, 3))):
        before, after = (draw(st.none() | st.dictionaries(words, holding(secret), max_size=4)) for _ in range(2))
        verb = draw(st.sampled_from(["create", "update", "delete", "replace", "forget", "stay"]))
        unknown = draw(st.dictionaries(words, st.just(True), max_size=2))
        changes.append(change(f"{draw(kinds)}.n{number}", verb, before, after, unknown=unknown, forced=[[draw(words)]]))
    return plan(*changes, resource_drift=changes[1:])


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(plans())
def test_no_plan_makes_a_review_raise_or_tell_a_secret(made: dict[str, Any]) -> None:
    review = reviewed(made)
    assert CORE not in markdown(review)
    assert CORE not in "".join(texts(review.form.content))

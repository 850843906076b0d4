"""What becomes of data when patterns of topics change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from frazil.declaration import Spark, TopicPattern, canonical, each_topic
from frazil.declaration.checks.change_effects import Outcome
from frazil.declaration.documents.document import document
from policies.review.data_effects.effects import Effect
from policies.review.data_effects.pattern_effects import pattern_effects
from policies.review.markdown.page import markdown
from policies.review.plan.plan_gaps import StackPlan
from policies.review.prices import price_table
from policies.review.review import Review, review
from tests.policies.review.planning import change, plan
from tests.policies.reviewing import TODAY

SHOP = each_topic(
    r"shop\..*", table="shop.{topic}", value="text", exclude=r".*\.raw", most=50, engine=Spark(group="shop")
)


def only(before: TopicPattern, after: TopicPattern) -> Effect:
    [effect] = pattern_effects([before], [after])
    return effect


def test_a_new_pattern_says_what_it_lands() -> None:
    assert not [*pattern_effects([SHOP], [SHOP])]
    [effect] = pattern_effects([], [SHOP])
    assert (effect.pipeline, effect.table, effect.outcome) == (SHOP.match, "shop.{topic}", Outcome.MADE)
    assert effect.what.endswith(r"without another deployment: at most 50, of the group shop, without .*\.raw")
    assert not effect.is_dangerous
    [effect] = pattern_effects([], [each_topic(r"a\..*", table="a.{topic}", value="text")])
    assert effect.what.endswith("at most 100, without a group")


def test_a_pattern_that_goes_or_has_another_text_leaves_tables_behind() -> None:
    [effect] = pattern_effects([SHOP], [])
    assert (effect.outcome, effect.is_dangerous) == (Outcome.LEFT, True)
    made, left = pattern_effects([SHOP], [replace(SHOP, match=r"shop\.eu\..*")])
    assert (made.outcome, left.outcome) == (Outcome.MADE, Outcome.LEFT)


@pytest.mark.parametrize(
    ("after", "changed", "is_dangerous"),
    [
        (replace(SHOP, exclude=None), ("exclude", r".*\.raw", "nothing"), False),
        (replace(SHOP, exclude="x"), ("exclude", r".*\.raw", "x"), True),
        (replace(SHOP, most=60), ("most", "50", "60"), False),
        (replace(SHOP, most=40), ("most", "50", "40"), True),
        (replace(SHOP, table="shop.all_{topic}"), ("table", "shop.{topic}", "shop.all_{topic}"), True),
    ],
)
def test_fewer_topics_are_a_danger_and_more_are_none(
    after: TopicPattern, changed: tuple[str, str, str], is_dangerous: bool
) -> None:
    effect = only(SHOP, after)
    assert (effect.changed, effect.before, effect.after) == changed
    assert (effect.is_dangerous, effect.outcome) == (is_dangerous, Outcome.LEFT if is_dangerous else Outcome.MADE)


def test_a_change_of_what_topics_share_is_that_of_a_pipeline() -> None:
    moved = replace(SHOP, pipeline=replace(SHOP.pipeline, engine=Spark(group="other")))
    effect = only(SHOP, moved)
    assert (effect.pipeline, effect.changed, effect.before, effect.after) == (
        SHOP.match,
        "engine.group",
        "shop",
        "other",
    )
    elsewhere = each_topic(
        SHOP.match, table="pay.{topic}", value="text", exclude=SHOP.exclude, most=50, engine=Spark(group="shop")
    )
    assert only(SHOP, elsewhere).changed == "table", "said once"


def reviewed(*patterns: TopicPattern, topics: list[str] | None = None) -> Review:
    content = canonical(document([], patterns)).decode()
    key = {"bucket": "frazil-dev-artifacts", "key": "documents/a.json"}
    made = change("aws_s3_object.pipelines", "create", None, {**key, "content": content})
    return review(
        "dev", [StackPlan(name="ingestion", plan=plan(made))], prices=price_table(), today=TODAY, topics=topics
    )


def test_the_page_of_a_review_has_the_pattern() -> None:
    page = markdown(reviewed(SHOP))
    assert "shop.{topic}" in page
    assert "at most 50, of the group shop" in page
    assert "at most" not in markdown(reviewed())


def test_topics_that_match_today_are_noted_and_are_no_part_of_the_digest() -> None:
    names = [f"shop.{number}" for number in range(7)]
    found = reviewed(SHOP, topics=[*names, "shop.a.raw", "other"])
    assert found.notes == (r"shop\..* matches 7 topics that exist: shop.0, shop.1, shop.2, shop.3, shop.4 and 2 more",)
    assert found.form.digest == reviewed(SHOP).form.digest
    assert reviewed(SHOP, topics=[]).notes == (r"shop\..* matches 0 topics that exist",)
    assert reviewed(SHOP).notes == reviewed(topics=names).notes == ()

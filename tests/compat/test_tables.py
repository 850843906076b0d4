"""Tables that release 0.1.0 wrote are read and continued: each record once, proven."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from frazil.audit.finding import Flaw
from frazil.audit.verification import Verification
from frazil.audit.verify import verify
from frazil.clients.secrets import Secrets
from frazil.declaration.environment import Environment
from frazil.errors import DecisionRequired
from frazil.lake.read.stored_tables import Lake
from frazil.local.services import LocalServices
from frazil.recovery.apply import accept
from frazil.recovery.decisions import Accepted
from frazil.recovery.recount import recount
from tests.compat.restore import Case
from tests.support.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
BAD = [b"", b"\x01bad"]
Restore = Callable[[str], Shop]


@pytest.fixture(params=["lake_environment", pytest.param("glue_lake", marks=pytest.mark.long)])
def restored(request: pytest.FixtureRequest, local_world: LocalServices, spark: SparkSession) -> Iterator[Restore]:
    """Restores a case of 0.1.0 into a lake; its topic goes afterwards."""
    lake: Environment = request.getfixturevalue(request.param)
    made: list[Shop] = []

    def restore(name: str) -> Shop:
        made.append(Case.of("0.1.0", name).restored(local_world, spark, lake))
        return made[-1]

    yield restore
    for shop in made:
        shop.delete()


def proof(shop: Shop) -> Verification:
    return verify(shop.pipeline, Lake(shop.environment, Secrets({}).read), deep=True, wait=lambda seconds: None)


def continued(shop: Shop) -> None:
    """Five more records and two more dead letters land; all records are there once, and that is proven."""
    shop.produce([*shop.orders(5, shop.register(), first=500), *BAD])
    shop.drain()
    shop.assert_each_record_once()
    found = proof(shop)
    assert found.outcome == "proven", found.findings


def test_a_table_with_rows_and_dead_letters_is_continued(restored: Restore) -> None:
    shop = restored("landed")
    before = proof(shop)
    assert before.outcome == "proven", before.findings
    assert (len(shop.landed()), len(shop.dead())) == (12, 4)
    continued(shop)


@pytest.mark.long
def test_a_decision_that_was_open_is_finished_once(restored: Restore) -> None:
    shop = restored("open_decision")
    assert (len(shop.landed()), len(shop.dead())) == (12, 2)
    assert shop.drain().read == 0
    assert (len(shop.landed()), len(shop.dead())) == (12, 4)
    assert shop.drain().read == 0
    continued(shop)


@pytest.mark.long
def test_wrong_numbers_of_gaps_are_reported_and_corrected_by_the_operators_word(restored: Restore) -> None:
    shop = restored("wrong_gaps")
    before = proof(shop)
    assert {f.flaw for f in before.findings} == {Flaw.MISCOUNTED, Flaw.EXCESS}
    assert "counts-recount --reason" in str([str(f) for f in before.findings])
    lake = Lake(shop.environment, Secrets({}).read)
    assert recount(shop.pipeline, lake, "as the test says", shop.job()).fewer == {0: 6}
    continued(shop)


def accepted(shop: Shop, event: Accepted) -> None:
    accept(shop.pipeline, event, "as the test says", shop.job())


@pytest.mark.long
def test_a_replay_that_was_half_accepted_is_accepted_again_and_lands_each_record_once(restored: Restore) -> None:
    shop = restored("half_accepted_replay")
    with pytest.raises(DecisionRequired):
        shop.drain()
    accepted(shop, Accepted.ROLLED_BACK_REPLAY)
    assert shop.drain().read == 6
    continued(shop)


@pytest.mark.long
def test_a_new_topic_that_was_half_accepted_is_accepted_again_and_landed_once(restored: Restore) -> None:
    shop = restored("half_accepted_recreated")
    with pytest.raises(DecisionRequired):
        shop.drain()
    accepted(shop, Accepted.TOPIC_RECREATED)
    assert shop.drain().read == 7
    assert (len(shop.landed()), len(shop.dead())) == (12 + 5, 6 + 2)
    found = proof(shop)
    assert found.outcome == "proven", found.findings


@pytest.mark.long
def test_dead_letters_without_their_tag_are_continued(restored: Restore) -> None:
    continued(restored("side_without_tag"))

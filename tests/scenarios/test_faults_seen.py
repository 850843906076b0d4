"""Each fault is seen: in the state of `status`, on the page, in a metric, and by an alarm that is raised, and no other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from frazil.audit.files.proofs import ProofFolder
from frazil.clients.secrets import Secrets
from frazil.declaration.environment import Kafka as KafkaSettings
from frazil.metrics.metric_registry import LAST_LOOK, Kind
from frazil.page.facts import Facts
from frazil.page.rendering import Choice, Rendering
from frazil.status.pipeline_status import State
from tests.metrics.test_alarms import MINUTES, evaluated
from tests.scenarios.test_follow import Flaky
from tests.scenarios.test_metrics import samples
from tests.support.shop import Shop
from tests.support.variants import first_short

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


def caught_up(shop: Shop) -> None:
    """Nothing is wrong."""


def rejected(shop: Shop) -> None:
    """A record is not of its schema."""
    shop.produce([b"broken"])


def recreated(shop: Shop) -> None:
    """The topic was deleted and created again."""
    shop.new_topic(2)
    shop.produce(shop.orders(3, shop.register()))


def rolled_back(shop: Shop) -> None:
    """The table was set back to an earlier snapshot."""
    shop.roll_back()


@dataclass(frozen=True)
class Seen:
    """How a fault is seen: the state, a text of the page, a metric, and the alarms."""

    fault: Callable[[Shop], None]
    state: State
    page: str
    metric: str
    alarms: tuple[str, ...]
    is_away: bool = False
    """True if the broker does not answer."""


FAULTS = (
    Seen(caught_up, State.CAUGHT_UP, "caught up", "pipeline_state finished", ()),
    Seen(rejected, State.CAUGHT_UP, "wrong_magic", "records_rejected_total wrong_magic", ("FrazilDeadLetters",)),
    Seen(recreated, State.STOPPED, "frazil accept", "pipeline_state suspended", ("FrazilSuspended",)),
    Seen(
        caught_up,
        State.UNKNOWN,
        "The local broker 127.0.0.1:1 does not run",
        "pipeline_state retrying",
        ("FrazilServiceUnavailable",),
        is_away=True,
    ),
    Seen(rolled_back, State.STOPPED, "frazil accept", "pipeline_state suspended", ("FrazilSuspended",)),
)


def series_of(shop: Shop) -> list[dict[str, str]]:
    """Return the samples of the run as series of three hours; its counters begin in the last minutes."""
    found = []
    for sample in samples(shop):
        metric, labels = sample.metric, dict(zip(sample.metric.all_labels, sample.labels, strict=True))
        values = f"_x175 {sample.value:g}x4" if metric.kind is Kind.COUNTER else f"{sample.value:g}x{MINUTES}"
        if metric is LAST_LOOK:
            values = f"0+60x{MINUTES}"  # promtool's clock begins at 0
        named = ", ".join(f'{name}="{value}"' for name, value in labels.items())
        found.append({"series": f'{metric.name}{{{named}, instance="a:1"}}', "values": values})
    return found


@pytest.mark.parametrize(
    "seen", first_short(FAULTS, short=3), ids=lambda seen: "no_broker" if seen.is_away else seen.fault.__name__
)
def test_a_fault_is_seen_everywhere(seen: Seen, shop: Shop, tmp_path: Path) -> None:
    for first in (0, 10):
        shop.produce(shop.orders(10, shop.register(), first=first))
        shop.drain()
    seen.fault(shop)
    broker, place = Flaky(shop.job().kafka), shop.environment
    if seen.is_away:
        broker.is_away, place = True, replace(place, kafka=KafkaSettings(bootstrap="127.0.0.1:1"))
    shop.ended(kafka=broker)
    found = {" ".join((s.metric.name.removeprefix("frazil_"), *s.labels[3:])): s.value for s in samples(shop)}
    assert found[seen.metric] == 1
    assert evaluated(tmp_path, {"fault": (series_of(shop), set(seen.alarms))}).returncode == 0
    name = shop.pipeline.name
    facts = Facts(place, "local", Secrets({}), lambda _: [shop.pipeline], ProofFolder(tmp_path / "proofs"))
    (row,) = facts.overview().rows
    assert row.state is seen.state
    rendering = Rendering("local", Secrets({}).redactor)
    assert seen.page in rendering.pipeline(facts.detail(name), 0.0)
    assert name in rendering.overview(facts.overview(), age=0.0, chosen=Choice(state=seen.state.value))

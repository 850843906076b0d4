"""Dead letters of upsert tables land again: only what is the last record of its key changes the row."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from frazil.declaration import ErrorMode, Upsert
from frazil.errors import InvalidInput
from frazil.replay.open_letters import Wanted
from frazil.replay.replay import Replayed, replay
from tests.support.registry_server import RegistryServer
from tests.support.shop import Shop, ShopOf, avro, frame
from tests.support.state_replay import VERSIONED
from tests.support.variants import first_short

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
KEPT = {"on_error": ErrorMode.DEAD_LETTER, "max_rejected_percent": 100, "key_format": "text"}
SOFT = Upsert(on_tombstone="soft_delete")
ORDERED = Upsert(key="order_id", order_by="version")


def schema(number: int) -> dict[str, Any]:
    more = [{"name": f"note_{n}", "type": "string", "default": ""} for n in range(number)]
    return {**VERSIONED, "fields": [*VERSIONED["fields"], *more]}


@dataclass
class Keys:
    """A shop with a key of each order, and what the table must hold.

    A record is `good`, `early` (its schema is registered later), `bad` for ever, or a `delete`.
    """

    shop: Shop
    registry: RegistryServer
    is_ordered: bool = False
    known: int = 0
    version: int = 0
    last: dict[int, tuple[str, str | None]] = field(default_factory=dict)
    landed: dict[int, str | None] = field(default_factory=dict)
    newest: dict[int, tuple[int, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.repair()

    def repair(self) -> None:
        """Register the schema of the early records so far."""
        self.known = self.registry.store.register(f"{self.shop.topic}-value", json.dumps(schema(self.known)))

    def put(self, kind: str, key: int, version: int | None = None) -> str:
        self.version += 1
        version = self.version if version is None else version
        user = f"{kind}-{self.version}"
        place = {"partition": key % 2, "key": f"k{key}".encode()}
        if kind == "delete":
            self.shop.produce([None], **place)
        elif kind == "bad":
            self.shop.produce([b"\x07no frame"], **place)
        else:
            number = self.known - 1 + (kind == "early")
            more = {f"note_{n}": "n" for n in range(number)}
            value = avro(schema(number), {"order_id": key, "user": user, "version": version, **more})
            self.shop.produce([frame(number + 1, value)], **place)
            if version >= self.newest.get(key, (-1, ""))[0]:  # of equal ones, the later record
                self.newest[key] = version, user
        self.last[key] = kind, None if kind in ("delete", "bad") else user
        if kind in ("good", "delete"):
            self.landed[key] = self.last[key][1]
        return user

    def drain(self) -> None:
        self.shop.drain(registry=self.shop.registry(self.registry.url))

    def replay(self, wanted: Wanted = Wanted(), **options: Any) -> Replayed:  # noqa: B008 # frozen
        of_job = {name: options.pop(name) for name in ("failpoint", "run") if name in options}
        registry = self.shop.registry(self.registry.url)
        return replay(self.shop.pipeline, self.shop.job(**of_job), registry, wanted, **options)

    def repaired(self, **options: Any) -> Replayed:
        """Register the schema, and replay; the last records of keys have landed then."""
        self.repair()
        done = self.replay(**options)
        for key, (kind, user) in self.last.items():
            if kind == "early":
                self.landed[key] = user
        return done

    def users(self) -> dict[int, str]:
        rows = [row for row in self.shop.landed() if not row.get("_deleted_at")]
        return {row["order_id"]: row["user"] for row in rows}

    def check(self) -> None:
        expected: Mapping[int, str | None] = self.landed
        if self.is_ordered:
            expected = {key: user for key, (_, user) in self.newest.items()}
        assert self.users() == {key: user for key, user in expected.items() if user is not None}
        self.shop.assert_proven()

    def outcomes(self) -> dict[int, str | None]:
        """Return the outcome of each dead letter, by partition and offset, in order."""
        return {(row["partition"], row["offset"]): row["outcome"] for row in self.shop.dead()}


@pytest.fixture
def keys(shop_of: ShopOf, registry: RegistryServer, request: pytest.FixtureRequest) -> Keys:
    write = getattr(request, "param", Upsert())
    return Keys(shop_of(**KEPT, write=write), registry, is_ordered=bool(write.order_columns))


@pytest.mark.parametrize("keys", first_short([Upsert(), SOFT]), indirect=True)
def test_the_last_dead_letter_of_a_stale_key_lands_and_others_are_superseded(keys: Keys) -> None:
    for key in range(6):
        keys.put("good", key)
    keys.drain()
    keys.put("early", 0)
    keys.put("early", 1)
    keys.put("good", 1)
    keys.put("early", 2)
    keys.put("early", 2)
    keys.put("early", 3)
    keys.put("delete", 3)
    keys.put("early", 4)
    keys.put("bad", 4)
    keys.put("early", 9)
    keys.drain()
    assert keys.replay(is_dry=True).outcomes == {}
    done = keys.repaired()
    assert done.outcomes == {"recovered": 3, "superseded": 4}
    assert sum(done.failed.values()) == 1
    keys.check()
    stale = keys.shop.entry().stale_keys
    assert stale is not None
    assert stale.keys == 1
    assert keys.replay().outcomes == {}


@pytest.mark.parametrize("keys", [ORDERED], indirect=True, ids=["ordered"])
def test_the_order_decides_whether_a_dead_letter_changes_the_row(keys: Keys) -> None:
    keys.put("good", 0, 10)
    keys.put("good", 1, 20)
    keys.drain()
    keys.put("early", 0, 15)
    keys.put("early", 1, 15)
    keys.put("early", 2, 5)
    keys.put("early", 2, 4)
    keys.drain()
    keys.put("good", 0, 12)
    keys.drain()
    done = keys.repaired()
    assert done.outcomes == {"recovered": 2, "superseded": 2}
    keys.check()
    keys.put("good", 2, 3)
    keys.drain()
    keys.check()


@pytest.mark.parametrize("keys", first_short([Upsert(), ORDERED]), indirect=True)
@pytest.mark.parametrize(
    "step", first_short(["publish.decided", "replay.judged", "stage.written", "replay.staged", "publish.filled"])
)
def test_a_later_record_of_the_key_that_lands_during_a_replay_wins(keys: Keys, step: str) -> None:
    keys.put("good", 0)
    keys.put("early", 0)
    keys.put("early", 1)
    keys.drain()
    began = []

    def land(at: str) -> None:
        if at == step and not began:
            began.append(at)
            keys.put("good", 0)
            keys.drain()

    keys.repair()
    keys.replay(failpoint=land)
    assert began
    keys.landed[1] = keys.last[1][1]
    keys.check()


@pytest.mark.parametrize("keys", [Upsert(key="order_id")], indirect=True, ids=["of_value"])
def test_a_key_that_could_not_be_read_is_decided_by_its_row(keys: Keys) -> None:
    """The key is in the value, which could not be decoded: no set says whether a later record of the key landed."""
    for key in range(4):
        keys.put("good", key)
    keys.drain()
    keys.put("early", 0)
    keys.put("early", 1)
    keys.put("early", 1)
    keys.put("early", 2)
    keys.put("good", 2)
    keys.put("early", 9)
    keys.put("bad", 3)
    keys.drain()
    done = keys.repaired()
    assert done.outcomes == {"recovered": 2, "superseded": 2}
    assert done.failed == {("unknown_schema", "order_unknown"): 1, ("wrong_magic", "wrong_magic"): 1}
    del keys.landed[9]
    keys.landed[3] = next(user for user in keys.users().values() if user == "good-4")
    keys.check()
    stale = keys.shop.entry().stale_keys
    assert stale is not None
    assert (stale.keys, stale.unknown) == (0, 4)
    keys.put("good", 9)
    keys.drain()
    assert keys.replay().outcomes == {"superseded": 1}
    keys.check()


def test_a_lost_set_of_stale_keys_refuses(keys: Keys) -> None:
    keys.put("good", 0)
    keys.put("early", 0)
    keys.drain()
    stale = keys.shop.entry().stale_keys
    assert stale is not None
    Path(urlsplit(stale.file).path).unlink()
    keys.repair()
    with pytest.raises(InvalidInput, match="set of stale keys is not known"):
        keys.replay()
    keys.check()


@pytest.mark.long
@pytest.mark.parametrize("keys", [Upsert(), SOFT, ORDERED], indirect=True, ids=["hard", "soft", "ordered"])
@pytest.mark.parametrize("seed", range(3))
def test_any_records_and_any_replays_end_as_if_the_schemas_had_been_there(keys: Keys, seed: int) -> None:
    dice = random.Random(seed)
    kinds = ["good"] * 3 + ["early"] * 4 + ["bad"] + ([] if keys.is_ordered else ["delete"])
    for _ in range(4):
        for _ in range(dice.randrange(1, 4)):
            for _ in range(dice.randrange(1, 9)):
                keys.put(dice.choice(kinds), dice.randrange(5), dice.randrange(40) if keys.is_ordered else None)
            keys.drain()
        keys.repaired(most=dice.choice([1, 2, 50]))
        keys.check()

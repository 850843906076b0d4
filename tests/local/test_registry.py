import json
import urllib.error

import pytest

from frazil.local.services import LocalServices

from .registry_requests import asked, record

pytestmark = pytest.mark.e2e


def test_a_registered_schema_is_had_by_its_id(whole_world: LocalServices) -> None:
    schema = record("a")
    schema_id = asked(whole_world, "POST", "/subjects/fetched-value/versions", schema)["id"]
    assert json.loads(asked(whole_world, "GET", f"/schemas/ids/{schema_id}")["schema"]) == json.loads(schema["schema"])


def test_registering_again_gives_the_same_id(whole_world: LocalServices) -> None:
    first = asked(whole_world, "POST", "/subjects/again-value/versions", record("a"))
    assert asked(whole_world, "POST", "/subjects/again-value/versions", record("a")) == first


def test_the_level_of_compatibility_that_was_asked_for_is_enforced(whole_world: LocalServices) -> None:
    assert asked(whole_world, "GET", "/config") == {"compatibilityLevel": "BACKWARD"}
    asked(whole_world, "POST", "/subjects/checked-value/versions", record("a"))
    with pytest.raises(urllib.error.HTTPError, match="409"):
        asked(whole_world, "POST", "/subjects/checked-value/versions", record("a", "b_without_default"))

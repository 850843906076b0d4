from __future__ import annotations

import base64
import json
import threading
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.clients.secrets import Redactor

PLANTED = 'pl"an\\ted/sécret 4711'


def knowing(*values: str) -> Redactor:
    redactor = Redactor()
    for value in values:
        redactor.add(value)
    return redactor


@pytest.mark.parametrize(
    "form",
    [
        PLANTED,
        json.dumps(PLANTED),
        json.dumps(PLANTED, ensure_ascii=False),
        repr(PLANTED),
        quote(PLANTED, safe=""),
        base64.b64encode(PLANTED.encode()).decode(),
        f'password="{PLANTED.replace(chr(92), chr(92) * 2).replace(chr(34), chr(92) + chr(34))}";',
    ],
)
def test_a_value_is_masked_in_every_form_it_takes(form: str) -> None:
    redacted = knowing(PLANTED).redact(f"before {form} after")
    assert "4711" not in redacted
    assert base64.b64encode(b"sec")[:3].decode() not in redacted.replace("[redacted]", "")
    assert redacted.startswith("before ")
    assert redacted.endswith(" after")


def test_a_value_that_is_part_of_another_leaves_no_rest() -> None:
    assert knowing("secret", "secret-and-more").redact("secret-and-more, secret") == "[redacted], [redacted]"


def test_a_keys_lines_are_masked_alone_and_its_frame_is_not() -> None:
    line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
    redactor = knowing(f"-----BEGIN PRIVATE KEY-----\n{line}\n{line[::-1]}\nabc\n-----END PRIVATE KEY-----\n")
    assert redactor.redact(f"at {line}\n-----BEGIN PRIVATE KEY-----") == "at [redacted]\n-----BEGIN PRIVATE KEY-----"


@pytest.mark.parametrize("value", ["", "a", "ab"])
def test_values_too_short_to_hide_leave_texts_alone(value: str) -> None:
    assert knowing(value).redact("a table about abbeys") == "a table about abbeys"


def test_a_value_is_masked_inside_a_jaas_line_inside_a_repr_inside_json() -> None:
    jaas = PLANTED.replace("\\", "\\\\").replace('"', '\\"')
    line = json.dumps({"error": repr({"kafka.sasl.jaas.config": f'password="{jaas}";'})})
    assert "4711" not in knowing(PLANTED).redact(line)


def test_threads_may_add_at_once() -> None:
    redactor = Redactor()
    values = [f"secret-number-{number}-end" for number in range(50)]
    threads = [threading.Thread(target=redactor.add, args=(value,)) for value in values]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(redactor.redact(" ".join(values)).split(" ")) == {"[redacted]"}


@given(st.text(min_size=3), st.text(), st.text())
def test_no_text_shows_a_known_value(value: str, before: str, after: str) -> None:
    redacted = knowing(value).redact(before + value + after)
    assert value not in redacted or value in "[redacted]" or value in (before + after + "[redacted]" + before)


def test_a_value_that_is_removed_is_shown_again_and_others_stay_masked() -> None:
    redactor = knowing("expired-token", "expired-token-2", PLANTED)
    redactor.remove("expired-token")
    redactor.remove("never-known")
    assert redactor.redact(f"expired-token expired-token-2 {PLANTED}") == "expired-token [redacted] [redacted]"

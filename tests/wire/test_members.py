"""Members, decoded."""

import pytest

from streamapp.wire.errors import UndecodableError
from streamapp.wire.members import DecodedMember, RawMember, decode_member
from tests.wire.captures import captured


def group() -> list[DecodedMember]:
    return [decode_member(raw) for raw in captured("4.2.1-standbys")]


def a_raw_member(client_host: str = "/10.1.2.3", metadata: bytes = b"") -> RawMember:
    return RawMember("id", None, "client", client_host, metadata, b"")


def test_a_member_outside_a_stable_group_has_nothing_to_decode() -> None:
    assert decode_member(a_raw_member()) == DecodedMember("id", None, "client", "10.1.2.3", None, None)


@pytest.mark.parametrize(
    ("shown", "address"),
    [
        ("/10.1.2.3", "10.1.2.3"),
        ("pod-0.app.ns.svc/10.1.2.3", "10.1.2.3"),
        ("/0:0:0:0:0:0:0:1", "::1"),
        ("/fd00:10:244:0:0:0:0:5", "fd00:10:244::5"),
        ("a-name", "a-name"),
    ],
)
def test_javas_form_of_an_address_becomes_kubernetes_form(shown: str, address: str) -> None:
    assert decode_member(a_raw_member(client_host=shown)).host == address


def test_an_undecodable_member_is_named() -> None:
    with pytest.raises(UndecodableError) as caught:
        decode_member(a_raw_member(metadata=b"\0\3\0\0\0\1\0\4in"))
    assert caught.value == UndecodableError(
        what="member id: ConsumerProtocolSubscription",
        where="topics[0].name at byte 8",
        version=3,
        why="length 4 needs at least 4 bytes, 2 left",
    )
    assert str(caught.value).startswith("member id: ConsumerProtocolSubscription (version 3): topics[0].name at byte 8")


def test_a_plain_consumers_metadata_is_no_streams_subscription() -> None:
    metadata = b"\0\1" + b"\0\0\0\1\0\2in" + b"\xff\xff\xff\xff" + bytes(4)
    with pytest.raises(UndecodableError, match="userData at byte 14: null where bytes must be"):
        decode_member(a_raw_member(metadata=metadata))

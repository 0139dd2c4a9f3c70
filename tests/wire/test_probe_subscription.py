"""The probe member's subscription: a real process's identity, and no claim at all."""

from hypothesis import given, settings

from streamapp.wire.members import decode_member
from streamapp.wire.probe_subscription import encode_probe_subscription
from streamapp.wire.subscription import DecodedSubscription, SubscriptionInfo, decode_subscription
from tests.wire.captures import NAMES, captured
from tests.wire.strategies import subscriptions


def probe_of(model: DecodedSubscription) -> DecodedSubscription:
    """What the group's leader would read: built field by field, so that a new one must be thought about."""
    info = model.info
    return DecodedSubscription(
        version=model.version,
        topics=model.topics,
        info=SubscriptionInfo(
            version=info.version,
            latest_supported_version=info.latest_supported_version,
            process_id=info.process_id,
            user_endpoint=info.user_endpoint,
            positions={},
            unique_field=0 if info.version >= 8 else None,
            error_code=0,
            client_tags=info.client_tags,
        ),
        owned_partitions=frozenset(),
        generation=None,
        rack=model.rack,
    )


@settings(deadline=None)
@given(subscriptions())
def test_a_probe_member_copies_the_process_and_claims_nothing(model: DecodedSubscription) -> None:
    assert decode_subscription(encode_probe_subscription(model)) == probe_of(model)


def test_a_probe_of_every_captured_release_decodes() -> None:
    for name in NAMES:
        for raw in captured(name):
            model = decode_member(raw).subscription
            assert model is not None
            assert decode_subscription(encode_probe_subscription(model)) == probe_of(model)

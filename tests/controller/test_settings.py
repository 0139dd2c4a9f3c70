"""Settings from the environment."""

from dataclasses import replace

import pytest

from streamapp.controller.settings import InvalidSettingError, Settings


def test_an_empty_environment_gives_the_defaults() -> None:
    assert Settings.from_environment({}) == Settings()


def test_an_operator_without_the_images_of_its_release_does_not_start() -> None:
    with pytest.raises(InvalidSettingError, match="STREAMAPP_SEED_IMAGE is empty: name the image of this release"):
        Settings().require_images()
    with pytest.raises(InvalidSettingError, match="STREAMAPP_AGENT_IMAGE is empty"):
        replace(Settings(), seed_image="registry.example/seed:1").require_images()
    replace(Settings(), seed_image="seed:1", agent_image="agent:1").require_images()


def test_every_kind_of_setting_is_read_and_others_of_the_prefix_mean_nothing() -> None:
    environment = {
        "STREAMAPP_NAMESPACES": " b, a,,a",
        "STREAMAPP_PORT": "0",
        "STREAMAPP_RESYNC_SECONDS": "5.5",
        "STREAMAPP_INSTANCE": "pod-1",
        "STREAMAPP_RECORD_AGE_SECONDS": "31536000",
        "STREAMAPP_OPERATOR_SERVICE_HOST": "10.0.0.1",
        "HOME": "/",
    }
    expected = replace(Settings(), namespaces=("a", "b"), port=0, resync_seconds=5.5, instance="pod-1")
    expected = replace(expected, record_age_seconds=31_536_000)
    assert Settings.from_environment(environment) == expected


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        (
            "STREAMAPP_PORT",
            "http",
            "STREAMAPP_PORT='http': invalid literal for int() with base 10: 'http'; the default is 8080",
        ),
        ("STREAMAPP_PORT", "70000", "STREAMAPP_PORT='70000': it must be a port, 0 for any; the default is 8080"),
        (
            "STREAMAPP_RECORD_BYTES",
            "1Gi",
            "STREAMAPP_RECORD_BYTES='1Gi': invalid literal for int() with base 10: '1Gi'; the default is 1073741824",
        ),
        (
            "STREAMAPP_RECORD_BYTES",
            "0",
            "STREAMAPP_RECORD_BYTES='0': it must be a whole number of more than 0; the default is 1073741824",
        ),
        (
            "STREAMAPP_POLL_IDLE_SECONDS",
            "0",
            "STREAMAPP_POLL_IDLE_SECONDS='0': it must be more than 0 and less than a day of seconds; the default is "
            "10.0",
        ),
    ],
)
def test_a_setting_that_cannot_be_used_is_named_with_its_default(name: str, text: str, sentence: str) -> None:
    with pytest.raises(InvalidSettingError) as raised:
        Settings.from_environment({name: text})
    assert str(raised.value) == sentence


@pytest.mark.parametrize(("text", "most"), [("0", 0), ("3", 3), ("100000", 100_000)])
def test_the_budget_of_learners_can_be_without_a_limit(text: str, most: int) -> None:
    assert Settings.from_environment({"STREAMAPP_RESTORES_PER_CLUSTER": text}).restores_per_cluster == most


@pytest.mark.parametrize("text", ["-1", "100001", "1.5", "many"])
def test_a_budget_of_learners_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(InvalidSettingError, match="STREAMAPP_RESTORES_PER_CLUSTER"):
        Settings.from_environment({"STREAMAPP_RESTORES_PER_CLUSTER": text})

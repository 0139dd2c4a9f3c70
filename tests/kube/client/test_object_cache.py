"""What the cache of the shared watches keeps, and when it says that it knows nothing."""

from typing import Any

from streamapp.kube.client.kinds import CLAIMS, PODS, STATEFUL_SETS, STREAM_APPS, Key
from streamapp.kube.client.object_cache import CURRENT_SECONDS, ObjectCache
from streamapp.kube.objects.trimmed import TRIMS

Json = dict[str, Any]
KEY = Key("demo", "counter")


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def an_object(name: str, version: int, app: str = "counter", namespace: str = "demo", **parts: Any) -> Json:
    metadata = {"name": name, "namespace": namespace, "uid": name, "resourceVersion": str(version)}
    return {"metadata": {**metadata, "labels": {"streamapp.dev/app": app} if app else {}}, **parts}


def a_cache(*namespaces: str | None) -> tuple[ObjectCache, Clock]:
    clock = Clock()
    return ObjectCache(clock, namespaces or (None,)), clock


def names(cache: ObjectCache, key: Key = KEY) -> list[str]:
    return [one["metadata"]["name"] for one in cache.of_app(PODS, key)]


def test_objects_are_found_by_name_and_by_their_streamapp() -> None:
    cache, _ = a_cache()
    cache.replace(PODS, None, [an_object("a-0", 3), an_object("b-0", 4, "other")], "5")
    assert names(cache) == ["a-0"]
    found = cache.find(PODS, "demo", "b-0")
    assert found is not None
    assert found["metadata"]["uid"] == "b-0"
    assert cache.find(STATEFUL_SETS, "demo", "b-0") is None


def test_an_older_version_replaces_no_newer_one() -> None:
    cache, _ = a_cache()
    assert cache.put(PODS, an_object("a-0", 7, state="new"))
    assert not cache.put(PODS, an_object("a-0", 6, state="old"))
    cache.replace(PODS, None, [an_object("a-0", 6, state="old")], "6")
    found = cache.find(PODS, "demo", "a-0")
    assert found is not None
    assert found["state"] == "new"


def test_a_list_tells_what_is_gone_and_whose_it_was() -> None:
    cache, _ = a_cache()
    cache.replace(PODS, None, [an_object("a-0", 3), an_object("a-1", 4)], "5")
    assert cache.replace(PODS, None, [an_object("a-0", 3)], "6") == [KEY]
    assert names(cache) == ["a-0"]
    assert cache.replace(PODS, None, [an_object("a-0", 3)], "7") == []


def test_a_list_takes_nothing_away_that_was_made_after_it() -> None:
    cache, _ = a_cache()
    cache.learn(PODS, an_object("a-1", 9))
    cache.replace(PODS, None, [], "8")
    assert names(cache) == ["a-1"]


def test_a_list_of_one_namespace_says_nothing_of_another() -> None:
    cache, _ = a_cache("demo", "other")
    cache.replace(PODS, "demo", [an_object("a-0", 3)], "5")
    cache.replace(PODS, "other", [], "6")
    assert names(cache) == ["a-0"]


def test_a_live_read_brings_nothing_back_that_the_watch_has_seen_go() -> None:
    cache, _ = a_cache()
    cache.replace(PODS, None, [an_object("a-0", 3)], "5")
    cache.remove(PODS, an_object("a-0", 6))
    cache.heard(PODS, None, "6")
    cache.learn(PODS, an_object("a-0", 3))
    assert names(cache) == []
    cache.learn(PODS, an_object("a-0", 8))
    assert names(cache) == ["a-0"]


def test_a_late_deletion_does_not_take_the_next_object_of_that_name() -> None:
    cache, _ = a_cache()
    cache.put(PODS, an_object("a-0", 9))
    cache.remove(PODS, an_object("a-0", 8))
    assert names(cache) == ["a-0"]


def test_a_label_that_changes_moves_the_object() -> None:
    cache, _ = a_cache()
    cache.put(CLAIMS, an_object("state-a-0", 3, ""))
    cache.put(CLAIMS, an_object("state-a-0", 4))
    assert [one["metadata"]["name"] for one in cache.of_app(CLAIMS, KEY)] == ["state-a-0"]
    cache.put(CLAIMS, an_object("state-a-0", 5, "other"))
    assert cache.of_app(CLAIMS, KEY) == []


def test_it_is_current_for_as_long_as_every_watch_speaks() -> None:
    cache, clock = a_cache()
    assert not cache.is_current((PODS, STREAM_APPS), "demo")
    cache.replace(PODS, None, [], "1")
    assert not cache.is_current((PODS, STREAM_APPS), "demo")
    cache.replace(STREAM_APPS, None, [], "1")
    clock.seconds = CURRENT_SECONDS
    assert cache.is_current((PODS, STREAM_APPS), "demo")
    cache.heard(PODS, None, "2")
    clock.seconds += 1
    assert not cache.is_current((PODS, STREAM_APPS), "demo")
    assert cache.is_current((PODS,), "demo")


def test_a_namespace_of_its_own_watch_is_current_by_that_watch() -> None:
    cache, _ = a_cache("demo", "other")
    cache.replace(PODS, "demo", [], "1")
    assert (cache.is_current((PODS,), "demo"), cache.is_current((PODS,), "other")) == (True, False)


def test_of_a_pod_only_what_is_read_is_kept() -> None:
    cache = ObjectCache(Clock(), trims=dict(TRIMS))
    spec = {
        "nodeName": "node-1",
        "containers": [{"name": "app", "env": [{"name": "SECRET", "value": "x"}]}],
        "volumes": [{"name": "state", "persistentVolumeClaim": {"claimName": "state-a-0"}}, {"name": "tmp"}],
    }
    ran = {"name": "app", "containerID": "c", "restartCount": 1, "state": {}, "lastState": {}, "image": "i"}
    status = {"podIPs": [{"ip": "10.0.0.1"}], "hostIP": "10.9.9.9", "containerStatuses": [ran]}
    cache.put(PODS, an_object("a-0", 3, spec=spec, status=status))
    (kept,) = cache.of_app(PODS, KEY)
    assert kept["spec"] == {
        "containers": [{"name": "app"}],
        "initContainers": [],
        "nodeName": "node-1",
        "volumes": [{"name": "state", "persistentVolumeClaim": {"claimName": "state-a-0"}}],
    }
    assert kept["status"]["containerStatuses"] == [{name: ran[name] for name in ran if name != "image"}]
    assert "hostIP" not in kept["status"]


def test_of_a_claim_only_what_is_read_is_kept_whatever_its_owner_writes_on_it() -> None:
    cache = ObjectCache(Clock(), trims=dict(TRIMS))
    claim = an_object("state-a-0", 3, spec={"storageClassName": "fast"})
    known = {"streamapp.dev/process-id": "p", "streamapp.dev/application-id": "a"}
    claim["metadata"] |= {"annotations": {**known, "large": "x" * 200_000}, "finalizers": ["f" * 1000]}
    cache.put(CLAIMS, claim)
    found = cache.find(CLAIMS, "demo", "state-a-0")
    assert found is not None
    assert found["metadata"].pop("annotations") == known
    assert found["metadata"].keys() == {"name", "namespace", "uid", "resourceVersion", "labels"}
    assert (found["spec"], found["status"]) == ({"resources": {"requests": {}}}, {})


def test_a_list_in_parts_is_complete_when_it_ends() -> None:
    cache, _ = a_cache()
    cache.replace(PODS, None, [an_object(name, 3) for name in ("a-0", "a-1", "a-2")], "5")
    listed: set[Key] = set()
    assert cache.put_page(PODS, [an_object("a-0", 3), an_object("a-3", 6)], listed) == [KEY]
    assert names(cache) == ["a-0", "a-1", "a-2", "a-3"]
    assert cache.put_page(PODS, [an_object("a-1", 3)], listed) == []
    assert cache.end_list(PODS, None, listed, "7") == [KEY]
    assert names(cache) == ["a-0", "a-1", "a-3"]


def test_where_versions_are_no_numbers_nothing_is_current_and_every_event_is_news() -> None:
    cache, _ = a_cache()
    odd = an_object("a-0", 0, state="old")
    odd["metadata"]["resourceVersion"] = "v-one"
    cache.replace(PODS, None, [odd], "v-two")
    assert not cache.is_current((PODS,), "demo")
    assert cache.put(PODS, {**odd, "state": "new"})
    (found,) = cache.of_app(PODS, KEY)
    assert found["state"] == "new"


def test_a_list_older_than_what_was_told_begins_anew_in_its_own_scope_and_kind() -> None:
    cache, _ = a_cache("demo", "other")
    cache.replace(PODS, "demo", [an_object("a-0", 90), an_object("a-1", 91)], "100")
    cache.replace(PODS, "other", [an_object("b-0", 92, namespace="other")], "100")
    cache.replace(STATEFUL_SETS, "demo", [an_object("counter", 93)], "100")
    assert not cache.begin_list(PODS, "demo", "100")
    cache.replace(PODS, "demo", [an_object("a-0", 7)], "10")
    assert names(cache) == ["a-0"]
    found = cache.find(PODS, "demo", "a-0")
    assert found is not None
    assert found["metadata"]["resourceVersion"] == "7"
    assert cache.find(PODS, "other", "b-0") is not None
    assert cache.find(STATEFUL_SETS, "demo", "counter") is not None
    assert cache.is_current([PODS], "demo")


def test_what_is_in_doubt_is_not_current_until_something_is_heard() -> None:
    cache, _ = a_cache()
    cache.replace(PODS, None, [an_object("a-0", 3)], "5")
    cache.doubt(PODS, None)
    assert not cache.is_current([PODS], "demo")
    cache.heard(PODS, None, "6")
    assert cache.is_current([PODS], "demo")


def test_what_was_told_to_be_gone_since_the_last_list_is_not_brought_back_by_a_read() -> None:
    cache, _ = a_cache()
    app = {"metadata": {"name": "counter", "namespace": "demo", "uid": "1", "resourceVersion": "9"}}
    cache.replace(STREAM_APPS, None, [], "5")
    cache.put(STREAM_APPS, app)
    cache.remove(STREAM_APPS, {"metadata": {**app["metadata"], "resourceVersion": "11"}})
    assert not cache.learn(STREAM_APPS, app)
    assert cache.find(STREAM_APPS, "demo", "counter") is None
    # A list that was under way then is older than the deletion, and no sign of a restored storage.
    assert not cache.begin_list(STREAM_APPS, None, "10")


def test_whose_statefulset_it_is_counts_and_where_the_watch_is_silent_nobody_is_ruled_out() -> None:
    cache, clock = a_cache()
    own = an_object("a", 3)
    own["metadata"]["ownerReferences"] = [{"uid": "a-uid", "controller": True}, {"uid": "helps", "controller": False}]
    cache.replace(STATEFUL_SETS, None, [own, an_object("foreign", 4)], "5")
    found = {
        (name, uid): cache.can_control(STATEFUL_SETS, Key("demo", name), uid)
        for name, uid in (("a", "a-uid"), ("a", "helps"), ("foreign", "a-uid"), ("none", "a-uid"))
    }
    assert found == {
        ("a", "a-uid"): True,
        ("a", "helps"): False,
        ("foreign", "a-uid"): False,
        ("none", "a-uid"): False,
    }
    clock.seconds += 3600.0
    assert cache.can_control(STATEFUL_SETS, Key("demo", "none"), "a-uid")

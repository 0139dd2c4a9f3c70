"""The agent in Java 11, 17, 21 and 25: an older JVM starts as if there were no agent."""

import struct
import zipfile
from pathlib import Path

import pytest

from tests.hostile import jvms
from tests.hostile.jvms import Parts

pytestmark = [pytest.mark.hostile, pytest.mark.timeout(600)]

JAVA_8 = 52
"""The version of its class files."""


def test_a_jvm_that_is_too_old_runs_the_application_and_says_one_line(parts: Parts, tmp_path: Path) -> None:
    java = parts.java("11")
    plain = jvms.run(jvms.command(parts, tmp_path, [], java), "start\n")
    with_agent = jvms.run(jvms.command(parts, tmp_path, [jvms.agent(parts)], java), "start\n")
    warning = "streamapp-agent: the agent stays off: it needs Java 17, and this JVM is Java 11.0.13\n"
    assert plain.seen == (7, "constructed CREATED\nstart REBALANCING\nclosed NOT_RUNNING\n", "begins\nends\n")
    assert with_agent.seen == (plain.code, plain.out, warning + plain.err)


@pytest.mark.parametrize("version", ["17", "21", "25"])
def test_the_output_and_the_exit_code_are_those_without_the_agent(version: str, parts: Parts, tmp_path: Path) -> None:
    java = parts.java(version)
    plain = jvms.run(jvms.command(parts, tmp_path, [], java), "start\n")
    with_agent = jvms.run(jvms.command(parts, tmp_path, [jvms.agent(parts)], java), "start\n")
    assert plain.out == "constructed CREATED\nstart REBALANCING\nclosed NOT_RUNNING\n"
    assert with_agent.seen == plain.seen


def test_java_8_can_load_every_class_that_runs_before_the_version_is_known(parts: Parts) -> None:
    with zipfile.ZipFile(parts.agent) as jar:
        manifest = jar.read("META-INF/MANIFEST.MF").decode()
        (first,) = [line.split(": ")[1] for line in manifest.splitlines() if line.startswith("Premain-Class: ")]
        classes = [name for name in jar.namelist() if name.startswith(first.rpartition(".")[0].replace(".", "/"))]
        versions = {name: struct.unpack(">IHH", jar.read(name)[:8])[2] for name in classes if name.endswith(".class")}
    assert f"{first.replace('.', '/')}.class" in versions
    assert set(versions.values()) == {JAVA_8}

"""docs/command-line.md against the code: exit codes, states, options, names in JSON."""

import re

import click

from lab.settings import REPOSITORY
from streamapp.api.http.messages import (
    OPERATOR_PATH,
    FindingTold,
    Task,
    TaskCopy,
    TaskOwner,
    Tasks,
    findings_path,
    tasks_path,
)
from streamapp.cli.app import streamapp
from streamapp.cli.errors import Exit
from streamapp.cli.model.amounts import Pods
from streamapp.cli.model.app_view import AppState, view_of
from streamapp.cli.model.explain import explain
from streamapp.cli.model.history.entries import HistoryEntry
from streamapp.cli.model.scale_plan import ScalePlan, document_of
from streamapp.cli.model.user_action import PauseAction, result_of
from streamapp.cli.screens.documents import of_explanation, of_status
from tests.builders import NOW
from tests.cli.showing import a_resource
from tests.statuses import held_status

PAGE = (REPOSITORY / "docs" / "command-line.md").read_text()


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


def test_it_lists_every_exit_code_and_no_other() -> None:
    listed = re.findall(r"^\| (\d+) \|", section("For scripts"), re.MULTILINE)
    assert sorted(map(int, listed)) == sorted(Exit)


def test_it_explains_every_state_and_no_other() -> None:
    listed = [
        state
        for row in re.findall(r"^\| (`[^|]*) \|", section("States"), re.MULTILINE)
        for state in re.findall(r"`([^`]+)`", row)
    ]
    assert sorted(listed) == sorted(state.value for state in AppState)


def test_it_names_every_option_of_every_command() -> None:
    context = click.Context(streamapp)
    for name in streamapp.list_commands(context):
        command = streamapp.get_command(context, name)
        assert command is not None
        assert f"`kubectl streamapp {name}" in PAGE
        for option in command.params:
            if isinstance(option, click.Option):
                assert [flag for flag in option.opts if flag not in section("Usage")] == []


def test_it_names_every_field_of_the_documents() -> None:
    resource = a_resource(held_status(), generation=2)
    view = view_of(resource, NOW)
    plan = ScalePlan(view=view, asked="1", amount=Pods(1), tasks={2: ["0_1"]})
    entry = HistoryEntry(at=NOW, what="Hold", message="", by="")
    planned = document_of(plan, written=True, dry_run=False)
    documents = (
        *(of_status(view), of_explanation(explain(resource, NOW)), planned, planned["leaving"][0], entry.document),
        result_of(PauseAction(paused=True), resource).document,
    )
    for document in documents:
        assert [field for field in document if f"`{field}`" not in section("For scripts")] == []


def test_it_names_every_field_of_what_the_operator_answers() -> None:
    told = (Tasks, Task, TaskOwner, TaskCopy, FindingTold)
    fields = {field.alias or name for model in told for name, field in model.model_fields.items()}
    unnamed = {"version", "namespace", "name"}
    assert [field for field in sorted(fields - unnamed) if f"`{field}`" not in section("For scripts")] == []


def test_it_names_every_path_of_the_operator() -> None:
    paths = (tasks_path("{namespace}", "{name}"), findings_path("{namespace}", "{name}"), OPERATOR_PATH)
    assert [path for path in paths if f"{path}`" not in section("Asking the operator")] == []

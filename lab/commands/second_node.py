"""The command that gives the running lab a second node for as long as it runs itself."""

import click

from lab.clusters.choice import embedded
from lab.clusters.second_node import second_node
from lab.settings import Settings
from lab.terminal import progress


@click.command(name="second-node")
@click.option("--image", "images", multiple=True, help="Short name of an image that it needs; by default all.")
def second(*, images: tuple[str, ...]) -> None:
    """Add a second node to the embedded lab until Ctrl-C."""
    lab = embedded(Settings.from_environment())
    with lab.session() as session, second_node(session, lab.layout, images or None) as node:
        progress.print(f"Node {node.name} is there until this command ends: Ctrl-C removes it, with its pods.")
        node.wait()

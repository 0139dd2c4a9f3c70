"""The second node of a run of chaos, which can lose its power and come back as another machine of its name."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.clusters.second_node import SecondNode, second_node
from lab.node.layout import Layout
from lab.scenarios.departures import IMAGES, OUT_OF_SERVICE, is_missed
from lab.settings import Settings

_MISSED_SECONDS = 180.0
"""A node that is silent for 20 s is called lost; a busy machine takes longer."""


class LosableNode:
    """One at a time; its owner is `losable_node`."""

    def __init__(self, session: Session, kubectl: Kubectl, nodes: ExitStack) -> None:
        self._session, self._kubectl, self._nodes = session, kubectl, nodes
        self._node = self._started()

    def lose(self, seconds: float) -> None:
        """Cut its power, say that it is out of service once Kubernetes misses it, and replace it after some seconds.

        Raises:
            LabError: Kubernetes does not miss it, or no other node becomes ready.
        """
        self._node.cut_power()
        wait_until("the lost node is missed", lambda: is_missed(self._kubectl, self._node.name), _MISSED_SECONDS)
        self._kubectl.run("taint", "node", self._node.name, OUT_OF_SERVICE)
        time.sleep(seconds)
        self._nodes.close()
        self._node = self._started()

    def _started(self) -> SecondNode:
        layout = Layout(Settings.from_environment().state)
        return self._nodes.enter_context(second_node(self._session, layout, images=IMAGES))


@contextmanager
def losable_node(session: Session, kubectl: Kubectl) -> Iterator[LosableNode]:
    """Give a second node that is ready; at the end the one that is there then is removed."""
    with ExitStack() as nodes:
        yield LosableNode(session, kubectl, nodes)

"""Where insight goes, and which cluster it must be of. Loads no client: each command of the pipeline imports it."""

from collections.abc import Collection
from dataclasses import dataclass

from streamapp.analytics.errors import AnalyticsError
from streamapp.api.insight import Insight


@dataclass(frozen=True, slots=True)
class Destination:
    """Where insight goes, and which cluster it must be of."""

    namespace: str
    name: str
    cluster: str

    @classmethod
    def of(cls, text: str, cluster: str) -> "Destination":
        """Read `NAMESPACE/NAME`; ValueError if it is none."""
        namespace, slash, name = text.partition("/")
        if not namespace or not slash or not name or "/" in name:
            raise ValueError(f"{text!r} is not NAMESPACE/NAME")
        return cls(namespace, name, cluster)

    @property
    def title(self) -> str:
        """How errors name it."""
        return f"ConfigMap {self.namespace}/{self.name}"

    def chosen(self, found: Collection[Insight]) -> Insight:
        """The insight of this cluster; AnalyticsError if the record has no line of it."""
        own = next((one for one in found if one.cluster == self.cluster), None)
        if own is None:
            others = ", ".join(repr(one.cluster) for one in found)
            why = f"the record has no application of cluster {self.cluster!r}, but of {others}"
            step = "name the cluster as the operator does: `clusterName` of the chart, --insight-cluster"
            raise AnalyticsError(self.title, why, step)
        return own

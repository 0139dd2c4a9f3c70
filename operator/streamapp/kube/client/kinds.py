"""The kinds that the operator uses, their paths on the API server, and the key of a StreamApp.

Used by every module of this package and by the controller. Nothing here reads or writes.
"""

from dataclasses import KW_ONLY, dataclass
from urllib.parse import quote

from streamapp.api.names import GROUP, KIND, PLURAL, VERSION, selector_of


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object, namespaced or, as Node, of the cluster."""

    group: str
    """Empty for the core group."""
    version: str
    plural: str
    name: str
    """As in `kind:`."""
    _: KW_ONLY
    is_namespaced: bool = True
    """Its objects are in a namespace; those of the cluster belong to no application."""

    @property
    def api_version(self) -> str:
        """As in `apiVersion:`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        """Where the collection, the object or its subresource lies; all namespaces where none is given."""
        parts = ["apis", self.group] if self.group else ["api"]
        parts.append(self.version)
        if namespace is not None:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        parts += [quote(part, safe="") for part in (name, subresource) if part is not None]
        return "/" + "/".join(parts)


STREAM_APPS = Kind(GROUP, VERSION, PLURAL, KIND)
STATEFUL_SETS = Kind("apps", "v1", "statefulsets", "StatefulSet")
PODS = Kind("", "v1", "pods", "Pod")
CLAIMS = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
SERVICES = Kind("", "v1", "services", "Service")
CONFIG_MAPS = Kind("", "v1", "configmaps", "ConfigMap")
SECRETS = Kind("", "v1", "secrets", "Secret")
BUDGETS = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
AUTOSCALERS = Kind("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
SCALED_OBJECTS = Kind("keda.sh", "v1alpha1", "scaledobjects", "ScaledObject")
VERTICAL_AUTOSCALERS = Kind("autoscaling.k8s.io", "v1", "verticalpodautoscalers", "VerticalPodAutoscaler")
ADMISSION_POLICIES = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicies",
    "ValidatingAdmissionPolicy",
    is_namespaced=False,
)
SUBJECT_REVIEWS = Kind("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", is_namespaced=False)
POD_METRICS = Kind("metrics.k8s.io", "v1beta1", "pods", "PodMetrics")
ACCESS_REVIEWS = Kind(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", is_namespaced=False
)
NODES = Kind("", "v1", "nodes", "Node", is_namespaced=False)
QUOTAS = Kind("", "v1", "resourcequotas", "ResourceQuota")
EVENTS = Kind("events.k8s.io", "v1", "events", "Event")
LEASES = Kind("coordination.k8s.io", "v1", "leases", "Lease")


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """The namespace and name of a StreamApp, which its StatefulSet, Service and PodDisruptionBudget share.

    Or those of a Lease.
    """

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def selector(self) -> str:
        """The labels of everything that belongs to it."""
        return selector_of(self.name)

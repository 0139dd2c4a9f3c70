"""Where things lie and which versions run: read once from `versions.toml` and the environment.

Environment variables, all optional:

- `STREAMAPP_LAB_CACHE`: folder of built programs and images (default `~/.cache/streamapp-lab`), safe to delete.
- `STREAMAPP_LAB_STATE`: folder of the running lab (default `/var/lib/streamapp-lab`), on a real disk: it holds the
  volumes.
- `CLUSTER`: `embedded` (default), `kind`, or `context` (the current context of `KUBECONFIG`, if allow-listed).
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
LAB = REPOSITORY / "lab"
EXAMPLES = REPOSITORY / "examples"


@dataclass(frozen=True)
class Versions:
    """The pinned versions of every foreign part, from `versions.toml`."""

    kubernetes: str
    etcd: str
    coredns: str
    metrics_server: str
    broker: str
    streams: str
    helm: str
    helm_3: str
    prometheus_operator: str
    prometheus: str
    keda: str
    spark_connector: str
    spark_token_provider: str
    spark_kafka_clients: str
    spark_commons_pool: str
    spring_boot: str
    go: str
    java: str
    maven: str
    kind_node: str
    actionlint: str
    operator_framework_api: str

    @classmethod
    def read(cls, path: Path = REPOSITORY / "versions.toml") -> "Versions":
        """Read the file; a missing name is a KeyError, since the file is part of the repository."""
        table = tomllib.loads(path.read_text())
        return cls(
            kubernetes=table["kubernetes"]["kubernetes"],
            etcd=table["kubernetes"]["etcd"],
            coredns=table["kubernetes"]["coredns"],
            metrics_server=table["kubernetes"]["metrics-server"],
            broker=table["kafka"]["broker"],
            streams=table["kafka"]["streams"],
            helm=table["helm"]["helm"],
            helm_3=table["helm"]["helm-3"],
            prometheus_operator=table["prometheus"]["operator"],
            prometheus=table["prometheus"]["server"],
            keda=table["keda"]["keda"],
            spark_connector=table["spark"]["kafka-connector"],
            spark_token_provider=table["spark"]["token-provider"],
            spark_kafka_clients=table["spark"]["kafka-clients"],
            spark_commons_pool=table["spark"]["commons-pool"],
            spring_boot=table["spring"]["boot"],
            go=table["toolchains"]["go"],
            java=table["toolchains"]["java"],
            maven=table["toolchains"]["maven"],
            kind_node=table["kind"]["node"],
            actionlint=table["release"]["actionlint"],
            operator_framework_api=table["release"]["operator-framework-api"],
        )


@dataclass(frozen=True)
class Settings:
    """Folders and choices of one invocation."""

    cache: Path
    """Built programs and images, addressed by content."""
    state: Path
    """Everything that belongs to the one running lab."""
    cluster: str
    """`embedded`, `kind` or `context`; not yet checked."""
    versions: Versions

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Settings":
        """Read the variables named in the module's docstring."""
        cache = environment.get("STREAMAPP_LAB_CACHE") or Path.home() / ".cache" / "streamapp-lab"
        return cls(
            cache=Path(cache).expanduser().absolute(),
            state=Path(environment.get("STREAMAPP_LAB_STATE") or "/var/lib/streamapp-lab").expanduser().absolute(),
            cluster=environment.get("CLUSTER") or "embedded",
            versions=Versions.read(),
        )


def search_path(environment: Mapping[str, str] = os.environ) -> str:
    """Give the PATH to look programs up in: daemons lie in sbin folders, which the PATH of a plain `su` lacks."""
    folders = [folder for folder in environment.get("PATH", "/usr/local/bin:/usr/bin:/bin").split(":") if folder]
    return ":".join(dict.fromkeys([*folders, "/usr/local/sbin", "/usr/sbin", "/sbin"]))

"""A real API server with etcd on the loopback address, and nothing else of a cluster: enough for what admission says.

The lab's own programs, without its node: no controller makes pods here, and no root is needed.
"""

import json
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from lab.build.cache import Cache
from lab.build.labkube import build_labkube
from lab.matrix.processes import LOOPBACK, free_ports, started
from lab.node.certificates import Authority, write_signing_key
from lab.settings import Settings

START_SECONDS = 60.0
Json = dict[str, Any]


@dataclass(frozen=True)
class ApiServer:
    """One that answers."""

    kubectl: Path
    kubeconfig: Path
    authority: Authority
    """Of all certificates, those of users too."""
    port: int

    def run(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run kubectl as an administrator."""
        command = [str(self.kubectl), f"--kubeconfig={self.kubeconfig}", *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=60)

    def kubeconfig_for(self, user: str, group: str = "") -> Path:
        """Make a kubeconfig for a user; the API server knows the user by name, and the rights by RBAC."""
        folder, file = self.kubeconfig.parent, user.replace(":", "-")
        self.authority.issue(file, user, group)
        config = folder / f"{file}.kubeconfig"
        config.write_text(yaml.safe_dump(_kubeconfig(folder, self.port, file)))
        return config

    @contextmanager
    def controllers(self) -> Iterator[None]:
        """Run the controllers of StatefulSets and of owners, for the time of the block."""
        (port,) = free_ports(1)
        command = [
            str(self.kubectl.parent / "kube-controller-manager"),
            f"--kubeconfig={self.kubeconfig}",
            f"--authentication-kubeconfig={self.kubeconfig}",
            f"--authorization-kubeconfig={self.kubeconfig}",
            "--controllers=statefulset-controller,garbage-collector-controller,disruption-controller",
            "--leader-elect=false",
            f"--bind-address={LOOPBACK}",
            f"--secure-port={port}",
        ]
        log = self.kubeconfig.parent / "controllers.log"
        with started("kube-controller-manager", command, {}, log):
            yield

    def apply(self, *objects: Json) -> None:
        """Apply objects as an administrator."""
        done = self.run("apply", "--server-side", "--filename=-", stdin=yaml.safe_dump_all(objects))
        assert done.returncode == 0, done.stderr

    def creation_refusal(self, body: Json, user: str = "admin") -> str:
        """Try to create something without effect; why it is refused, empty if it is not."""
        metadata, group = body["metadata"], body["apiVersion"]
        base = f"/api/{group}" if group == "v1" else f"/apis/{group}"
        path = f"{base}/namespaces/{metadata.get('namespace', 'default')}/{body['kind'].lower()}s?dryRun=All"
        config = yaml.safe_load(self.kubeconfig.read_text())
        cluster, own = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(cafile=cluster["certificate-authority"])
        context.load_cert_chain(own["client-certificate"], own["client-key"])
        address = urlsplit(cluster["server"])
        connection = HTTPSConnection(address.hostname or "", address.port, context=context, timeout=60)
        who = {"Impersonate-User": user, "Impersonate-Group": "system:masters"}
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json", **who})
            answer = connection.getresponse()
            return "" if answer.status == 201 else str(json.loads(answer.read())["message"])
        finally:
            connection.close()

    def refusal(self, verb: str, body: Json | None, *arguments: str, user: str = "") -> str:
        """Try something with kubectl, without effect; why it is refused, empty if it is not."""
        who = [f"--as={user}", "--as-group=system:masters"] if user else []
        stdin = None if body is None else yaml.safe_dump(body)
        source = [] if body is None else ["--filename=-"]
        done = self.run(verb, *source, *arguments, "--dry-run=server", *who, stdin=stdin)
        return "" if done.returncode == 0 else done.stderr


@contextmanager
def running(folder: Path) -> Iterator[ApiServer]:
    """Start both for the time of the block."""
    settings = Settings.from_environment()
    programs = build_labkube(settings.versions, Cache(settings.cache))
    client, peer, port = free_ports(3)
    authority = Authority.create(folder, "ca")
    authority.issue("server", "kube-apiserver", hosts=(LOOPBACK, "localhost"))
    authority.issue("admin", "admin", "system:masters")
    write_signing_key(folder / "accounts.key")
    etcd, server = _etcd(folder, programs, client, peer), _api_server(folder, programs, client, port)
    config = folder / "kubeconfig"
    config.write_text(yaml.safe_dump(_kubeconfig(folder, port)))
    with (
        started("etcd", etcd, {}, folder / "etcd.log"),
        started("kube-apiserver", server, {}, folder / "apiserver.log", folder) as process,
    ):
        one = ApiServer(programs / "kubectl", config, authority, port)
        until = time.monotonic() + START_SECONDS
        while one.run("get", "--raw=/readyz").returncode != 0:
            process.require_life()
            assert time.monotonic() < until, process.last_words()
            time.sleep(0.2)
        yield one


def _etcd(folder: Path, programs: Path, client: int, peer: int) -> list[str]:
    return [
        str(programs / "etcd"),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls=http://{LOOPBACK}:{client}",
        f"--advertise-client-urls=http://{LOOPBACK}:{client}",
        f"--listen-peer-urls=http://{LOOPBACK}:{peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def _api_server(folder: Path, programs: Path, client: int, port: int) -> list[str]:
    return [
        str(programs / "kube-apiserver"),
        f"--etcd-servers=http://{LOOPBACK}:{client}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--tls-cert-file={folder / 'server.crt'}",
        f"--tls-private-key-file={folder / 'server.key'}",
        f"--client-ca-file={folder / 'ca.crt'}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder / 'accounts.key'}",
        f"--service-account-signing-key-file={folder / 'accounts.key'}",
        "--service-cluster-ip-range=10.96.0.0/24",
        "--disable-admission-plugins=ServiceAccount",
        "--allow-privileged=true",
    ]


def _kubeconfig(folder: Path, port: int, user: str = "admin") -> Json:
    cluster = {"server": f"https://{LOOPBACK}:{port}", "certificate-authority": str(folder / "ca.crt")}
    own = {"client-certificate": str(folder / f"{user}.crt"), "client-key": str(folder / f"{user}.key")}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "clusters": [{"name": "one", "cluster": cluster}],
        "users": [{"name": "one", "user": own}],
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one", "namespace": "default"}}],
    }

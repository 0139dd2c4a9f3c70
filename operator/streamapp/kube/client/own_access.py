"""The operator's own access to the API server: the pod's service account, else the kubeconfig.

Used by `lifecycle` and `permission_check`. People have another way in, `kubeconfig`.
"""

import os
from dataclasses import dataclass

from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config import load_incluster_config, load_kube_config


async def own_configuration() -> Configuration:
    """Find out how the API server is reached and as whom: the pod's service account, else the kubeconfig."""
    configuration = Configuration()
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        load_incluster_config(configuration)
    else:
        await load_kube_config(client_configuration=configuration)
    return configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """The same access in plain words, for the library that watches."""

    server: str
    ca_path: str | None
    insecure: bool
    certificate_path: str | None
    key_path: str | None
    token: str | None


def login_of(configuration: Configuration) -> Login:
    """Give the access that a configuration describes; a token is as fresh as the configuration."""
    token = configuration.api_key.get("BearerToken")
    return Login(
        server=configuration.host,
        ca_path=configuration.ssl_ca_cert,
        insecure=not configuration.verify_ssl,
        certificate_path=configuration.cert_file,
        key_path=configuration.key_file,
        token=None if token is None else token.split(" ", 1)[-1],
    )

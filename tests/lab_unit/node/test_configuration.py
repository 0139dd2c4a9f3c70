"""The files of a new lab: complete, readable by root alone, and different each time."""

import json
import stat
from pathlib import Path

import yaml
from cryptography import x509

from lab.node import configuration, parts
from lab.node.layout import NODE_ADDRESS, NODES, Layout


def test_every_part_that_talks_to_the_api_server_has_an_identity_of_its_own(tmp_path: Path) -> None:
    configuration.write_all(Layout(tmp_path))
    tokens = [line.split(",")[:2] for line in (tmp_path / "etc" / "tokens.csv").read_text().splitlines()]
    assert len({token for token, _ in tokens}) == len(configuration.IDENTITIES)
    assert sorted(user for _, user in tokens) == sorted(i.user for i in configuration.IDENTITIES.values())
    for name in configuration.IDENTITIES:
        content = yaml.safe_load(Layout(tmp_path).kubeconfig(name).read_text())
        assert content["current-context"] == "streamapp-lab"


def test_secrets_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    configuration.write_all(Layout(tmp_path))
    etc = tmp_path / "etc"
    secrets = [etc / "tokens.csv", *etc.glob("*.key"), *etc.glob("*.kubeconfig")]
    assert len(secrets) > len(configuration.IDENTITIES)
    assert {stat.S_IMODE(path.stat().st_mode) for path in secrets} == {0o600}


def test_two_labs_share_no_secret(tmp_path: Path) -> None:
    for name in ("one", "two"):
        configuration.write_all(Layout(tmp_path / name))
    one, two = (set((tmp_path / name / "etc" / "tokens.csv").read_text().split()) for name in ("one", "two"))
    assert one & two == set()


def test_the_api_servers_certificate_fits_the_addresses_it_is_reached_at(tmp_path: Path) -> None:
    configuration.write_all(Layout(tmp_path))
    certificate = x509.load_pem_x509_certificate((tmp_path / "etc" / "apiserver.crt").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {NODE_ADDRESS, "10.96.0.1", "127.0.0.1"} <= {str(a) for a in names.get_values_for_type(x509.IPAddress)}
    assert "kubernetes.default.svc" in names.get_values_for_type(x509.DNSName)


def test_the_pod_network_is_one_that_the_plugins_can_read(tmp_path: Path) -> None:
    configuration.write_all(Layout(tmp_path))
    network = json.loads((tmp_path / "etc" / "cni" / "10-lab.conflist").read_text())
    assert [plugin["type"] for plugin in network["plugins"]] == ["bridge", "portmap"]


def test_part_names_are_unique_and_include_every_process_of_a_node() -> None:
    names = parts.part_names(Layout(Path("/nowhere")))
    assert len(names) == len(set(names))
    assert {"etcd", "kube-apiserver", "kubelet", "containerd", "kube-proxy", "coredns", "metrics-server"} <= set(names)


def test_nodes_share_no_address_folder_identity_or_cgroup(tmp_path: Path) -> None:
    configuration.write_all(Layout(tmp_path))
    one, two = (_facts(Layout(tmp_path, node)) for node in NODES)
    assert [name for name in one if one[name] == two[name]] == []


def _facts(layout: Layout) -> dict[str, object]:
    kubelet = yaml.safe_load(layout.kubelet_config.read_text())
    network = json.loads((layout.pod_network / "10-lab.conflist").read_text())
    certificate = x509.load_pem_x509_certificate(Path(kubelet["tlsCertFile"]).read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    flags = [flag for part in parts.of_the_node(layout, Path()) for flag in part.command[1:]]
    return {
        "address": kubelet["address"],
        "cgroup": kubelet["cgroupRoot"],
        "logs of pods": kubelet["podLogsDir"],
        "certified for": names.get_values_for_type(x509.IPAddress),
        "bridge": layout.node.mac,
        "pods": network["plugins"][0]["ipam"],
        "containerd": [line for line in layout.containerd_config.read_text().splitlines() if line.startswith("root")],
        "host names": [flag for flag in flags if flag.startswith("--hostname-override")],
        "root folder": [flag for flag in flags if flag.startswith("--root-dir")],
        "identity": [flag for flag in flags if flag.startswith("--kubeconfig") and "kubelet" in flag],
        "records": (layout.status, layout.run_record, layout.supervisor_log),
    }

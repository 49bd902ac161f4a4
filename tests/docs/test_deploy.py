"""The files under deploy/ for containers: what they name exists in the product. They are not run here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hybrid.cli.main import NOUNS
from hybrid.config.setting_keys import KEYS

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
VARIABLES = {key.variable for key in KEYS} | {"HYBRID_HOME", "HYBRID_CACHE"}
FILES = ("Dockerfile", "compose.yaml", "kubernetes.yaml")


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8")))


def values(node: object, key: str) -> Iterator[Any]:
    """Every value of a key in a document."""
    if isinstance(node, dict):
        if key in node:
            yield node[key]
        for child in node.values():
            yield from values(child, key)
    elif isinstance(node, list):
        for child in node:
            yield from values(child, key)


@pytest.mark.parametrize("name", FILES)
def test_variables_are_settings(name: str) -> None:
    named = set(re.findall(r"HYBRID_[A-Z_]+", (DEPLOY / name).read_text(encoding="utf-8")))
    assert named and named <= VARIABLES


@pytest.mark.parametrize("name", FILES[1:])
def test_images_have_a_version(name: str) -> None:
    images = [image for document in documents(name) for image in values(document, "image")]
    assert images and all(re.search(r":v?\d+\.\d+\.\d+$", image) for image in images)


def test_the_image_copies_what_there_is_and_runs_commands_that_exist() -> None:
    lines = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copied = [word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]]
    assert copied and all((ROOT / word).exists() for word in copied)
    nouns = [noun for line in lines for noun in re.findall(r'hybrid(?: |", ")(setup|serve)\b', line)]
    assert set(nouns) == {"setup", "serve"} and set(nouns) <= set(NOUNS)


def test_compose_refers_to_what_it_defines() -> None:
    (compose,) = documents("compose.yaml")
    services, volumes = compose["services"], set(compose["volumes"])
    mounted = {mount.partition(":")[0] for service in services.values() for mount in service.get("volumes", ())}
    assert mounted == volumes
    assert {name for service in services.values() for name in service.get("depends_on", ())} <= set(services)
    ports = [port for service in services.values() for port in service.get("ports", ())]
    assert all(port.startswith("127.0.0.1:") for port in ports) and len(set(ports)) == len(ports)
    assert {name for service in services.values() for name in service.get("secrets", ())} == set(compose["secrets"])


def test_the_recipe_of_compose_reaches_what_it_prepares() -> None:
    """The image runs as another user than the host's, and Compose mounts a secret's file with the host's mode."""
    recipe = (ROOT / "docs" / "guides" / "containers.md").read_text(encoding="utf-8")
    (compose,) = documents("compose.yaml")
    (port,) = compose["services"]["store"]["ports"]
    assert f"AWS_ENDPOINT_URL=http://{port.rpartition(':')[0]}" in recipe
    folder = Path(compose["secrets"]["access"]["file"])
    assert f"install -m 644 /tmp/accounts/{folder.name} deploy/" in recipe


def test_a_role_of_the_cloud_does_in_the_place_of_keys() -> None:
    found = [ref for document in documents("kubernetes.yaml") for ref in values(document, "secretRef")]
    assert found == [{"name": "hybrid-store", "optional": True}]


def test_kubernetes_refers_to_what_it_defines() -> None:
    found = documents("kubernetes.yaml")
    (stateful,) = [document for document in found if document["kind"] == "StatefulSet"]
    services = {document["metadata"]["name"] for document in found if document["kind"] == "Service"}
    assert stateful["spec"]["serviceName"] in services
    pod = stateful["spec"]["template"]["spec"]
    labels = stateful["spec"]["template"]["metadata"]["labels"]
    for selector in [stateful["spec"]["selector"]["matchLabels"], *(d["spec"]["selector"] for d in found[:2])]:
        assert selector.items() <= labels.items()
    volumes = {volume["name"] for volume in pod["volumes"]}
    volumes |= {claim["metadata"]["name"] for claim in stateful["spec"]["volumeClaimTemplates"]}
    mounts = {mount["name"] for mounts in values(pod, "volumeMounts") for mount in mounts}
    assert mounts <= volumes
    (container,) = pod["containers"]
    probes = {probe["httpGet"]["path"] for name, probe in container.items() if name.endswith("Probe")}
    reference = (ROOT / "docs" / "reference" / "http.md").read_text(encoding="utf-8")
    assert probes and all(f"`GET {path}`" in reference for path in probes)

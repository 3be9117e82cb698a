"""Podman: stand-ins of the official images, and a deployment that is a project of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from configs.settings import ROOT
from pipelines.bench.site.servers import SiteError
from pipelines.stack.services.kafka import broker_jars

IMAGES = Path(__file__).parent / "images"
STAND_INS = {
    "python": "docker.io/library/python:3.11-slim-bookworm",
    "kafka": "docker.io/apache/kafka:4.3.1",
    "postgres": "docker.io/library/postgres:17",
}
"""Folder of each below IMAGES, and the name of the official image."""
BASE = "localhost/debian:bookworm"
TOOLS = ("podman", "runc", "iptables", "catatonit", "debootstrap")
CONFIG = """\
[engine]
runtime = "runc"
[containers]
default_ulimits = ["nproc=4000:4000", "nofile=10000:10000"]
"""
"""Where limits may not be raised, crun and podman's own limits do not work."""
STORE = ROOT / "var" / "site-images"
STORAGE = f"""\
[storage]
driver = "overlay"
graphroot = "{STORE}/graph"
runroot = "{STORE}/run"
"""
REMEDY = "apt-get install podman runc netavark aardvark-dns iptables catatonit debootstrap"
COMPOSE = Path(sys.executable).with_name("podman-compose")
AUTHORITIES = Path("/usr/local/share/ca-certificates")
"""Of this computer: who reads its packages through a proxy needs them in a container, too."""
CHECK_S = 5.0
"""Seconds between two rounds of health checks."""
LOG_LINES = 60
"""With the table of its files that the DAG processor prints twice a minute."""
SECRETS = {
    "DATABASE_PASSWORD": "planteddatabasepassword",
    "AIRFLOW_ADMIN_PASSWORD": "plantedadminpassword",
    "AIRFLOW_JWT_SECRET": "plantedjwt" + "0123456789abcdef" * 8,
    "AIRFLOW_API_SECRET": "plantedapi" + "0123456789abcdef" * 8,
}


def podman(*arguments: str) -> str:
    """Run podman and return what it printed; what it says goes to this process's stderr.

    Raises:
        subprocess.CalledProcessError: it ended with another status than 0.
    """
    return subprocess.run(["podman", *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout


def prepare(folder: Path) -> None:
    """Give podman in this process a configuration and a store of its own, and make the stand-ins that are not in it.

    The store is STORE, so that no image of a person's own is replaced. Making the first stand-in needs root.

    Args:
        folder: for what is needed meanwhile.

    Raises:
        SiteError: a tool is not installed.
        subprocess.CalledProcessError: an image cannot be made.
        JarsError, OSError: the broker's jars are missing, or the folder cannot be written.
    """
    if missing := [tool for tool in TOOLS if not (shutil.which(tool) or Path("/usr/libexec/podman", tool).exists())]:
        raise SiteError(f"{', '.join(missing)} not found. {REMEDY}")
    if not COMPOSE.exists():
        raise SiteError(f"{COMPOSE} not found. pip install -r requirements-site.txt")
    for variable, text in (("CONTAINERS_CONF", CONFIG), ("CONTAINERS_STORAGE_CONF", STORAGE)):
        file = folder / f"{variable.lower()}.conf"
        file.write_text(text)
        os.environ[variable] = str(file)
    for name, image in STAND_INS.items():
        if not _has_image(image):
            if not _has_image(BASE):
                _make_base(folder / "debian")
            _make_stand_in(name, image, folder / name)


def _has_image(name: str) -> bool:
    return subprocess.run(["podman", "image", "exists", name]).returncode == 0


def _make_stand_in(name: str, image: str, context: Path) -> None:
    shutil.copytree(IMAGES / name, context)
    if name == "kafka":
        (context / "libs").mkdir()
        for jar in broker_jars():
            shutil.copy(jar, context / "libs")
    podman("build", "--pull=never", "--network=host", "-t", image, str(context))


def _make_base(root: Path) -> None:
    """Debian's smallest system, with this computer's package sources and certificates."""
    subprocess.run(["debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", str(root)], check=True)
    for file in Path("/etc/apt/sources.list.d").glob("*.sources"):
        shutil.copy(file, root / file.relative_to("/"))
    # A mirror may be a snapshot.
    (root / "etc/apt/apt.conf.d/99dates").write_text('Acquire::Check-Valid-Until "false"; Acquire::Check-Date "false";')
    for file in AUTHORITIES.glob("*.crt"):
        shutil.copy(file, root / file.relative_to("/"))
    subprocess.run(["chroot", str(root), "update-ca-certificates"], check=True)
    bundle = "/etc/ssl/certs/ca-certificates.crt"
    told = ["--change", f"ENV SSL_CERT_FILE={bundle}", "--change", f"ENV PIP_CERT={bundle}"]
    with subprocess.Popen(["tar", "-C", str(root), "-c", "."], stdout=subprocess.PIPE) as tar:
        subprocess.run(["podman", "import", *told, "-", BASE], stdin=tar.stdout, check=True)
    shutil.rmtree(root)


class ComposeProject:
    """`docker/compose.yaml` under a project name of its own, whose volumes and networks are nobody else's."""

    def __init__(self, project: str, folder: Path, *more: Path, told: Mapping[str, str] | None = None) -> None:
        """Write its secrets; nothing is started.

        Args:
            project: its name.
            folder: for the file of secrets.
            more: files that are laid over the first one.
            told: what the file of secrets says beside them.
        """
        self.project, self._env = project, folder / "env"
        self._files = [argument for file in (ROOT / "docker" / "compose.yaml", *more) for argument in ("-f", str(file))]
        self._env.write_text("".join(f"{name}={value}\n" for name, value in {**SECRETS, **(told or {})}.items()))

    def compose(self, *arguments: str, profile: str = "") -> None:
        """Run podman-compose.

        Raises:
            subprocess.CalledProcessError: it ended with another status than 0.
        """
        chosen = ["--profile", profile] if profile else []
        command = [
            str(COMPOSE), "-p", self.project, "--env-file", str(self._env),
            *self._files, *chosen, *arguments,
        ]  # fmt: skip
        subprocess.run(command, check=True, cwd=ROOT)

    def container(self, service: str) -> str:
        """Name of a service's container."""
        return f"{self.project}_{service}_1"

    def containers(self) -> list[str]:
        """Names of all containers, whether they run or not."""
        return podman("ps", "-a", "--format", "{{.Names}}", "--filter", self._label).split()

    def volumes(self) -> dict[str, Path]:
        """Folders of the volumes on this computer, by their names."""
        names = podman("volume", "ls", "--format", "{{.Name}}", "--filter", self._label).split()
        return {name: Path(podman("volume", "inspect", "--format", "{{.Mountpoint}}", name).strip()) for name in names}

    def run(self, service: str, *command: str) -> str:
        """Run a command in a service's container, and return what it prints; CalledProcessError where it fails."""
        return podman("exec", self.container(service), *command)

    def last_lines(self, service: str) -> str:
        """Return the last LOG_LINES that a service's container has printed, on stdout and stderr.

        Raises:
            subprocess.CalledProcessError: podman failed.
        """
        command = ["podman", "logs", "--tail", str(LOG_LINES), self.container(service)]
        told = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
        return told.stdout

    def ask(self, code: str) -> Any:
        """Run Python in the autoscaler's container, and return the JSON of the last line that it prints."""
        return json.loads(self.run("autoscaler", "python", "-c", code).splitlines()[-1])

    def health(self) -> dict[str, str]:
        """By service, `healthy`, `unhealthy` or `starting`; of one without a check its state, as `running`."""
        found = {}
        for name in self.containers():
            state = json.loads(podman("inspect", name))[0]["State"]
            checked = (state.get("Health") or state.get("Healthcheck") or {}).get("Status")
            found[name.removeprefix(f"{self.project}_").removesuffix("_1")] = checked or state["Status"]
        return found

    @property
    def _label(self) -> str:
        return f"label=io.podman.compose.project={self.project}"

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Run all health checks every CHECK_S, until the end of the `with`: podman leaves that to systemd's timers."""
        over = threading.Event()

        def check() -> None:
            while not over.wait(CHECK_S):
                for name in podman("ps", "--format", "{{.Names}}", "--filter", self._label).split():
                    subprocess.run(["podman", "healthcheck", "run", name], capture_output=True)

        thread = threading.Thread(target=check, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(30)

"""`make setup` installs by uv, which reads nothing of what pip was told."""

import os
import shutil
import subprocess
import sys

import pytest

from configs.settings import ROOT

VARIABLES = ("UV_DEFAULT_INDEX", "SSL_CERT_FILE")
PIP = {"PIP_CERT", "PIP_INDEX_URL", "PIP_CONFIG_FILE", "REQUESTS_CA_BUNDLE", *VARIABLES}


@pytest.fixture
def told(tmp_path):
    """A function that makes the environment by a uv that installs nothing, and returns what this one was told."""
    clone = tmp_path / "clone"
    (clone / ".venv" / "bin").mkdir(parents=True)
    for name in ("Makefile", "requirements.in", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, clone)
    for name, does in {
        "python": f'exec {sys.executable} "$@"',
        "uv": f'for name in {" ".join(VARIABLES)}; do printenv "$name" || echo; done > told',
    }.items():
        program = clone / ".venv" / "bin" / name
        program.write_text(f"#!/bin/sh\n{does}\n")
        program.chmod(0o755)

    def make(file, **given):
        (tmp_path / "pip.conf").write_text(file)
        environment = {name: value for name, value in os.environ.items() if name not in PIP}
        environment |= {"PIP_CONFIG_FILE": str(tmp_path / "pip.conf"), **given}
        subprocess.run(
            ["make", "-s", ".venv/.ready"], cwd=clone, env=environment, check=True, stdout=subprocess.DEVNULL
        )
        (clone / ".venv" / ".ready").unlink()
        return tuple((clone / "told").read_text().splitlines())

    return make


def test_what_pips_file_says_holds_for_uv(told):
    assert told("[global]\nindex-url = https://pip.invalid/file\ncert = /ca.pem\n") == (
        "https://pip.invalid/file", "/ca.pem",
    )  # fmt: skip
    assert told("", PIP_CONFIG_FILE=os.devnull) == ("", "")


def test_variables_go_before_pips_file(told):
    file = "[global]\nindex-url = https://pip.invalid/file\ncert = /file.pem\n"
    assert told(file, PIP_INDEX_URL="https://pip.invalid/it", PIP_CERT="/it.pem", REQUESTS_CA_BUNDLE="/other.pem") == (
        "https://pip.invalid/it", "/it.pem",
    )  # fmt: skip
    assert told(file, UV_DEFAULT_INDEX="https://pip.invalid/uv", REQUESTS_CA_BUNDLE="/other.pem") == (
        "https://pip.invalid/uv", "/other.pem",
    )  # fmt: skip

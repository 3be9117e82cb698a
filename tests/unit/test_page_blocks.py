"""Every block of YAML, JSON and shell on a page is read by what reads it in the product."""

import json
import re
import shlex
import shutil
import subprocess

import pytest
import yaml
from typer.testing import CliRunner

from configs.contract import load_contract
from configs.pool import load_pool
from configs.settings import load
from configs.topology import load_topology
from pipelines.cli.app import app
from pipelines.kafka.signing import Signer
from tests.fakes.page_blocks import NOT_RUN, PROGRAMS, blocks

LANGUAGES = {"python", "yaml", "json", "sh", "text"}
PRINTED = {"text"}
"""Diagrams, and what commands print."""


def contract(text, folder):
    """A whole contract, or a part of one, as the reader of contracts takes it."""
    given = yaml.safe_load(text)
    job = given.get("job", "orders")
    whole = text if "job" in given else f"job: {job}\n{text}"
    (folder / f"{job}.yaml").write_text(whole)
    return load_contract(job, folder)


def pool(text, folder):
    given = yaml.safe_load(text)
    contracts = {job: contract(f"job: {job}\nexecutors: {{min: 1, max: 8}}", folder) for job in given["jobs"]}
    (folder / f"{given['name']}.yaml").write_text(text)
    return load_pool(given["name"], folder, contracts)


def topology(text, folder):
    name = yaml.safe_load(text)["name"]
    (folder / f"{name}.yaml").write_text(text)
    return load_topology(name, folder)


def settings(text, folder):
    (folder / "settings.yaml").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TIDECAST_VAR", raising=False)
        patch.setenv("TIDECAST_FILE", str(folder / "settings.yaml"))
        return load()


def keys(text, folder):
    (folder / "keys.yaml").write_text(text.replace("…", 60 * "a"))
    return Signer(folder / "keys.yaml").check_file()


def scrape(text, folder):
    """Prometheus' own form: what its file needs of it, as docker/prometheus/prometheus.yaml has it."""
    (one,) = yaml.safe_load(text)["scrape_configs"]
    assert one["honor_labels"] and one["static_configs"][0]["targets"]


def workflow(text, folder):
    assert yaml.safe_load(text)["jobs"]


READERS = {
    "scrape_configs": scrape, "clusters": topology, "cores": pool, "kafka": settings, "ports": settings,
    "autoscaler": settings, "on": workflow,
}  # fmt: skip
"""What reads a block of YAML, by a key at its top; signing keys have a line of a job's; all others are contracts."""


@pytest.mark.parametrize("block", blocks("yaml"), ids=lambda block: block.id)
def test_yaml_is_taken_by_its_reader(block, tmp_path):
    given = yaml.safe_load(block.text)
    found = [keys] if "orders" in given else [READERS[key] for key in READERS if key in given]
    read = found[0] if found else contract
    read(block.text, tmp_path)


def test_yaml_that_its_reader_refuses_is_found(tmp_path):
    with pytest.raises(Exception, match="latency_target"):
        contract("latency_target: 3\n", tmp_path)


@pytest.mark.parametrize("block", blocks("json"), ids=lambda block: block.id)
def test_json_is_json(block):
    json.loads(block.text)


def lines(block):
    """Lines of shell, with those that end in a backslash joined, and without comments."""
    joined = re.sub(r"\\\n\s*", " ", block.text)
    return [line for line in (one.split(" #")[0].strip() for one in joined.splitlines()) if line and line[0] != "#"]


@pytest.mark.parametrize("block", blocks("sh"), ids=lambda block: block.id)
def test_shell_is_shell_of_programs_that_are_known(block):
    ran = subprocess.run([shutil.which("bash"), "-n"], input=block.text, text=True, capture_output=True)
    assert ran.returncode == 0, ran.stderr
    for line in lines(block):
        line = re.sub(r"^([A-Z_]+=(\$\(.*\)|\S+) *)+", "", line) or "export"
        name = shlex.split(line)[0].removeprefix(".venv/bin/")
        assert name in PROGRAMS | {"tidecast", "make"}, line


RUN = ("tidecast contract check", "tidecast contract schema", "tidecast pool check", "tidecast plan adverts")
"""Commands that need nothing but files, and change none: those are run, in a folder with the pages' own files."""


def harmless():
    told = {line for block in blocks("sh") for line in lines(block)}
    return sorted(
        line.removeprefix(".venv/bin/") for line in told
        if line.removeprefix(".venv/bin/").startswith(RUN) and not {"--apply", "--measured"} & {*line.split()}
    )  # fmt: skip


@pytest.mark.parametrize("line", harmless())
def test_a_command_that_changes_nothing_runs(line, tmp_path, monkeypatch):
    (tmp_path / "contracts").mkdir()
    (tmp_path / "pools").mkdir()
    for block in blocks("yaml"):
        given = yaml.safe_load(block.text)
        if "job" in given and block.page == "docs/contract.md":
            (tmp_path / "contracts" / f"{given['job']}.yaml").write_text(block.text)
        if "cores" in given and "jobs" in given:
            pool(block.text, tmp_path / "contracts")
            (tmp_path / "contracts" / f"{given['name']}.yaml").rename(tmp_path / "pools" / f"{given['name']}.yaml")
    monkeypatch.setenv("TIDECAST_CONTRACTS", str(tmp_path / "contracts"))
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(app, shlex.split(line)[1:], catch_exceptions=False)
    assert ran.exit_code == 0, ran.output


@pytest.mark.parametrize("block", blocks("python"), ids=lambda block: block.id)
def test_python_compiles(block):
    compile(block.text, block.id, "exec")


def test_every_block_has_a_language_and_every_exception_a_block():
    assert [block.id for block in blocks() if block.language not in LANGUAGES] == []
    assert set(NOT_RUN) - {block.id for block in blocks("python")} == set()

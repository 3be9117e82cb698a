"""`tidecast pool check`."""

from typer.testing import CliRunner

from configs.errors import SettingsError
from pipelines.cli.pool import app


def invoke(tmp_path, monkeypatch, text, other=""):
    (tmp_path / "contracts").mkdir()
    (tmp_path / "pools").mkdir()
    for job in ("orders", "rides"):
        (tmp_path / "contracts" / f"{job}.yaml").write_text(f"job: {job}\nexecutors: {{min: 1, max: 6, cores: 2}}\n")
    (tmp_path / "pools" / "shared.yaml").write_text(text)
    if other:
        (tmp_path / "pools" / "other.yaml").write_text(other)
    monkeypatch.setenv("TIDECAST_CONTRACTS", str(tmp_path / "contracts"))
    return CliRunner().invoke(app, ["check", "shared"])


def test_it_tells_what_the_jobs_have_a_right_to(tmp_path, monkeypatch):
    text = "name: shared\ncores: 8\nprice_per_core_hour: 0.25\n"
    text += "jobs: {orders: {weight: 4, floor: 2}, rides: {frozen: true}}\n"
    told = invoke(tmp_path, monkeypatch, text)
    assert told.exit_code == 0
    assert told.output.splitlines() == [
        "shared: 8 cores, 2 an hour at most",
        "  orders: 2 to 6 executors of 2 cores, a late second costs 4",
        "  rides: 1 to 6 executors of 2 cores, a late second costs 1, frozen",
    ]


def test_what_is_wrong_is_told(tmp_path, monkeypatch):
    told = invoke(tmp_path, monkeypatch, "name: shared\ncores: 2\njobs: {orders: {}, rides: {}}\n")
    assert isinstance(told.exception, SettingsError)
    assert "shared.yaml, line 2: cores=2" in str(told.exception)


def test_a_job_in_another_pool_is_told(tmp_path, monkeypatch):
    text = "name: shared\ncores: 4\njobs: {orders: {}}\n"
    told = invoke(tmp_path, monkeypatch, text, text.replace("shared", "other"))
    assert str(told.exception) == "shared.yaml: orders is in pool other, too. Take it out of one of them."

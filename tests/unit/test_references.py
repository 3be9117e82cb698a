"""References: each follows from the code whole, and a page that is behind is found."""

import re

import pytest
import typer

from configs.sections import Retention
from configs.settings import ROOT, Settings
from models.pool import state as pool_states
from pipelines.cli.app import app
from pipelines.figures.form import FigureError
from pipelines.pages import command_list, setting_tables, topic_tables
from pipelines.pages.references import REFERENCES, REGION, render_references
from tidecast import messages, orders


def leaves(form, path=()):
    """Paths of all settings; one that is a mapping or null in `default.yaml` is one setting."""
    for name, field in form.model_fields.items():
        below = getattr(field.annotation, "model_fields", None)
        if below and field.annotation is not Retention and (*path, name) != ("ports",):
            yield from leaves(field.annotation, (*path, name))
        else:
            yield (*path, name)


def test_every_setting_stands_in_the_table_and_no_other():
    named = {one.path for one in setting_tables.read_settings()}
    asked = {path for path in leaves(Settings) if path != ("replay", "newcomer")}
    assert asked - named == set()
    assert {path for path in named - asked if path[:2] != ("replay", "newcomer")} == set()


def test_a_setting_has_default_unit_and_meaning():
    (kept,) = [one for one in setting_tables.read_settings() if one.path == ("lake", "versions_h")]
    assert (kept.default, kept.unit) == ("168", "hours")
    assert kept.meaning.startswith("how long a replaced version of a table can still be read")


def test_a_setting_without_a_meaning_is_refused(tmp_path, monkeypatch):
    (tmp_path / "default.yaml").write_text("kafka:\n  prefix: x\n  replication: 1  # copies\n")
    monkeypatch.setattr(setting_tables, "DEFAULT_FILE", tmp_path / "default.yaml")
    with pytest.raises(RuntimeError, match=r"kafka\.prefix: a comment"):
        setting_tables.render_settings()


def test_every_command_has_its_section():
    def names(command, words):
        for name, below in getattr(command, "commands", {}).items():
            yield from names(below, f"{words} {name}")
        if not getattr(command, "commands", {}):
            yield words

    sections = set(re.findall(r"^### `(.*)`$", command_list.render_commands(), re.MULTILINE))
    assert sections == {*names(typer.main.get_command(app), "tidecast"), "tidecast serve"}


def test_a_message_that_is_named_of_a_topic_has_the_key_that_is_named():
    for name, one in topic_tables.read_topics()["topics"].items():
        for kind in one.get("message", "").split(" or "):
            if kind in ("", "ReplayOrder", "ReplayProgress"):
                continue
            of = pool_states if kind == "PoolState" else messages
            key = getattr(getattr(of, kind), "KEY", "job" if kind != "Reject" else "topic")
            assert key in one["key"], name
    assert orders.order_key("JOB", "ID") == "JOB:replay:ID"


def test_rights_name_topics_that_are_there():
    content = topic_tables.read_topics()
    for one in content["rights"]:
        assert {*one["reads"], *one["writes"]} <= set(content["topics"])


def test_a_page_that_is_behind_the_code_is_rendered_again():
    page = "a\n<!-- reference: metrics -->\nstale\n<!-- /reference -->\nb\n"
    made = render_references(page)
    assert "tidecast_broker_up" in made and "stale" not in made and made.startswith("a\n") and made.endswith("\nb\n")
    assert render_references(made) == made
    with pytest.raises(FigureError, match="oracle"):
        render_references("<!-- reference: oracle -->\n<!-- /reference -->")


def test_every_reference_stands_on_one_page():
    shown = [name for page in (ROOT / "docs").glob("*.md") for name in REGION.findall(page.read_text())]
    assert sorted(shown) == sorted(REFERENCES)

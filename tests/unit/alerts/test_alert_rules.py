"""Rules and dashboards: what they name is exposed, the file is what the table renders, and each has its cases."""

import json
import re
from string import Formatter

import pytest
import yaml

from configs.files import QUICK
from configs.settings import ROOT
from models.alerts.condition import Comparison, Condition
from models.alerts.metric import BY_NAME, METRICS, Sample
from models.alerts.rules import rules_document
from models.alerts.table import ALERTS
from pipelines.alerts.rules import FILE, rules_text

HOME = ROOT / "docker" / "prometheus"
DASHBOARDS = sorted((HOME / "dashboards").glob("*.json"))
RULES = [rule for group in yaml.load(FILE.read_text(), QUICK)["groups"] for rule in group["rules"]]
NAME, OURS = re.compile(r"\b[a-zA-Z_:][\w:]*\b"), re.compile(r"\btidecast_\w+")


def expressions(dashboard):
    for panel in dashboard["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    yield from (one["definition"] for one in dashboard["templating"]["list"] if "definition" in one)


def selectors(expression):
    """Metrics of an expression with the labels that are asked of each."""
    for name, inside in re.findall(r"\b(tidecast_\w+)(?:\{([^}]*)\})?", expression):
        yield name, set(re.findall(r"(\w+)\s*=", inside))


def test_the_file_of_rules_is_what_the_table_renders():
    assert FILE.read_text() == rules_text(), "python -m pipelines.alerts.rules"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_a_rule_names_metrics_and_labels_that_are_exposed(rule):
    asked = list(selectors(rule["expr"]))
    assert asked
    for name, labels in asked:
        assert labels <= {*BY_NAME[name].labels, "exported_job"}
    used = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
    assert used <= {label for name, _ in asked[:1] for label in BY_NAME[name].labels}


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: file.stem)
def test_a_dashboard_names_metrics_and_labels_that_are_exposed(file):
    dashboard = json.loads(file.read_text())
    asked = [one for expression in expressions(dashboard) for one in selectors(expression)]
    for name, labels in asked:
        assert labels <= set(BY_NAME[name].labels), name
    legends = [target["legendFormat"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert set(re.findall(r"\{\{(\w+)\}\}", " ".join(legends))) <= {label for one in METRICS for label in one.labels}
    places = [panel["gridPos"] for panel in dashboard["panels"]]
    cells = [(x, y) for p in places for x in range(p["x"], p["x"] + p["w"]) for y in range(p["y"], p["y"] + p["h"])]
    assert len(cells) == len(set(cells)) and max(x for x, _ in cells) < 24, "panels overlap"


def test_what_is_exposed_of_jobs_is_shown_on_a_dashboard():
    shown = {
        name for file in DASHBOARDS for text in expressions(json.loads(file.read_text())) for name, _ in selectors(text)
    }
    assert {one.name for one in METRICS} - shown == {"tidecast_follower_timestamp_seconds"}


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_is_named_by_the_conventions(metric):
    assert re.fullmatch(r"tidecast_[a-z_]+", metric.name) and metric.text.endswith(".")
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    assert metric.name.endswith("_info") == (metric.kind == "info")
    assert ("job" in metric.labels) == metric.name.startswith("tidecast_job_")
    assert not set(metric.labels) & {"instance", "le", "quantile"}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_says_what_and_what_helps_and_its_limits_have_the_labels_that_it_asks_by(alert):
    fields = {field for _, field, _, _ in Formatter().parse(alert.text) if field}
    assert fields <= {"value", *alert.condition.all[0].labels} and alert.remedy.endswith((".", ")."))
    for comparison in alert.condition.all:
        if isinstance(comparison.limit, str):
            assert set(BY_NAME[comparison.limit].labels) <= set(comparison.labels)
    assert {"job"} & set(alert.condition.all[0].labels) <= fields


def test_each_rule_has_a_case_in_which_it_fires_and_one_in_which_it_does_not():
    cases = {case["name"]: case for case in yaml.load((HOME / "rules_test.yaml").read_text(), QUICK)["tests"]}
    assert [*cases] == [rule["alert"] for rule in RULES]
    for name, case in cases.items():
        told = [one["exp_samples"] for one in case["promql_expr_test"]]
        assert all(f'alertname="{name}"' in sample["labels"] for samples in told for sample in samples)
        assert [] in told
        assert any(told) and {
            name for name, _ in selectors(" ".join(one["series"] for one in case["input_series"]))
        } <= {*BY_NAME}


def test_the_page_has_a_row_for_each_alert_with_its_remedy():
    page = (ROOT / "docs" / "alerts.md").read_text()
    rows = {line.split(" | ")[0]: line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `")}
    for rule in RULES:
        row = rows[f"| `{rule['alert']}`"]
        assert (row[1], row[-1]) == (rule["labels"]["severity"], rule["annotations"]["description"])


A, B = "tidecast_job_burn_rate", "tidecast_job_burn_rate_limit"


def samples(*given):
    found = {}
    for name, labels, value in given:
        found.setdefault(name, []).append(Sample(name, labels, value))
    return found


def test_a_metric_is_compared_with_another_where_the_labels_agree():
    fast = Comparison(A, ">=", B, where=(("window", "long"),), times=2)
    known = samples(
        (A, {"job": "a", "window": "long"}, 12.0), (A, {"job": "a", "window": "short"}, 99.0),
        (A, {"job": "b", "window": "long"}, 11.9), (A, {"job": "c", "window": "long"}, 99.0),
        (B, {"job": "a"}, 6.0), (B, {"job": "b"}, 6.0),
    )  # fmt: skip
    assert fast.holding(known, 0) == {(("job", "a"),): 12.0}
    assert fast.promql == f'{A}{{window="long"}} >= on (job, instance) (2 * {B})'


def test_comparisons_hold_together_by_the_labels_that_they_share():
    age, up = "tidecast_job_metric_timestamp_seconds", "tidecast_broker_up"
    silent = Condition((Comparison(age, ">", 60, age=True), Comparison(up, "==", 1)))
    known = samples((age, {"job": "a"}, 30.0), (age, {"job": "b"}, 31.0), (up, {}, 1.0))
    assert silent.holding(known, 91.0) == {(("job", "a"),): 61.0}
    assert silent.holding(samples((age, {"job": "a"}, 30.0), (up, {}, 0.0)), 91.0) == {}
    assert silent.promql == f"time() - {age} > 60 and on (instance) {up} == 1"


def test_every_rule_is_one_of_the_document():
    assert [rule["alert"] for group in rules_document()["groups"] for rule in group["rules"]] == [
        rule["alert"] for rule in RULES
    ]

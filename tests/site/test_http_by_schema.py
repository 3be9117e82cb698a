"""Requests that schemathesis draws from the schemas of console and fast path, right and wrong: none ends a route."""

import itertools

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

from pipelines.bench.borders.artifacts import STEP_S
from pipelines.bench.borders.console import ANSWERS, console_app
from pipelines.bench.borders.corpus import JOB
from pipelines.bench.borders.http import ANSWERS as FAST_ANSWERS
from pipelines.bench.borders.request import TOKEN
from pipelines.console.origin import HEADER
from pipelines.serve.http.app import build_app
from pipelines.store import Store

INPUTS, CONSOLE, FAST_PATH = 10_000, 900, 1_400
"""Requests to each border, at least; of each kind to each route: the console has 18 of them, the fast path 4."""
OURS = {"Authorization": f"Bearer {TOKEN}", HEADER: "1"}
MODES = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)


def fuzz(app, statuses, examples):
    """Give so many requests of each kind to each route; how many there were. An error of a route comes out here."""
    asked, turns = 0, itertools.count()

    def give(case):
        nonlocal asked
        if "job" in (case.path_parameters or {}) and next(turns) % 2:  # else hardly one would ask for what is there
            case.path_parameters["job"] = JOB
        answer = case.call(app=app, headers=OURS)
        assert answer.status_code in statuses, (case.operation.label, case.as_curl_command(), answer.text)
        asked += 1

    for found in schemathesis.openapi.from_dict(app.openapi()).get_all_operations():
        for mode in MODES:
            drawn = settings(
                max_examples=examples, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )  # fmt: skip
            try:
                given(case=found.ok().as_strategy(generation_mode=mode))(drawn(lambda case: give(case)))()
            except Unsatisfiable:  # a route without parameters has no wrong ones
                assert mode is MODES[1]
    return asked


def test_the_console_answers_what_is_drawn_from_its_schema():
    assert fuzz(console_app(), ANSWERS, CONSOLE) >= INPUTS


def test_the_fast_path_answers_what_is_drawn_from_its_schema(tmp_path):
    with Store.open(tmp_path, 1 << 26) as store:
        assert fuzz(build_app(store, STEP_S, {JOB}, TOKEN), FAST_ANSWERS, FAST_PATH) >= INPUTS

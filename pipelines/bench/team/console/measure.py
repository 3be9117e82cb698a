"""`tidecast bench team --parts console`: the console in an embedded Airflow and in Chromium, with 500 jobs."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx

from configs.settings import Settings
from pipelines.bench.team.console.axe import fetch_axe
from pipelines.bench.team.console.chromium import Chromium, require_programs
from pipelines.bench.team.console.jobs import ToldTopics
from pipelines.bench.team.console.looks import LOOKS, PageLook, look_at
from pipelines.bench.team.console.records import job_name
from pipelines.bench.team.console.roles import RoleAnswer, ask_by_role
from pipelines.bench.team.console.same_figures import measure_figures
from pipelines.bench.team.console.screens import first_screen, records_shown, summarise
from pipelines.bench.team.console.site import console_site
from pipelines.stack.isolation import isolated_settings

JOBS, PAST_S = 500, 540
"""Jobs on the topics, and seconds of each before the first look."""
COLD, WARM, RECORDS = 5, 12, 24
"""First screens of servers that have just begun, and of one that has read the topics; and records waited for."""


def measure_console(settings: Settings, report: Callable[[str], None]) -> dict[str, Any]:
    """Measure the console, on stacks of its own in `var/bench/team-console`; some ten minutes.

    Args:
        settings: without the address of a service.
        report: called with a line per step.

    Returns:
        `cold`, `warm`: seconds until the first screen, `median`, `worst`, `n` and `each`; `record`: the same from a
        record on a topic to the screen; `looks`, how many, with the `errors` of the browser's console, `violations`
        that axe-core finds, and pages that are `askew` (scroll sideways or have the wrong theme), and `found`, what
        those are; `answers` by role, how many of them were `as_said`, and those that were not (`otherwise`); `figures`,
        see `compare_figures`.

    Raises:
        BrowserError: Chromium or npm is missing, or a page is not drawn.
        SettingsError: the address of a service is set.
        StackError, PortError, JavaError, JarsError: a service does not start.
        BrokerError, TrackingError, httpx.HTTPError: one does not answer.
        FollowedError, LakeError: the console, or the lake, lacks records that it was given.
        OSError: a file cannot be written.
    """
    require_programs("chromium", "npm")
    own = isolated_settings(settings, "bench")
    own = own.model_copy(update={"var": own.var_dir / "team-console"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        axe = fetch_axe(Path(folder))
        figures = measure_figures(own.model_copy(update={"var": own.var_dir / "figures"}), report)
        report("Airflow, a broker and the past of the jobs")
        with (
            console_site(own) as site,
            closing(ToldTopics(site.stack.settings.kafka, JOBS, PAST_S)) as topics,
            closing(Chromium(Path(folder) / "chromium")) as browser,
        ):
            browser.call("Network.setCookie", name="_token", value=site.tokens["viewer"], url=site.airflow)
            cold = []
            for number in range(COLD):
                report(f"server {number + 1} of {COLD}")
                site.restart_server()
                cold.append(first_screen(browser, site.address, JOBS))
            report("the minutes before its start")
            site.await_hours(job_name(JOBS - 1), time.time() - PAST_S / 2)
            report("first screens, and records on their way to one")
            warm = [first_screen(browser, site.address, JOBS) for _ in range(WARM)]
            records = list(records_shown(browser, site.address, topics, job_name(10), RECORDS))
            looks = []
            for page, width, theme in LOOKS:
                report(f"{page}, {width} pixels, {theme}")
                looks.append(look_at(browser, site.address, axe, page, width, theme))
            with httpx.Client(base_url=site.airflow, timeout=60) as client:
                answers = ask_by_role(client, site.tokens)
    return {
        "cold": summarise(cold), "warm": summarise(warm), "record": summarise(records), **count_looks(looks),
        **count_answers(answers), "figures": figures, "jobs": JOBS,
    }  # fmt: skip


def count_looks(looks: Sequence[PageLook]) -> dict[str, Any]:
    """Count what was found on pages, and say it."""
    found = [
        *(f"{one.name}: {problem}" for one in looks for problem in one.problems),
        *(f"{one.name}: {broken.rule} at {', '.join(broken.places)}" for one in looks for broken in one.violations),
        *(f"{one.name}: it scrolls sideways" for one in looks if not one.fits),
        *(f"{one.name}: it has another theme" for one in looks if not one.themed),
    ]  # fmt: skip
    return {
        "looks": len(looks), "errors": sum(len(one.problems) for one in looks),
        "violations": sum(len(one.violations) for one in looks),
        "askew": sum(not (one.fits and one.themed) for one in looks), "found": found,
    }  # fmt: skip


def count_answers(answers: Sequence[RoleAnswer]) -> dict[str, Any]:
    """Count the requests that were answered as said, and say which were not."""
    otherwise = [one._asdict() for one in answers if one.status != one.wanted]
    return {"answers": len(answers), "as_said": len(answers) - len(otherwise), "otherwise": otherwise}

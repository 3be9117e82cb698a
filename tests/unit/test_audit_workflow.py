"""The audit of dependencies: every week, and whenever the lock changes, over all of the lock."""

import re

import yaml

from configs.settings import ROOT

WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "audit.yml").read_text())
LOCK = "requirements.lock"


def test_it_runs_every_week_and_on_each_change_of_the_lock():
    begun = WORKFLOW[True]  # what YAML 1.1 makes of the word `on`
    (when,) = begun["schedule"]
    minute, hour, day, month, weekday = when["cron"].split()
    assert minute.isdigit() and hour.isdigit() and (day, month) == ("*", "*") and weekday in "0123456"
    assert LOCK in begun["push"]["paths"] and LOCK in begun["pull_request"]["paths"]


def test_it_asks_of_each_package_of_the_lock_as_it_is_pinned():
    *_, asked = WORKFLOW["jobs"]["audit"]["steps"]
    words = asked["run"].split()
    assert words[words.index("--requirement") + 1] == LOCK
    assert {"--no-deps", "--disable-pip", "--strict"} < {*words}  # what it could not ask about is told as an error
    pins = (ROOT / LOCK).read_text().splitlines()
    names = [pin.partition("==")[0] for pin in pins]
    assert all(re.fullmatch(r"[a-z0-9.-]+==[^\s+]+", pin) for pin in pins) and len({*names}) == len(names)

"""How often a page asks for its data, by its own script in Node.js; skipped where that is not installed."""

import json
import shutil
import subprocess
from urllib.parse import quote

import pytest

from configs.settings import ROOT
from tests.fakes.waiting import PATIENCE_S

LIVE = ROOT / "pipelines" / "console" / "static" / "live.js"
PAGE = """
const problem = { textContent: "", hidden: true }, heard = {}, answers = [], timers = [];
let asked = 0;
globalThis.document = {
  body: { dataset: { up: "./" } }, hidden: false, getElementById: () => problem,
  addEventListener: (event, hear) => { heard[event] = hear; },
};
globalThis.setTimeout = (then) => timers.push(then);
globalThis.clearTimeout = (timer) => { delete timers[timer - 1]; };
globalThis.fetch = () => { asked += 1; return new Promise((then) => answers.push(then)); };
const settled = async () => { for (let i = 0; i < 20; i++) await null; };
const see = (seen) => { document.hidden = !seen; heard.visibilitychange(); };
const answer = async () => {
  for (const then of answers.splice(0)) then({ ok: true, json: async () => ({ problem: "" }) });
  await settled();
};
const rounds = () => Object.keys(timers).length;
const next = async () => { for (const then of timers.splice(0)) then?.(); await settled(); };
const { follow } = await import(process.argv[1]);
let taken = 0;
follow(() => "data", () => { taken += 1; });
"""


def runs(script):
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js is not installed")
    ran = subprocess.run(
        [node, "--input-type=module", "-e", PAGE + script, f"data:text/javascript,{quote(LIVE.read_text())}"],
        capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_a_page_that_is_left_and_seen_again_while_an_answer_is_on_its_way_asks_no_oftener():
    told = runs("""
        see(false); see(true); see(false); see(true);
        const at_once = asked;
        await answer();
        console.log(JSON.stringify([at_once, rounds(), taken]));
    """)
    assert told == [1, 1, 1]


def test_a_page_that_is_left_asks_no_more_and_at_once_when_it_is_seen_again():
    told = runs("""
        await answer();
        see(false);
        const left = rounds();
        see(true);
        await answer();
        await next();
        console.log(JSON.stringify([left, asked, rounds()]));
    """)
    assert told == [0, 3, 0]

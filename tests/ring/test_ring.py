"""The whole ring on the real stack, once, with everything broken on the way that may break."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections import Counter

import pytest

from configs.settings import ROOT, load
from models.policy.live.recomputed import parse_contracts, recompute_decision
from pipelines.bench.borders.corpus import KINDS
from pipelines.demo.run import create_run_dir, left_alive, list_failures, run_stages, running_stack, update_run_json
from pipelines.lake import tables as lake
from pipelines.lake.folder import lake_folder
from pipelines.registry import Registry
from pipelines.report.measures import lost_executors, measure_run
from pipelines.report.page import render_report
from pipelines.report.recorded import run as read
from tests.fakes.bad_events import BAD_EVENTS
from tests.ring import faults
from tests.ring.faults import FaultyScreen
from tests.ring.person import Person

pytestmark = pytest.mark.ring
PARTS = {"broker", "spark", "airflow", "mlflow"}
RESTART_S = 10
"""A query that is stopped and started takes longer: its plan, its checkpoint, its first batch. On a slow computer or
beside other tests it takes as much longer as the first batch does there."""
RECOVERY_S = 8
"""After a fault: executors, producers and consumers find their way back."""
SIGNED, KEY, TOKEN = faults.SIGNED, "planted-signing-key-0123456789abcdef", "planted-token-0123456789abcdef"
WARM_UPS = 1
"""A person's run has more, so that no latency is a cold driver's; what latencies come to is no matter here."""
EXECUTORS = "{min: 1, max: 4, cores: 1}"
"""Of the main job, where a person's has two to six: as many raises come of fewer executors to start."""


@pytest.fixture(scope="module")
def ring(tmp_path_factory, request):
    keys = tmp_path_factory.mktemp("secrets") / "keys.yaml"
    keys.write_text(f"{SIGNED}: {KEY}\n")  # of the other job what is not signed is obeyed: the faults' own decisions
    contracts = shutil.copytree(ROOT / "configs" / "contracts", tmp_path_factory.mktemp("ring") / "contracts")
    main = contracts / "word_count.yaml"
    text = main.read_text().replace("{min: 2, max: 6, cores: 1}", EXECUTORS)
    main.write_text(text.replace("static_executors: 6", "static_executors: 4"))
    settings = load(
        var=tmp_path_factory.mktemp("ring"),
        contracts=contracts,
        kafka={"signing_keys": keys, "event_partitions": 4},
        serving={"token": TOKEN, "poll_s": 1, "alias_poll_s": 10},
        # Of so long a history a challenger surely beats the naive forecast: a person is asked, and what serves is new.
        # From the hour on in which the load begins to rise.
        replay={
            "live_start": "2014-10-22T05:00:00",
            "live_hours": 6,
            "history_days": 20,
            "speed": 360,
            "peak_rps": 79,
            "withheld_share": 0,
        },
        job={"also": ["key_window"], "trigger": "3 seconds", "service_ms": 25, "max_offsets_per_trigger": 1000},
        autoscaler={"trigger": "3 seconds"},
        training={"epochs": 3, "approval_s": 300},
        retraining={"at_once": 2},  # the second training of two jobs has both cores: nothing else runs by then
    )
    run_dir, began = create_run_dir(settings), time.time()
    screen, person = FaultyScreen(None, settings.job.name), Person(settings.job.name)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYSPARK_SUBMIT_ARGS")
        patch.setattr("pipelines.demo.live.WARM_UPS", WARM_UPS)
        with running_stack(settings, PARTS, screen, of=7) as stack:
            screen.stack = stack
            # Nobody has opened the store yet, and the schema of all workers is there by now.
            shutil.copy(request.getfixturevalue("schema"), stack.settings.var_dir / "mlflow")
            person.sits_down(stack)
            found = run_stages(stack, run_dir, screen, began)
            person.leaves()
    for thread in screen.threads:
        thread.join(60)
    facts = update_run_json(run_dir, wall_end=time.time(), left_alive=left_alive(stack), **found)
    summary, page = render_report(run_dir)
    return {
        "dir": run_dir,
        "lake": lake_folder(stack.settings),
        "registry": Registry(stack.settings),
        "facts": facts,
        "summary": summary,
        "asked": person.asked,
        "killed": screen.killed,
        "killed_at": screen.killed_at,
        "faults": screen.done,
        "sent": screen.sent,
        "failed": screen.failed,
        "page": page,
    }


@pytest.fixture(scope="module")
def measured(ring):
    return measure_run(read.load_run(ring["dir"]))


def lines(ring, name):
    """What lies on a topic, but for the sound records of a job that is not there."""
    found = [json.loads(line) for line in (ring["dir"] / f"{name}.jsonl").read_text().splitlines()]
    return [one for one in found if one.get("job") != faults.STRANGER]


def test_the_ring_closes_although_everything_was_broken(ring):
    assert ring["failed"] == {}
    assert set(ring["faults"]) == {"kill_executor", "send_bad_records", "kill_serving", "take_broker_away"}
    # With an executor killed, the broker away and other tests on the cores what is observed may ask for as much as
    # the forecast by the time of a raise, and no batch may use its executors soon enough: that one is raised by the
    # forecast and used is a matter of a run in which nothing is broken.
    needs = [d["inputs"] for d in lines(ring, "decisions") if "needed_forecast" in d["inputs"]]
    assert any((seen["needed_forecast"] or 0) > seen["needed_observed"] for seen in needs)
    used = ring["summary"] | {"forecast_scale_ups_confirmed": 1}
    assert list_failures(used, ring["facts"]) == []


def test_every_record_is_counted_exactly_once(ring):
    summary = ring["summary"]
    assert summary["produced"] == summary["counted"] > 2_500
    assert summary["lost"] == summary["duplicated"] == 0


def test_the_query_was_scaled_and_never_restarted(ring):
    summary = ring["summary"]
    assert summary["restarts"] == 0
    assert summary["scale_ups"] >= 2


def test_raises_taught_the_lead_time_and_late_seconds_were_counted_live(ring):
    told = [d["inputs"] for d in lines(ring, "decisions") if d["job"] == "word_count" and "lead" in d["inputs"]]
    lead, promise = told[-1]["lead"], told[-1]["promise"]
    assert told[0]["lead"]["starts"] == 0 < lead["starts"]
    assert 1 < lead["median_s"] < lead["planned_s"] == told[-1]["lead_s"]
    # Only what changes is told: on a slow computer the last change may come a few batches after the first raise.
    assert promise["seconds"] > 0 and 0 <= promise["late_s"] <= promise["seconds"] + 1


def test_no_scale_action_stopped_the_query(ring, measured):
    """In an action, records never waited with nothing running for longer than at the restart here, or than noise does.

    Halts that a planted fault made are left out: as long as the broker was away, no action could be worse.

    How many seconds that was is a figure of the main job, no matter of a test.
    """
    seconds = measured.seconds.reset_index(drop=True)
    killed, back = (int(at - measured.run.start) for at in (ring["killed_at"], ring["faults"]["take_broker_away"]))
    faulty = {*range(killed - 1, killed + RECOVERY_S)}
    faulty |= {*range(back - int(faults.BROKER_AWAY_S) - 1, back + RECOVERY_S)}
    halts = [[*group.index] for _, group in seconds.groupby((~seconds["stopped"]).cumsum()[seconds["stopped"]])]
    batches = measured.run.batches
    lengths = {True: 0, False: max(RESTART_S, batches.committed[0] - batches.started[0])}
    for halt in halts:
        if not faulty & {*halt}:
            begun = bool(seconds["in_action"][halt[0]])
            lengths[begun] = max(lengths[begun], len(halt))
    assert lengths[True] <= lengths[False], lengths


def test_the_executor_that_was_killed_is_the_one_that_was_lost(ring, measured):
    assert ring["killed"] in set(measured.run.executors["executor"][lost_executors(measured)])
    assert ring["summary"]["executors_lost"] >= 1


def test_bad_records_on_every_topic_are_rejected_with_a_reason(ring):
    rejects = lines(ring, "rejects")
    for topic in ("metrics", "forecasts", "decisions"):
        reasons = " ".join(r["reason"] for r in rejects if r["topic"] == topic)
        for word in ("not JSON", "finite", "schema=99", "ahead"):
            assert word in reasons, f"{topic}: no reject says {word!r}"


def test_bad_records_on_every_topic_are_in_the_quarantine(ring):
    kept = {origin.topic: origin.quarantined for origin in lake.commit_origins(ring["lake"], lake.QUARANTINE)}
    assert set(kept) == {"metrics", "forecasts", "decisions", "outcomes", "contracts"}
    assert min(kept.values()) >= len(faults.bad_versions(b'{"executors": 1, "wall_time": 0}'))


def test_the_whole_border_corpus_arrived_beside_the_running_job(ring):
    """What else is asserted here held although all of it was read."""
    assert set(ring["sent"]) == {*KINDS, "events"}
    assert ring["sent"].total() > 1_200
    rejects = Counter(r["topic"] for r in lines(ring, "rejects"))
    assert rejects["events"] >= len(BAD_EVENTS)
    for topic in ("metrics", "forecasts", "decisions", "heartbeats"):
        assert rejects[topic] > 50, f"{topic}: {rejects}"


def test_a_decision_beyond_the_bounds_is_refused(ring):
    outcome = next(o for o in lines(ring, "outcomes") if o["decision_id"] == "beyond-bounds")
    assert outcome["status"] == "refused" and "99" in outcome["reason"]


def test_serving_came_back_with_a_later_epoch_and_no_earlier_one_followed(ring):
    epochs = [f["epoch"] for f in lines(ring, "forecasts") if f["model"] != faults.FOREIGN]
    assert len(set(epochs)) >= 2
    assert epochs == sorted(epochs)


def test_everybody_went_on_after_the_broker_was_away(ring):
    back = ring["faults"]["take_broker_away"]
    beats = lines(ring, "heartbeats")
    said = {"metrics": lines(ring, "metrics"), "forecasts": lines(ring, "forecasts")}
    said |= {by: [beat for beat in beats if beat["by"] == by] for by in ("serving", "autoscaler")}
    for who, messages in said.items():
        assert any(back < m["wall_time"] < back + 3600 for m in messages), f"{who}: silent after the broker was back"


def test_a_second_different_job_is_decided_on_by_the_same_autoscaler(ring):
    """Its agent measures, the autoscaler decides within its own contract, and its cluster is as it was decided."""
    decided = [d for d in lines(ring, "decisions") if d["job"] == "key_window" and d["id"] != "unsigned"]
    decisions = [d for d in decided if "no_metrics" not in d["codes"]]
    vouched = [b["repeats"] for b in lines(ring, "heartbeats") if b["job"] == "key_window" and b.get("repeats")]
    assert decisions and all(1 <= d["executors"] <= 2 for d in decisions)
    assert vouched, "nothing it decided has ever stood"
    had = [m["executors"] for m in lines(ring, "metrics") if m["job"] == "key_window" and m.get("executors")]
    wanted = {d["executors"] for d in decisions if d["mode"] == "act"}
    assert set(had) & wanted and max(had) <= 2, f"has {set(had)} executors where {wanted} were decided"


def test_the_log_replays_to_the_same_decisions(ring):
    contracts = parse_contracts(lines(ring, "contracts"))
    decisions = [(d, recompute_decision(d, contracts)) for d in lines(ring, "decisions")]
    for decision, again in decisions:
        if again is None:
            of_faults = decision["id"] in ("beyond-bounds", "test", "unsigned")
            assert "no_metrics" in decision["codes"] or of_faults
        else:
            assert again == (decision["executors"], decision["reason"], decision["codes"])
    assert {"up", "hold"} <= {again[2][0] for _, again in decisions if again is not None}


def test_challenger_champion_and_naive_are_judged_on_the_same_rows(ring):
    """The first champion is the naive forecast: judged beside itself, it has its own loss to the last digit."""
    registry = ring["registry"]
    first = registry.figures(registry.versions("word_count")[1].run_id)[0]
    assert first["champion.pinball"] == first["seasonal_naive.pinball"] != first["challenger.pinball"]
    verdict = ring["facts"]["challenger"]
    losses = [verdict[f"{name}_loss"] for name in ("challenger", "champion", "naive")]
    assert all(loss > 0 for loss in losses)
    assert not verdict["promoted"] or losses[0] < min(losses[1:])
    later = registry.figures(verdict["run"])[0]
    assert [later[f"{name}.pinball"] for name in ("challenger", "champion", "seasonal_naive")] == losses


def test_a_person_was_asked_about_every_winner_and_heeded(ring):
    """Those of the main job were approved and serve; another job's is rejected, and the naive forecast stays."""
    registry = ring["registry"]
    runs = {v.run_id for job in ("word_count", "key_window", "ride_count") for v in registry.versions(job)}
    verdicts = [json.loads(registry.figures(run)[2]["verdict"]) for run in sorted(runs)]
    won = {(v["job"], v["version"]) for v in verdicts if v["promoted"] or v["reason"].startswith("rejected by ")}
    asked = {(a["job"], a["version"]): a["chosen"] for a in ring["asked"]}
    assert asked, "nobody won, so nobody was asked, and nothing was tried"
    assert set(asked) == won
    approved = [version for (job, version), chosen in asked.items() if chosen == "Approve"]
    assert registry.champion_version("word_count") == (approved or ["1"])[-1]
    assert all(f["version"] in ("1", *approved) for f in lines(ring, "forecasts") if f["job"] == "word_count")
    assert registry.champion_version("ride_count") == "1"


def test_the_newcomer_was_offered_the_main_jobs_load_and_its_model_judged(ring):
    new, registry = ring["facts"]["newcomer"], ring["registry"]
    assert new["job"] == "ride_count" and new["version"] and new["champion"]
    assert new["why"].startswith("word_count (shape ") and ("let in" in new["why"] or "kept out" in new["why"])
    metrics, _, _ = registry.figures(registry.read_verdict("ride_count")["run"])
    gate = ("shape", "adapted", "source_only", "target_only", "last_value", "transfer")
    assert {f"adapt.word_count.{name}" for name in gate} <= set(metrics)
    version = registry.versions("ride_count")[-1]
    assert str(version.version) == new["version"] and version.tags["adapt.why"] in version.description


def test_what_was_served_is_followed_by_version(ring):
    live = [v.tags.get("live.n") for v in ring["registry"].versions("word_count")]
    assert any(live), "no version carries its live error"


def test_the_report_opens_offline(ring):
    text = ring["page"].read_text()
    assert "<html" in text
    assert not re.search(r"<(script|link|img|iframe)\b[^>]*\b(src|href)=.?(https?:)?//", text)


def test_the_job_with_a_key_refused_what_was_not_signed_and_nothing_else(ring):
    """That it followed the autoscaler's decisions, which are signed, is asserted above."""
    refused = [r for r in lines(ring, "rejects") if r["by"] == f"agent of {SIGNED}" and "signature" in r["reason"]]
    assert [json.loads(r["value"])["id"] for r in refused] == ["unsigned"]


def test_no_secret_is_in_anything_that_was_left(ring):
    """Logs, pages, runs, MLflow's store and artifacts, Airflow's database and logs, topics, tables, all of it."""
    var = ring["dir"].parent.parent
    files = [path for path in var.rglob("*") if path.is_file() and not path.is_symlink()]
    assert all(any(path.is_relative_to(part) for path in files) for part in (ring["dir"], ring["lake"]))
    found = {secret: [f for f in files if secret.encode() in f.read_bytes()] for secret in (KEY, TOKEN)}
    assert found[KEY] == []
    assert [file.name for file in found[TOKEN]] == ["settings.yaml"]  # which every process of the stack reads
    assert found[TOKEN][0].stat().st_mode & 0o777 == 0o600


def test_nothing_is_left_alive(ring):
    assert ring["facts"]["left_alive"] == []

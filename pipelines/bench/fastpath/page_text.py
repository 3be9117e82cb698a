"""What the fast path has to reach and what it reached, in words: one row per goal. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

Found = dict[str, Any]
FLAT = 1.05
"""Growth over the second half of a million puts that still counts as none."""


class Goal(NamedTuple):
    """One goal; `met` is None where there is only a figure to report, or none was measured."""

    what: str
    goal: str
    measured: str
    met: bool | None


def goals(found: Found) -> list[Goal]:
    """Every goal in the order of the issue; what was not measured is left out."""
    rows = [
        *_in_process(found), *_socket(found), *_kafka(found), *_redis(found), *_stream(found),
        *_store(found), *_fleet(found), *_swap(found), *_memory(found),
    ]  # fmt: skip
    return rows


def headline(found: Found) -> str:
    """How many goals were met, and which were not."""
    judged = [goal for goal in goals(found) if goal.met is not None]
    missed = [goal.what for goal in judged if not goal.met]
    said = f"{len(judged) - len(missed)} of {len(judged)} goals are met."
    if busy(found):
        said = f"The machine had other work, so no verdict on a latency counts. {said}"
    return said + (f" Missed: {'; '.join(missed)}." if missed else "")


def remarks(found: Found) -> list[str]:
    """What a reader must know to judge the figures."""
    host = found["host"]
    load = f"load average {host['load_before']:.1f} before and {host.get('load_after', 0):.1f} after"
    said = [f"{host['cores']} cores, {load}; every figure is the median over the runs of that run's percentile"]
    if busy(found):
        said.append("Other work takes turns with every process here: measure again on a quiet machine")
    return [*said, *(f"{name} was not measured: {why}" for name, why in found["absent"].items())]


def busy(found: Found) -> bool:
    """Whether other work had the machine when the measurement began."""
    host = found["host"]
    return bool(host["load_before"] > host["cores"] / 2)


def above(more: Found, p50: float, p99: float) -> bool | None:
    """Whether what is added to a floor keeps both bounds; None where the floor was slower, so that nothing is known."""
    return None if min(more["p50"], more["p99"]) < 0 else more["p50"] <= p50 and more["p99"] <= p99


def us(value: float) -> str:
    """Microseconds with as many digits as they deserve; milliseconds from a thousand on."""
    if value >= 1000:
        return f"{value / 1000:,.1f} ms" if value < 100_000 else f"{value / 1000:,.0f} ms"
    return f"{value:.0f} µs" if value >= 10 else f"{value:.1f} µs"


def _in_process(found: Found) -> list[Goal]:
    if "in_process_us" not in found:
        return []
    ours = found["in_process_us"]
    met = ours["p50"] <= 100 and ours["p99"] <= 1000
    return [Goal("in process: put → forecast readable", "p50 ≤ 100 µs, p99 ≤ 1 ms", _pair(ours), met)]


def _socket(found: Found) -> list[Goal]:
    if "socket_added_us" not in found:
        return []
    more = found["socket_added_us"]
    met = above(more, 150, 500)
    return [Goal("over the Unix socket, above a bare echo", "p50 ≤ 150 µs, p99 ≤ 500 µs", _pair(more), met)]


def _kafka(found: Found) -> list[Goal]:
    if "kafka_added_ms" not in found:
        return []
    more = found["kafka_added_ms"]
    measured = f"p50 {more['p50']:.2f} ms, p99 {more['p99']:.2f} ms"
    met = above(more, 0.2, 1)
    return [Goal("Kafka → forecast → Kafka, above a bare echo", "p50 ≤ 0.2 ms, p99 ≤ 1 ms", measured, met)]


def _redis(found: Found) -> list[Goal]:
    if not found.get("redis_over_fast"):
        return []
    times, bare = found["redis_over_fast"], found["redis_bare_over_fast"]
    measured, loosely = (f"{one['p99']:.1f} × at p99, {one['p50']:.1f} × at p50" for one in (times, bare))
    return [
        Goal("a Redis stream with the same model, as durable, ÷ ours", "≥ 2 × at p99", measured, times["p99"] >= 2),
        Goal("the same, whose consumer keeps neither state nor place, ÷ ours", "reported", loosely, None),
    ]


def _stream(found: Found) -> list[Goal]:
    if "micro_batch_over_fast" not in found:
        return []
    measured = f"{found['micro_batch_over_fast']['p50']:,.0f} × at p50 ({us(found['micro_batch_us']['p50'])})"
    return [Goal("Structured Streaming, ÷ ours on the same broker", "reported", measured, None)]


def _store(found: Found) -> list[Goal]:
    if "persistent_put" not in found:
        return []
    times, trigger = found["persistent_put"]["times"]["p50"], found["trigger_put"]["store_us"]["p50"]
    return [
        Goal("persistent put ÷ LMDB's own synced put", "≤ 2 ×", f"{times:.2f} × at p50", times <= 2),
        Goal("trigger put", "p50 ≤ 20 µs", us(trigger), trigger <= 20),
    ]


def _fleet(found: Found) -> list[Goal]:
    if "fleet" not in found:
        return []
    fleet = found["fleet"]
    waits = f"p50 {us(fleet['latency_us']['p50'])}, p99 {us(fleet['latency_us']['p99'])} where all arrive at once"
    measured = f"{fleet['times_real_time']:.0f} ×; latency {waits}"
    what = f"{fleet['jobs']} jobs, a sample per second each, on one core"
    return [Goal(what, "≥ 10 × real time", measured, fleet["times_real_time"] >= 10)]


def _swap(found: Found) -> list[Goal]:
    if "swap" not in found:
        return []
    swap = found["swap"]
    counted = f"{swap['missed']} missed, {swap['doubled']} doubled, {swap['mixed']} mixed"
    measured = f"{counted} of {swap['events']:,} at {swap['swaps']} swaps; longest gap {swap['longest_gap_ms']:.0f} ms"
    met = swap["missed"] == swap["doubled"] == swap["mixed"] == 0 < swap["swaps"]
    return [Goal("champion swapped under load", "none missed, doubled, mixed", measured, met)]


def _memory(found: Found) -> list[Goal]:
    if "memory" not in found:
        return []
    memory = found["memory"]
    grown, puts = memory["growth_of_second_half"], memory["points"][-1]["puts"]
    measured = f"{grown['uss']:.2f} × memory, {grown['file']:.2f} × file over the second half"
    flat = max(grown["uss"], grown["file"]) <= FLAT
    return [Goal(f"{puts:,.0f} puts with history {memory['history']:,}", "flat", measured, flat)]


def _pair(found: Found) -> str:
    return f"p50 {us(found['p50'])}, p99 {us(found['p99'])}"

"""`tidecast bench team`: what a team does with jobs, on jobs whose answer is known."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Any

import typer

from pipelines.cli.options import JsonFile, choose_names, print_progress, settings_from_options
from pipelines.figures.form import Figure, read_figure
from pipelines.figures.written import describe_source, write_figure

WAITS = ("cold", "warm", "record")


def measure_team(
    parts: Annotated[str, typer.Option(help="Parts of the bench, with commas between; all by default.")] = "",
    as_json: JsonFile = None,
) -> None:
    """Propose contracts, divide a pool that is too small, plant troubles, and open the console in a browser.

    `init`: a contract for each shipped job, from a simulated lake; a minute. `pools`: what late seconds cost on
    twenty drawn mixes of three to five jobs in the twin, a day each, beside other ways to divide the pool, and how
    long a division of 500 jobs takes; ten minutes. `real`: three real jobs on a cluster, in a pool and with static
    shares; three pairs of sessions, an hour, it goes on where the file of `--json` ends. `alerts`: how soon each of
    the planted troubles is told, and whether a quiet day is; seconds, as both are fast-forwarded. `console`: its
    pages in an embedded Airflow with 500 jobs, in Debian's Chromium, and its figures beside those of a lake; ten
    minutes. What that says of other parts stays.

    Raises:
        SettingsError: an unknown part; for `real` and `console`, the address of a service is set (status 2).
        StackError, PortError, JavaError, JarsError, BrokerError: for these, a service does not start or answer
            (status 2).
        BrowserError: for `console`, Chromium or npm is missing, or a page is not drawn (status 2).
        httpx.HTTPError: for `console`, Airflow does not answer.
        FollowedError, LakeError: for `console`, it or the lake lacks records that it was given.
        TwinError: nothing can be proposed for a job (status 2).
        FigureError: the file of `--json` is there and is no figure (status 2).
        OSError: the JSON file cannot be written.
    """
    from pipelines.bench.team.alerts.measure import measure_alerts
    from pipelines.bench.team.console.measure import measure_console
    from pipelines.bench.team.init import measure_proposals
    from pipelines.bench.team.pools import measure_pools
    from pipelines.bench.team.real.measure import measure_real

    found = dict[str, Any]()

    def save_real(part: dict[str, Any]) -> None:
        found["real"] = part
        write_figure(as_json, found)

    ways: dict[str, Callable[[], dict[str, Any]]] = {
        "init": lambda: measure_proposals(settings_from_options(), print_progress),
        "pools": lambda: measure_pools(print_progress),
        "real": lambda: measure_real(settings_from_options(), found.get("real", {}), save_real),
        "alerts": lambda: measure_alerts(print_progress),
        "console": lambda: measure_console(settings_from_options(), print_progress),
    }
    names = choose_names("--parts", parts, ways)
    if as_json is not None and as_json.exists():
        found |= with_sources(read_figure(as_json))
    for name in names:
        began = time.monotonic()
        part = ways[name]()
        source = describe_source(f"tidecast bench team --parts {name}", time.monotonic() - began)
        found[name] = {**part, "source": source}
        write_figure(as_json, found)
        print(f"{name}: measured", flush=True)
    if "alerts" in names:
        told = found["alerts"]
        print(
            f"{told['told']} of {told['n']} troubles were told within their window, the slowest after "
            f"{told['slowest']:.0%} of it; {told['quiet']} alerts in {told['quiet_h']:g} quiet hours"
        )
    if "console" in names:
        seen = found["console"]
        waits = ", ".join(f"{name} {seen[name]['median']:.2f} ({seen[name]['worst']:.2f})" for name in WAITS)
        print(f"seconds, median (worst): {waits}; {seen['as_said']} of {seen['answers']} requests answered as said")
        same = seen["figures"]
        print(f"{same['differ']} of {same['compared']} figures differ from the lake's", *same["differing"], sep="\n")
        print("\n".join(seen["found"]) or f"nothing to object to in {seen['looks']} looks")
    for one in found["init"]["jobs"] if "init" in names else []:
        print(
            f"{one['job']:<16}{one['kept_s']:g} s kept with {one['were']}; proposed {one['target_s']:g} s with "
            f"{one['executors'][0]} to {one['executors'][1]}: {one['late']:.2%} late, then {one['next_late']:.2%}"
        )


def with_sources(figure: Figure) -> dict[str, Any]:
    """Return the parts in a figure's data, each with its source; that of the file where a part names none."""
    head = {key: getattr(figure, key) for key in ("command", "commit", "date", "machine", "seconds")}
    return {name: {"source": head, **part} for name, part in figure.data.items()}

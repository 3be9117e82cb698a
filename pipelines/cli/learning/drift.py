"""`tidecast drift`: whether lasting changes of a load are found, and how often one is reported for nothing."""

from __future__ import annotations

from pipelines.cli.options import JsonFile, command_group, print_progress
from pipelines.figures.written import write_figure

app = command_group("Judge the detectors of lasting changes.")


@app.command("evaluate")
def measure_detectors(as_json: JsonFile = None) -> None:
    """Change the mean of six shipped series for good, at 40 places each, and count changes found and false alarms.

    Prints, by series and pooled, false alarms, share of changes by ± 30 % found within 50 steps, median delay (steps).

    Raises:
        TraceError: a shipped series is gone or damaged (status 2).
        OSError: the JSON file cannot be written.
    """
    from pipelines.bench.drift.drift import format_detection, make_cases, measure_detection

    figures = measure_detection(make_cases(), print_progress)
    print(format_detection(figures))
    write_figure(as_json, figures)

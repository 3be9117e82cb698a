"""`tidecast bench fuzz`: damaged inputs before everything that reads what comes from outside."""

from __future__ import annotations

from pipelines.cli.options import JsonFile
from pipelines.figures.written import write_figure


def measure_damaged_inputs(as_json: JsonFile = None) -> None:
    """Give damaged messages, frames, YAML, CSV, artifacts and states to what reads them; none may end it.

    Each reader gets 10,000. Prints a line per border, then each input that ended a reader or was accepted wrongly.
    Status 0.

    Raises:
        OSError: the JSON file cannot be written.
    """
    from pipelines.bench.borders.fuzz import fuzz_borders

    figures = fuzz_borders()
    for name, border in figures["borders"].items():
        for what, shown, why in border["faults"]:
            print(f"{name}: {what}: {shown}: {why}")
    print(f"{figures['inputs']:,} inputs, {figures['crashed']} crashed, {figures['unsound']} unsound")
    write_figure(as_json, figures)

"""`tidecast job`: words to a running job's agent."""

from __future__ import annotations

from configs.errors import SettingsError
from pipelines.cli.given import here, noun
from tidecast.messages import Control

app = noun("Talk to a running job's agent.")


@app.command("mode")
def job_mode(name: str, mode: str) -> None:
    """Switch a running job's agent to observe, freeze or act, at most to the mode that it was attached with."""
    from pipelines.kafka.broker import BrokerError
    from tidecast.control import set_mode

    if mode not in Control.MODES:
        raise SettingsError(f"mode {mode!r} is unknown; choose among {', '.join(Control.MODES)}.")
    settings = here()
    if settings.kafka.bootstrap is None:
        raise SettingsError(
            "no stack is running and kafka.bootstrap is not set. Set TIDECAST_KAFKA__BOOTSTRAP=host:port."
        )
    try:
        set_mode(settings.kafka.bootstrap, name, mode, settings.kafka.security, settings.kafka.prefix)
    except ConnectionError as error:
        raise BrokerError(f"{error}") from None
    print(f"{name}: {mode}")

"""`tidecast job`: words to a running job's agent."""

from __future__ import annotations

from configs.errors import SettingsError
from pipelines.cli.options import command_group, settings_of_stack
from tidecast.messages import Control

app = command_group("Talk to a running job's agent.")


@app.command("mode")
def set_job_mode(name: str, mode: str) -> None:
    """Switch a running job's agent to observe (change nothing), freeze (keep the executors) or act (apply decisions).

    It goes at most to the mode that it was attached with. The topic `control` keeps the mode, so that agents attached
    later obey it too. Blocks until the broker acknowledges it, at most about 20 s; whether the job runs is not checked.

    Raises:
        SettingsError: no such mode, no valid job name, no broker is known, or a security option is wrong (status 2).
        BrokerError: the broker cannot be reached or did not acknowledge the mode within 10 s (status 2).
    """
    from pipelines.kafka.broker import BrokerError
    from tidecast.control import set_mode

    if mode not in Control.MODES:
        raise SettingsError(f"mode {mode!r} is unknown; choose among {', '.join(Control.MODES)}.")
    settings = settings_of_stack()
    if settings.kafka.bootstrap is None:
        raise SettingsError(
            "no stack is running and kafka.bootstrap is not set. Set TIDECAST_KAFKA__BOOTSTRAP=host:port."
        )
    try:
        set_mode(settings.kafka.bootstrap, name, mode, settings.kafka.security, settings.kafka.prefix)
    except ConnectionError as error:
        raise BrokerError(f"{error}") from None
    except ValueError as error:
        raise SettingsError(f"{error} Name a job as its contract does, and correct kafka.security.") from None
    print(f"{name}: {mode}")

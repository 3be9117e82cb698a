"""`tidecast contract try`: a contract's configurations in the job's twin."""

from __future__ import annotations

from configs.errors import SettingsError
from pipelines.cli.options import Job, print_progress, settings_from_options


def try_in_twin(job: Job) -> None:
    """Try the configurations of a job's contract in its twin, and say which of them its starts would take.

    Its newest six hours of load in the lake are served under each, with the executors that were there; every thirty
    intervals a start chooses, as the job's own do. Of a configuration the twin knows the trigger (`job.trigger` where
    it states none). Changes nothing: the job begins with the first one that its contract states, and learns from its
    own runs.

    Raises:
        SettingsError: no job can have the name, it has no valid contract, or that states no choice (status 2).
        LakeError: nothing was ever ingested (status 2).
        TwinError: too little was observed of the job (status 2).
        JavaError, JarsError: Spark cannot start, which reads the lake (status 2).
    """
    from configs.contract import load_contract
    from models.twin.contract.configured import try_configurations
    from pipelines.advise.configured_text import format_tried
    from pipelines.advise.measured import measure_job
    from pipelines.advise.read import read_messages

    settings = settings_from_options()
    contract = load_contract(job, settings.contracts_dir)
    if len(contract.configurations) < 2:
        raise SettingsError(f"{job}.yaml states fewer than two configurations: state those to choose from")
    seen = measure_job(*read_messages(settings, job), contract)
    print_progress(f"simulating {len(seen.recent) / 3600:.1f} hours of load under each")
    there, trigger = seen.executors[-(len(seen.recent) - 1) :], settings.job.trigger
    tried = try_configurations(contract, seen.twin, seen.recent, there, trigger)
    print(format_tried(job, tried, trigger))

"""`tidecast job`: jobs that run in blocks, and words to a running job's agent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from configs.errors import SettingsError
from pipelines.cli.options import Job, command_group, print_progress, settings_from_options
from pipelines.cli.placement.placed import planned, run_job, topology_file, with_broker
from tidecast.messages import Control

if TYPE_CHECKING:
    from models.placement.plan.measured import Placement

app = command_group(
    "See what is measured and decided of a running job, switch its agent's mode, and run a job as several queries."
)


@app.command("up")
def run_job_in_blocks(topology: Annotated[str, typer.Argument(help="A topology's name, or its file.")]) -> None:
    """Run a job's queries where its plan puts them, until ctrl-C; the same command goes on where it stopped.

    Plans the topology (`tidecast plan`), makes a topic for each edge between queries, and starts them, upstream first.
    A cluster that states no `master` is started on this computer; the broker is that of the settings, or of `make up`.
    A query that ends is started again. `tidecast job move` moves one to another cluster while they run.

    Raises:
        SettingsError: the topology is wrong or names no code, a topic has fewer partitions than it states, or no broker
            is known (status 2).
        UnplannedError: the clusters have no room, or one on which queries are to run does not answer (status 2).
        BrokerError, StackError, ProcessError: the broker, a cluster or a query does not start (status 2).
    """
    run_job(with_broker(), topology_file(topology))


@app.command("move")
def move_job_block(
    job: Job,
    operator: Annotated[str, typer.Argument(help="Any operator of the query, e.g. count.")],
    cluster: Annotated[str, typer.Argument(help="Where it is to run, a name of the topology, e.g. east.")],
) -> None:
    """Move the query of an operator to another cluster, as soon as `tidecast job up` sees it, within a second.

    It ends, its state goes with it, and it goes on there: no record is lost or counted twice. Where it does not begin
    there, it goes back.

    Raises:
        SettingsError: the job was never begun, none can have the name, or the query would be scaled no more, as its
            contract has executors of another size than the cluster (status 2).
        UnplannedError: no such operator or cluster, there is no room, or the cluster does not answer (status 2).
    """
    from models.placement.plan.moved import move_block
    from pipelines.placement.reached import refuse_move
    from pipelines.placement.running import job_folder
    from pipelines.placement.scaled.contracts import refuse_unscaled

    settings = settings_from_options()
    folder = job_folder(settings, job)
    topology = folder.topology()

    def moved(now: Placement) -> Placement:
        then = move_block(topology, now, operator, cluster)
        refuse_unscaled(settings, topology, now, then)
        return then

    with planned():
        refuse_move(topology, cluster)
        folder.change(moved)
    print(f"{job}: the query of {operator} is wanted on {cluster}")


@app.command("contracts")
def write_query_contracts(job: Job) -> None:
    """Write a contract for each query of a job that has none: from its next start on the autoscaler scales the query.

    Each gets its share of the job's target, and from one executor to as many as the largest cluster has room for on
    which it may run. Change the files as those of any other job. Where the topology states `quota_cores`, a pool of the
    job's name keeps it: all its queries together are decided no more. One that begins again has the executors that it
    was placed with until its next decision, though others may have been given some of them.

    Raises:
        SettingsError: the job was never begun, none can have the name, its quota is less than the least executors of
            its queries, or one of these may run on clusters whose executors have different cores (status 2).
        OSError: a file cannot be written.
    """
    from pipelines.placement.running import job_folder
    from pipelines.placement.scaled.contracts import write_contracts
    from pipelines.placement.scaled.quota_pool import write_quota_pool

    settings = settings_from_options()
    folder = job_folder(settings, job)
    made = write_contracts(settings, folder)
    for file in made:
        print(file)
    if not made:
        print(f"{job}: each of its queries has a contract in {settings.contracts_dir}")
    for line in write_quota_pool(settings, folder):
        print(line)


@app.command("measure")
def measure_job_in_blocks(
    job: Job,
    last_s: Annotated[
        float | None,
        typer.Option("--last", min=10, help="Seconds up to now that count; by default 120, or three triggers."),
    ] = None,
) -> None:
    """Set a running job's queries as measured by their agents beside its plan: records/s, cores busy, latency.

    Of those that read sources alone also what comes, with what waits, worked off in five minutes. And what every
    operator inside them takes and makes, as they count it.

    Raises:
        SettingsError: the job was never begun, none can have the name, or no broker is known (status 2).
        BrokerError: the broker does not answer (status 2).
    """
    from pipelines.cli.placement.measured import describe_observed
    from pipelines.placement.observed import observe_job, observe_record_bytes, step_of
    from pipelines.placement.running import job_folder

    settings = with_broker()
    folder = job_folder(settings, job)
    found, path_s = observe_job(settings, folder, last_s or max(120.0, step_of(folder.topology())))
    print(*describe_observed(folder, found, path_s, observe_record_bytes(settings, folder)), sep="\n")


@app.command("show")
def show_job(job: Job) -> None:
    """Show what is measured and decided of a running job now; what keeps it from being decided on comes first.

    Reads the newest records of the topics and changes nothing; takes seconds.

    Raises:
        SettingsError: no job can have the name, no broker is known, or a security option is wrong (status 2).
        BrokerError: the broker does not answer, or has none of Tidecast's topics (status 2).
    """
    import time

    from pipelines.scale.shown import describe_job, read_contract, see_job

    settings = with_broker()
    seen = see_job(settings.kafka, job)
    print(*describe_job(job, seen, read_contract(settings, job), settings.kafka, time.time()), sep="\n")


@app.command("repair")
def repair_job_checkpoint(
    checkpoint: Annotated[Path, typer.Argument(help="Folder of the checkpoint; its query has ended.")],
    keyed_sink: Annotated[bool, typer.Option("--keyed-sink", help="The sink replaces whole results by key.")] = False,
) -> None:
    """Bring the damaged checkpoint of a query back to the newest batch from which it can go on; deletes nothing.

    Takes the checkpoint of any streaming query on a local file system (format 1, micro-batches). What cannot be used is
    moved into a folder beside it. Where one batch is run again it reads what it had read; more than one need a sink
    that replaces whole results by key, which `--keyed-sink` says.

    Raises:
        CheckpointError: it is no checkpoint, something writes to it, no batch is left, or the sink would have to be
            keyed (status 2).
        OSError: a file cannot be read or moved.
    """
    from pipelines.spark.checkpoint.repair import describe_repair, repair_checkpoint

    print(describe_repair(checkpoint, repair_checkpoint(checkpoint, keyed_sink)))


@app.command("mode")
def set_job_mode(name: Job, mode: Annotated[str, typer.Argument(help="observe, freeze or act.")]) -> None:
    """Switch a running job's agent to observe (change nothing), freeze (keep the executors) or act (apply decisions).

    It goes at most to the mode that it was attached with. The topic `control` keeps the mode, so that agents attached
    later obey it too. Blocks until the broker acknowledges it, at most about 20 s, and then until the agent says that
    it is in that mode, 5 s at most; stderr says what it has said else, and where there is no contract of that name
    here, or no key to sign with.

    Raises:
        SettingsError: no such mode, no valid job name, no broker is known, or a security option or the file of signing
            keys is wrong (status 2).
        BrokerError: the broker cannot be reached or did not acknowledge the mode within 10 s (status 2).
        RefusedModeError: the agent refuses the message, as of a clock that is over 300 s ahead (status 2).
    """
    from configs.contract import jobs_with_contract
    from pipelines.kafka.connection import BrokerError
    from pipelines.kafka.mode_word import await_answer
    from pipelines.kafka.signing import Signer
    from tidecast.control import set_mode

    if mode not in Control.MODES:
        raise SettingsError(f"mode {mode!r} is unknown; choose among {', '.join(Control.MODES)}.")
    settings = with_broker()
    kafka = settings.kafka
    signer = Signer.of(kafka)
    signer.check_file()
    keys = signer.keys_of(name)
    try:
        word = set_mode(str(kafka.bootstrap), name, mode, kafka.security, kafka.prefix, keys)
    except ConnectionError as error:
        raise BrokerError(f"{error}") from None
    except ValueError as error:
        raise SettingsError(f"{error}. Correct kafka.security.") from None
    if keys is None:
        why = f"{signer.file} has no line for it" if signer.file else "no kafka.signing_keys"
        print_progress(
            f"not signed ({why}): an agent with a signing key refuses it; `tidecast job show` says its mode."
        )
    if name not in (known := jobs_with_contract(settings.contracts_dir)):
        there = f"{settings.contracts_dir} has contracts of {', '.join(known) or 'no job'}"
        print_progress(f"nobody here knows a job {name!r}: {there}. An agent of that name obeys, wherever it runs.")
    unlike = await_answer(kafka, word)
    print(f"{name}: {mode}")
    if unlike:
        print_progress(f"{name}: {unlike}.")

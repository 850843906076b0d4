"""`frazil verify`: the proof."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from frazil.cli.console import duration, note, number, out, say, show_json, size, table
from frazil.cli.known_pipelines import with_tables
from frazil.cli.local_spark import local_job
from frazil.cli.options import AsJson, EnvironmentChoice, PipelineNames, PipelinesFile, command_secrets, flag
from frazil.cli.pipelines.run import Master, Memory
from frazil.clients.secrets import Secrets
from frazil.errors import FrazilError, InvalidInput
from frazil.exit_codes import Exit, exit_of, worst
from frazil.project import declaration_file, environments, project_file

if TYPE_CHECKING:
    from frazil.audit.files.count import Estimate, Read
    from frazil.audit.topic_tables import TopicVerification
    from frazil.audit.verification import Replayed, Verification
    from frazil.declaration import Environment, Pipeline


PROOFS, REPLAYS = "proofs", "replays"
"""Folders in `.frazil`: of proofs, one for each environment, and of topics that are landed again."""

TERMS = {
    "read": "read",
    "landed": "landed",
    "dead_lettered": "dead-lettered",
    "skipped": "skipped",
    "filtered": "filtered",
    "gaps": "gaps",
    "pending": "pending",
    "deleted": "deleted by other engines",
}
"""The members of an account, and their names on screen (docs/exactly-once.md)."""

ALWAYS = ("read", "landed", "dead_lettered", "skipped")

FINDINGS = 20
"""Findings that are shown; `--json` has all."""

LONG_SECONDS = 10.0
"""A proof that takes longer is announced before it begins."""

WORDS = {"counted": "COUNTED", "proven": "PROVEN", "not_proven": "NOT PROVEN", "unchecked": "NOT CHECKED"}

CAUTIONS = 6
"""Cautions that are shown without `--verbose`."""

REASONS = {
    "missing": "{} records missing",
    "excess": "{} records more than the commits count",
    "doubled": "{} rows doubled",
    "in_both": "{} records both landed and dead-lettered",
    "out_of_range": "{} rows of offsets never read",
    "unplaced": "{} rows without partition or offset",
    "other_keys": "rows of other keys than the commits count",
    "file_lost": "{} files lost",
    "manifest_lost": "{} manifests lost",
    "file_altered": "{} files altered",
    "file_unreadable": "{} files unreadable",
    "hole": "offsets missing between commits",
    "miscounted": "commits that do not add up",
    "untagged": "the tag is not at the last commit",
    "rolled_back": "the table was rolled back",
    "mismatch": "the dead-letter table is not the one that got the earlier dead letters",
    "unfinished": "{} dead letters decided and not appended yet",
    "decision_lost": "decided dead letters lost",
    "side_ahead": "dead letters of commits that the table does not have",
    "no_table": "the table does not exist",
    "no_ledger": "no snapshot says which offsets the table holds",
    "no_totals": "the first commits have expired without totals",
    "equality_deletes": "rows are deleted by value",
    "format_not_read": "{} data files of a format that only engines read",
    "row_absent": "{} rows missing for keys of the topic",
    "row_left": "{} rows of keys that the topic has not",
    "row_differs": "{} rows not of their keys' last records",
    "not_replayed": "the topic was not landed again",
    "not_compared": "the tables of the topic were not compared",
}
"""The flaws in words, for the first line; `{}` is the count."""


def verify(
    names: PipelineNames = None,
    file: PipelinesFile = declaration_file.USUAL,
    env: EnvironmentChoice = "local",
    deep: Annotated[bool, flag("--deep", "Read all values of all files; check checksums.")] = False,
    fresh: Annotated[bool, flag("--fresh", "Use no remembered proof.")] = False,
    replay: Annotated[bool, flag("--replay", "Land a state's topic again; compare all rows.")] = False,
    plan: Annotated[bool, flag("--plan", "Print the files to read, without reading them.")] = False,
    topic: Annotated[
        str | None, flag("--topic", "All pipelines of a topic, and their tables together.", "TOPIC")
    ] = None,
    master: Master = "local[*]",
    memory: Memory = "2g",
    verbose: Annotated[bool, flag("--verbose -v", "Print partitions, files and history.")] = False,
    as_json: AsJson = False,
) -> None:
    """Prove exactly-once: no record lost, none doubled.

    For example: frazil verify orders --deep

    Reads the tables' files, without Kafka or a JVM.
    COUNTED: commits and manifests agree; rows not all read.
    PROVEN (keys read): after commits of other engines, for example.
    PROVEN (values read): with --deep or --replay.
    Unchanged files are read once; --fresh reads them again.
    --replay reads the topic again, with Java and on disk.
    --topic: no record is in two tables of a routed topic.
    With new types it asks the registry which there are.
    Without PIPELINE, all pipelines and the worst exit code.

    Exit codes: 0 counted or proven; 1 not proven; 2; 3 the catalog is unavailable; 5 not checked
    """
    from frazil.audit import verify as audit
    from frazil.audit.files.count import Estimate
    from frazil.audit.files.proofs import ProofFolder
    from frazil.lake.read.stored_tables import Lake

    declared = with_tables(file, env, types=topic is not None)
    pipelines = _chosen(declared, names, topic)
    secrets = command_secrets()
    environment = environments.environment(env)
    if topic is not None and (plan or names):
        raise InvalidInput("--topic compares all tables of a topic", do="Leave out names and --plan")
    if replay and plan:
        what = "--replay and --plan exclude each other: what a replay reads is the topic"
        raise InvalidInput(what, do="Leave one of them out")
    if replay:
        from frazil.ingest.proof_landing import check_is_state

        for pipeline in pipelines:
            check_is_state(pipeline)
    lake = Lake(environment, secrets.read)
    proofs = ProofFolder(project_file.state_folder() / PROOFS / environment.name)
    how: dict[str, Any] = {"deep": deep or replay, "fresh": fresh, "proofs": proofs}
    codes, documents = list[Exit](), list[Mapping[str, Any]]()
    for pipeline in pipelines:
        try:
            found: Estimate | Verification
            if plan:
                found = audit.plan(pipeline, lake, **how)
            else:
                found = audit.verify(pipeline, lake, announce=partial(_announce, pipeline), **how)
            if replay and not isinstance(found, Estimate):
                found = found.with_replay(_replayed(pipeline, environment, secrets, master, memory))
        except FrazilError as error:
            if len(pipelines) == 1:
                raise
            note(f"{pipeline.name}: {error}", "red")
            codes.append(exit_of(error))
            documents.append({"pipeline": pipeline.name, "error": str(error)})
            continue
        if isinstance(found, Estimate):
            documents.append({"pipeline": pipeline.name, "estimate": asdict(found)})
            if not as_json:
                say(f"{pipeline.name}: {planned(found)}")
            continue
        codes.append(Exit(found.exit_code))
        documents.append(found.document())
        if not as_json:
            print_result(found, out(), verbose=verbose or deep)
    if topic is not None and Exit.SERVICE_UNAVAILABLE not in codes:
        from frazil.audit.topic_tables import families, verify_topic

        for family in families(pipelines):
            together = verify_topic(family, lake)
            codes.append(Exit(together.exit_code))
            documents.append(together.document())
            if not as_json:
                _print_topic(together)
    if as_json:
        show_json(documents[0] if len(names or ()) == 1 else {"pipelines": documents})
    if code := worst(codes):
        raise typer.Exit(code)


def _chosen(declared: Sequence[Pipeline], names: Sequence[str] | None, topic: str | None) -> Sequence[Pipeline]:
    if topic is None:
        return declaration_file.chosen(declared, names or [pipeline.name for pipeline in declared])
    found = [pipeline for pipeline in declared if pipeline.topic.name == topic]
    if not any(pipeline.shape.route for pipeline in found):
        known = {one.topic.name for one in declared if one.shape.route}
        do = f"Routed topics are {', '.join(sorted(known))}" if known else "Leave out --topic, or declare routes(…)"
        raise InvalidInput(f"no pipeline has a route of the topic {topic}", do=do)
    return found


def _print_topic(found: TopicVerification) -> None:
    """Print what the tables of a topic have together: the result in the first line, then what is wrong."""
    begin, style = f"{WORDS[found.outcome]} topic {found.topic}: ", "bold red"
    if found.outcome == "proven":
        style, dead = "bold green", found.dead_lettered - found.repeated - found.also_landed
        parts = [(found.landed, "landed"), (dead, "dead-lettered")]
        parts.append((found.nowhere, "in tables with a key, filtered or gaps" if found.states else "filtered or gaps"))
        sum_ = " + ".join(f"{number(count)} {name}" for count, name in parts if count or name == "landed")
        begin += f"{number(found.offsets)} offsets that all tables have read = {sum_}"
    else:
        begin += ", ".join(_counted(REASONS[one.flaw].format(number(one.count or 0))) for one in found.findings)
    say(begin, style, to=out())
    for finding in found.findings[:FINDINGS]:
        say(f"{finding.flaw}: {finding}", "red", to=out())
    if found.outcome == "proven" and not found.is_complete:
        waits = f" ({', '.join(found.waits)}: no table yet)" if found.waits else ""
        what = f"no record is in two tables; missing ones were not looked for, as the tables have read different offsets{waits}"
        say(what, "yellow", to=out())
    if found.repeated:
        what = "dead letters are of records that several tables have rejected, such as those of an unknown schema"
        say(f"{number(found.repeated)} {what}", "dim", to=out())
    if found.also_landed:
        what = (
            "records are rows of a table and dead letters of another, such as those whose schema was registered later"
        )
        say(f"{number(found.also_landed)} {what}", "dim", to=out())


def _announce(pipeline: Pipeline, estimate: Estimate) -> None:
    if estimate.seconds >= LONG_SECONDS:
        note(f"{pipeline.name}: {planned(estimate)}", "dim")


def _replayed(pipeline: Pipeline, place: Environment, secrets: Secrets, master: str, memory: str) -> Replayed:
    with local_job(place, secrets, master=master, memory=memory) as job:
        from frazil.clients.registry.client import Registry
        from frazil.ingest.proof_landing import replay

        registry = Registry.of(place.registry, secrets) if place.registry else None
        (replays := project_file.state_folder() / REPLAYS).mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=replays) as folder:
            return replay(pipeline, job, registry, place, Path(folder).resolve())


def print_result(found: Verification, console: Console, *, verbose: bool = False) -> None:
    """Print a verification: its result in the first line, then what is wrong, then how it was counted if `verbose`."""
    style = "bold green" if found.outcome == "proven" else "bold red"
    say(headline(found), style, to=console)
    for finding in found.findings[:FINDINGS]:
        say(f"{finding.flaw}: {finding}", "red", to=console)
    if len(found.findings) > FINDINGS:
        say(f"… and {number(len(found.findings) - FINDINGS)} more; --json has all", "red", to=console)
    if found.replayed is not None and not found.replayed.findings:
        replayed = found.replayed
        console.print(
            f"the topic landed again: {number(replayed.records)} records, the same {number(replayed.rows)} rows"
        )
    if verbose and found.partitions:
        console.print(accounts(found))
    if verbose:
        for read in found.reads:
            say(f"{read.table}: {counted(read)}", "dim", to=console)
        say(f"{len(found.partitions)} partitions in {found.seconds:.1f} s", "dim", to=console)
    shown = set(found.cautions if verbose else found.cautions[:CAUTIONS])
    for one in found.notes:
        if one in shown or (one not in found.cautions and (verbose or found.findings)):
            say(one, "yellow" if one in shown else "dim", to=console)
    if len(found.cautions) > len(shown):
        console.print(f"… and {number(len(found.cautions) - len(shown))} more; --verbose has all", style="yellow")


def headline(found: Verification) -> str:
    """Return the result as one sentence: what was read, and the equation if it holds; else the reasons."""
    read = f" ({found.depth.replace('_', ' ')})" if found.verdict == "proven" else ""
    begin = f"{WORDS[found.verdict]} {found.pipeline}{read}: "
    if found.outcome == "proven":
        shown = [name for name in TERMS if name in ALWAYS or found.sum_of(name)]
        total, *rest = (_counted(f"{number(found.sum_of(name))} {TERMS[name]}") for name in shown)
        return f"{begin}{total} = {' + '.join(rest)}"
    counts: dict[str, int] = {}
    for finding in found.findings:
        counts[finding.flaw] = counts.get(finding.flaw, 0) + (finding.count or 0)
    return begin + ", ".join(_counted(REASONS[flaw].format(number(count))) for flaw, count in counts.items())


def _counted(words: str) -> str:
    """Return the words with their noun in the singular if there is one: `1 gap`."""
    return re.sub(r"^1 (\w+)s\b", r"1 \1", words)


def planned(estimate: Estimate) -> str:
    """Return what has to be read, in words."""
    known = f"; {number(estimate.files_known)} files are known" if estimate.files_known else ""
    if not estimate.files:
        return f"nothing to read{known}"
    return (
        f"{number(estimate.files)} files to read, {number(estimate.rows)} rows, {size(estimate.bytes)}, "
        f"about {duration(max(estimate.seconds, 1.0))}{known}"
    )


def counted(read: Read) -> str:
    """Return how the files of a table were counted, in words."""
    parts = [
        f"{number(read.rows_by_scan)} rows read in {number(read.files_by_scan)} files" if read.files_by_scan else "",
        f"{number(read.rows_by_manifest)} rows known from manifests" if read.rows_by_manifest else "",
        f"{number(read.rows_remembered)} rows known from earlier proofs" if read.rows_remembered else "",
        f"{number(read.files_with_deletes)} files with deleted rows" if read.files_with_deletes else "",
        f"{number(read.others)} rows of other topics" if read.others else "",
    ]
    return ", ".join(part for part in parts if part) or "no rows"


def accounts(found: Verification) -> Table:
    """Return the equation by partition and in sum. Columns without a number are omitted, and on narrow screens offsets."""
    names = [name for name in TERMS if name in ALWAYS or found.sum_of(name)]
    headings = [TERMS[name].replace("-", "-\n") for name in names]
    shown = table("partition", "offsets", *headings, right=("partition", "offsets", *headings), drop=("offsets",))
    shown.columns[1].justify = "left"
    for one in found.partitions:
        cells = (number(getattr(one, name)) for name in names)
        shown.add_row(str(one.partition), f"{one.start}–{one.end}", *cells)
    shown.add_row("all", "", *(number(found.sum_of(name)) for name in names), style="bold")
    return shown

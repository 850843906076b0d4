"""Check on a scratch table that this catalog fences, before a driver writes to a real one.

Exactly-once rests on Iceberg refusing to apply a tag move again on a changed base. A catalog, or a version of Iceberg, for which
that is not so would double records without a word.
"""

from __future__ import annotations

from py4j.protocol import Py4JJavaError

from frazil.errors import CatalogUnavailable, FenceUnproven
from frazil.lake.commit.commit_rows_and_offsets import fill
from frazil.lake.commit.request import CommitRequest
from frazil.lake.iceberg_java import Iceberg, message, thrown
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.stage import empty_commit
from frazil.schemas.iceberg import schema_json
from frazil.schemas.types import Field, Kind, Primitive, Struct

OUTAGES = frozenset(
    {
        "CommitStateUnknownException",
        "ForbiddenException",
        "NotAuthorizedException",
        "RESTException",
        "RuntimeIOException",
        "ServiceFailureException",
        "ServiceUnavailableException",
        "UncheckedInterruptedException",
        "UncheckedSQLException",
    }
)
"""Exceptions of a commit that say nothing about another commit."""


def check_catalog(iceberg: Iceberg, namespace: str, *, unique_id: str) -> None:
    """Let two transactions on one base commit the same batch; the second must fail. Takes about a second, leaves nothing behind.

    Raises `FenceUnproven`, and `CatalogUnavailable` if the second one fails for another reason than the first.
    """
    table = f"{namespace}.frazil_probe_{unique_id}"
    iceberg.create_namespace(namespace)
    iceberg.create(table, schema_json(Struct((Field("probe", Primitive(Kind.INT)),))), None, {})
    try:
        for committed, end in ((None, 1), (1, 2)):  # the first move creates the tag, later ones replace it
            start, after = _offsets(committed or 0), _offsets(end)
            batch = CommitRequest(
                pipeline="probe", run=unique_id, version="", start=start, end=after, committed=None, topic_id="probe"
            )
            staged = empty_commit(iceberg, table, at=0.0)
            twins = [iceberg.load(table) for _ in range(2)]
            transactions = [twin.newTransaction() for twin in twins]
            for transaction, twin in zip(transactions, twins, strict=True):
                fill(iceberg, transaction, twin, staged, batch, {})
            transactions[0].commitTransaction()
            try:
                transactions[1].commitTransaction()
            except Py4JJavaError as error:
                if thrown(error) in OUTAGES:  # it proves nothing
                    raise CatalogUnavailable(
                        f"the start probe's commit failed: {thrown(error)}: {message(error)}",
                        where=f"catalog {iceberg.name}",
                        do="Run again; if it persists, look at the catalog",
                    ) from None
                continue
            raise FenceUnproven(
                "two transactions on one base both committed",
                where=f"catalog {iceberg.name}, scratch table {table}",
                do="Do not run against this catalog: records would be doubled. Report it with the catalog's name and version",
            )
    finally:
        iceberg.drop(table, purge=True)


def _offsets(at: int) -> Offsets:
    return Offsets("probe", "probe", {0: at})

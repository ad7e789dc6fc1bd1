"""Ring for shards whose messages were lost, or that waited for another try."""

from itertools import groupby
from operator import itemgetter

from db import shards
from workers import doorbell
from workers.context import Context


def ring_forgotten(ctx: Context, *, quiet: float, limit: int) -> list[tuple[int, int]]:
    """Ring the (run, shard) pairs that wait for a worker; two sweeps never ring the same one.

    Vectors that several runs of a batch wait for are asked for once: the embedding rings the runs.
    """
    with ctx.database.begin() as session:
        unembedded = shards.unembedded(session, quiet=quiet, limit=limit)
        forgotten = shards.due(session, quiet=quiet, limit=limit)
    first = sorted({(unembedded[pair], pair[1]) for pair in forgotten if pair in unembedded})
    for batch_id, pairs in groupby(first, itemgetter(0)):
        doorbell.embed(batch_id, [number for _, number in pairs])
    doorbell.evaluate(pair for pair in forgotten if pair not in unembedded)
    return forgotten

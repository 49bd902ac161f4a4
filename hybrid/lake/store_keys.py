"""The keys on a warehouse's store of what lies in the home's folder: files of halves and plans, and staged rows.

Staged rows of an operation lie below the plans of OFFLINE, under the operation's id. No plan has that id, so
`hybrid warehouse sync` removes what a crash leaves, and spares operations that run.
"""

from __future__ import annotations

from pathlib import Path

from hybrid.config.table_config import Half
from hybrid.errors import SpecError
from hybrid.lake.layout import STAGING_FOLDER
from hybrid.lake.worker_files import Workers
from hybrid.store.mirror import Mirror, half_keys, mirror_at
from hybrid.store.plan_files import PLANS_FOLDER, PUSHES, ROWS

STAGED = "staged"


def workers_store(bench: Workers, path: Path) -> Mirror | None:
    """The mirror of the store through which Spark's workers read and write what lies at `path` in the home.

    None where they see the home's folders. SpecError where they see neither.
    """
    if bench.has_shared_files:
        return None
    mirror = mirror_at(path)
    if mirror is None:
        raise SpecError(
            f"Spark's workers see nothing of {path}: spark.worker_files = 'store' is for a warehouse on an object "
            "store. Nothing was started.",
            hint='Set warehouse = "s3://..." in hybrid.toml; or HYBRID_SPARK_WORKER_FILES=shared '
            "HYBRID_SPARK_MASTER='local[2]'",
        )
    return mirror


def store_key(mirror: Mirror, path: Path) -> str:
    """The key of a file or folder of a table: of a half, of a plan, of a push, or staged."""
    table, part, *rest = path.relative_to(mirror.folder).parts
    folder = mirror.folder / table
    if part in {half.value for half in Half}:
        return mirror.key_of(folder / part, "/".join(rest))
    if part == STAGING_FOLDER:
        act_id, *below = rest
        # The rows of a plan are where they stay when it is published.
        return "/".join([plans_prefix(mirror, folder), act_id, *([] if below[:1] == [ROWS] else [STAGED]), *below])
    assert part == PLANS_FOLDER, f"no file of a table: {path}"
    if rest[1:2] == [PUSHES]:
        from hybrid.store.published_plans import push_name

        plan_id, _, number, *below = rest
        name = push_name(folder / PLANS_FOLDER / plan_id / PUSHES / number)
        return "/".join([plans_prefix(mirror, folder), plan_id, name, *below])
    return "/".join([plans_prefix(mirror, folder), *rest])


def plans_prefix(mirror: Mirror, table: Path) -> str:
    """The key of the folder with a table's plans and staged rows. DataError where its half's folder has no name."""
    from hybrid.store.published_plans import half_of_plans, plans_key

    return plans_key(table.name, mirror.half_key(table / half_of_plans(half_keys(table))))

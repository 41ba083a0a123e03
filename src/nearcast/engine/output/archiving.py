"""The archive of a run, on the driver."""

from __future__ import annotations

from pathlib import Path

from nearcast.engine.files import run_id
from nearcast.engine.options.settings import Settings
from nearcast.engine.output.reports import Reports
from nearcast.model.errors import NearcastError
from nearcast.objects.archive import Archive

__all__ = ["open_archive"]


def open_archive(settings: Settings, checkpoint: Path) -> Archive | None:
    """The archive that the run writes, if it has one; call it while no batch runs.

    It must hold all batches that the checkpoint has done: asks rely on it.
    """
    if not settings.archive:
        return None
    archive = Archive(Path(settings.archive), settings.space, run_id(checkpoint))
    done = Reports(checkpoint).count()
    if archive.manifest.batch < done - 1:
        raise NearcastError(
            f"{settings.archive}: this archive ends with batch {archive.manifest.batch}, and the "
            f"checkpoint {checkpoint} has done {done}; use the archive that the run began with"
        )
    return archive

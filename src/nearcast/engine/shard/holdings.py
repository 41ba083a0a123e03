"""What one shard holds between batches: from where a batch takes it, and what it writes of it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

import msgspec

from nearcast.engine.moves.parcels import Moved, worth_building
from nearcast.engine.options.settings import Settings
from nearcast.engine.route.envelope import Directions
from nearcast.engine.shard.events import Events, Ordered
from nearcast.engine.shard.objects import Past
from nearcast.engine.shard.report import Report
from nearcast.engine.shard.state import Delta, Manifest, StateFiles, StoredFiles, snapshot
from nearcast.engine.shard.window_parts import files_of
from nearcast.index import LocalIndex
from nearcast.index.arena import Arena, Part
from nearcast.wire.tables import NEVER, join, to_bytes

_SMALL = 1 << 20  # bytes of deltas that are never worth a new snapshot
_RECENT = 3  # batches whose objects are kept in any case, where a kind keeps objects


@dataclass(slots=True)
class Holdings:
    """Subscriptions and objects of one shard."""

    indexes: dict[str, LocalIndex]  # by kind
    past: Past | None  # the objects that stay; None: none do
    kept: dict[str, Past]  # by kind: the objects that it keeps for its index (`Kind.keeps`)


class Keeper:
    """Attaches what a shard holds at the start of a batch, and saves it at the end."""

    def __init__(self, settings: Settings, checkpoint: Path, shard: int) -> None:
        self.settings, self.checkpoint, self.shard = settings, checkpoint, shard

    def attach(self, arena: Arena, manifest: Manifest, report: Report) -> Holdings:
        """What `manifest` says: from the arena if it has that, else from files."""
        if not arena.attach(manifest.token):
            arena.clear()
            held = self._open(arena)
            for kind, store in held.kept.items():
                if kind in manifest.kept:
                    store.rebuild(manifest.kept[kind])
            StateFiles(self.checkpoint, self.shard).rebuild(manifest, held.indexes)
            if held.past is not None:
                held.past.rebuild(manifest.objects)
            report.rebuilt = bool(manifest.files)
            return held
        try:
            return self._open(arena)
        except (OSError, ValueError, IndexError):  # files cut short behind our back
            arena.clear()
            return self.attach(arena, manifest, report)

    def _open(self, arena: Arena) -> Holdings:
        """What the arena has."""
        settings, folder = self.settings, self.checkpoint / "objects"
        indexes = {
            k: s.make_index(settings.space, Part(arena, k)) for k, s in settings.chosen.items()
        }
        kept = {
            name: Past(
                settings,
                folder / f"{self.shard:04d}-{kind.number}",
                Part(arena, f"{name}-past"),
                kind.slicing,
            )
            for name, kind in settings.kinds.items()
            if kind.keeps
        }
        for name, of_kind in kept.items():
            indexes[name].past = of_kind.store
        past = None
        if settings.retain_ms:
            past = Past(settings, folder / f"{self.shard:04d}", Part(arena, "past"))
        return Holdings(indexes, past, kept)

    def save(
        self,
        held: Holdings,
        directions: Directions,
        manifest: Manifest,
        moved: Moved,
        ordered: dict[str, Ordered],
        events: Events,
        report: Report,
    ) -> Manifest:
        """Write what a batch changed; the manifest from now on."""
        batch, now = directions.batch, events.now
        following = self._save_indexes(batch, manifest, held.indexes, moved, ordered, now, report)
        following.ranked = manifest.ranked + events.published
        following.objects = manifest.objects
        if held.past is not None:
            retained = now - self.settings.retain_ms
            following.objects = held.past.save(batch, manifest.objects, now, retained)
        else:
            following.objects.floor = max(manifest.objects.floor, now)
        following.whole = sorted(held.kept.keys() & (events.in_use | set(manifest.whole)))
        awaited = set() if events.held is None else set(self.settings.awaited(events.in_use))
        for kind in held.kept.keys() & (awaited | events.in_use | manifest.kept.keys()):
            following.kept[kind] = self._save_kept(
                kind, held, directions, manifest, following, report
            )
            if kind not in following.whole:
                files = following.kept[kind]
                report.parts[kind] = files_of(held.kept[kind], files, self.checkpoint)
        return following

    def _save_indexes(
        self,
        batch: int,
        manifest: Manifest,
        indexes: dict[str, LocalIndex],
        moved: Moved,
        ordered: dict[str, Ordered],
        now: int,
        report: Report,
    ) -> Manifest:
        """Write what this batch changed; now and then, all there is instead (compaction)."""
        deltas: dict[str, Delta] = {}
        for kind, index in indexes.items():
            new = ordered[kind].controls
            controls = [t for t in (moved.controls.get(kind), new) if t is not None]
            results = index.changed()
            index.close()
            drops = moved.drops.get(kind, [])
            table = join(controls, index.controls)
            if table.num_rows or results.num_rows or drops:
                deltas[kind] = Delta(drops, to_bytes(table), to_bytes(results))
        files = StateFiles(self.checkpoint, self.shard)
        following = Manifest(
            token=uuid.uuid4().hex,
            base=manifest.base,
            merged=manifest.merged,
            files=list(manifest.files),
            snapshot_bytes=manifest.snapshot_bytes,
            delta_bytes=manifest.delta_bytes,
            now=now,
        )
        if deltas:
            data = msgspec.msgpack.encode(deltas)
            # What came by a move stands there once, as in a snapshot.
            came = min(sum(table.nbytes for table in moved.controls.values()), len(data))
            following.snapshot_bytes += came
            following.delta_bytes += len(data) - came
            large = following.delta_bytes > max(following.snapshot_bytes, _SMALL)
            settled = now - self.settings.grace_ms
            left = any(worth_building(indexes[kind], settled) for kind in moved.drops)
            if large or left or moved.renumbered:
                self._compact(batch, files, following, indexes)
            else:
                following.files.append(files.write(batch, data))
                files.merge(following, batch)
        files.forget(following, batch)
        report.state_bytes = following.snapshot_bytes + following.delta_bytes
        return following

    def _save_kept(
        self,
        kind: str,
        held: Holdings,
        directions: Directions,
        manifest: Manifest,
        following: Manifest,
        report: Report,
    ) -> StoredFiles:
        """Save the objects that a kind keeps, without those that no shard's index needs.

        A subscription that moves takes none with it: so each shard keeps what any shard needs, and
        all of the latest batches, because it learns a batch later what others need.
        """
        index, store = held.indexes[kind], held.kept[kind]
        files = manifest.kept.get(kind, StoredFiles())
        report.reach[kind] = index.reach()
        reach = max(report.reach[kind], directions.reach.get(kind, 0))
        starts = [*files.starts, manifest.ranked][-_RECENT:]
        rank = min(index.first_rank(following.ranked), starts[0])
        saved = store.save(directions.batch, files, following.now, following.now - reach, rank)
        saved.starts = starts
        saved.floor = NEVER  # what was let go says nothing of what is needed: a late object may be
        return saved

    def _compact(
        self, batch: int, files: StateFiles, manifest: Manifest, indexes: dict[str, LocalIndex]
    ) -> None:
        """A snapshot in place of all deltas, without what can see nothing any more."""
        settled = manifest.now - self.settings.grace_ms
        for index in indexes.values():
            if worth_building(index, settled):
                index.compact(settled)
        data = msgspec.msgpack.encode({k: snapshot(i) for k, i in indexes.items()})
        manifest.files, manifest.base = [files.write(batch, data)], batch
        manifest.snapshot_bytes, manifest.delta_bytes = len(data), 0

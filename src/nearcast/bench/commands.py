"""`nearcast bench ps2stream` and `bench tornado`: both papers behind one set of options."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from nearcast.bench import ps2stream, tornado
from nearcast.bench.dealt import Figure, Say
from nearcast.bench.ps2stream_adjust import run_adjust
from nearcast.bench.ps2stream_claims import claims as ps2stream_claims
from nearcast.bench.ps2stream_plots import plots as ps2stream_plots
from nearcast.bench.shapes import claims_table
from nearcast.bench.tornado_adapt import run_adapt
from nearcast.bench.tornado_claims import claims as tornado_claims
from nearcast.bench.tornado_plots import plots as tornado_plots
from nearcast.bench.tornado_routing import run_routing
from nearcast.index import INDEXES
from nearcast.model.errors import NearcastError


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says; None: as usual."""

    size: str = "usual"  # or small, full
    queries: int | None = None
    objects: int | None = None
    workers: int | None = None
    dispatchers: int | None = None
    index: str | None = None
    figures: tuple[str, ...] = ()
    seed: int = 7
    constants: bool = False  # only measure c1 to c4
    keep: str | None = None  # a folder for plots


def _ps2stream(o: Options, say: Say) -> Iterator[Figure]:
    sizes = {"small": ps2stream.SMALL, "usual": ps2stream.Setting(), "full": ps2stream.FULL}
    usual = sizes[o.size]
    setting = replace(
        usual,
        queries=o.queries or usual.queries,
        changes=max((o.objects or 5 * usual.changes) // 5, 1),
        workers=o.workers or usual.workers,
        dispatchers=o.dispatchers or usual.dispatchers,
        index=o.index or usual.index,
        figures=o.figures or usual.figures,
        seed=o.seed,
    )
    ps2stream.check(setting)
    if o.constants:
        yield from ps2stream.run_constants(setting, say)
        return
    told: list[Figure] = []
    for source in (ps2stream.run, run_adjust):
        for figure in source(setting, say):
            told.append(figure)
            yield figure
    judged = list(ps2stream_claims(told))
    yield from judged
    if o.keep:
        _keep("ps2stream", ps2stream_plots, told, judged, Path(o.keep), say)


def _tornado(o: Options, say: Say) -> Iterator[Figure]:
    sizes = {"small": tornado.SMALL, "usual": tornado.Setting(), "full": tornado.FULL}
    usual = sizes[o.size]
    setting = replace(
        usual,
        queries=o.queries or usual.queries,
        objects=o.objects or usual.objects,
        evaluators=o.workers or usual.evaluators,
        units=o.dispatchers or usual.units,
        index=o.index or usual.index,
        figures=o.figures or usual.figures,
        seed=o.seed,
    )
    tornado.check(setting)
    told: list[Figure] = []
    sources: list[Callable[[tornado.Setting, Say], Iterator[Figure]]] = [tornado.run]
    if "7" in setting.figures:
        sources.append(run_routing)
    if "9" in setting.figures:
        sources.append(run_adapt)
    for source in sources:
        for figure in source(setting, say):
            told.append(figure)
            yield figure
    judged = list(tornado_claims(told))
    yield from judged
    if o.keep:
        _keep("tornado", tornado_plots, told, judged, Path(o.keep), say)


def _keep(
    name: str,
    plots: Callable[[list[Figure], Path], list[Path]],
    told: list[Figure],
    judged: list[Figure],
    folder: Path,
    say: Say,
) -> None:
    """Plots of the points and a table of the claims, in a folder."""
    table = folder / f"{name}-claims.md"
    for path in [*plots(told, folder), table]:
        say(f"kept: {path}")
    table.write_text(claims_table(judged))


PAPERS = {"ps2stream": _ps2stream, "tornado": _tornado}


def run_paper(name: str, options: Options, say: Say) -> Iterator[Figure]:
    """The experiments of a paper, point by point, then its claims."""
    fit = [n for n, index in INDEXES.items() if "range" in index.kinds]
    if options.index is not None and options.index not in fit:
        raise NearcastError(f"bench: no range index {options.index!r}; there are {', '.join(fit)}")
    return PAPERS[name](options, say)

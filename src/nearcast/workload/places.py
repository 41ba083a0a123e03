"""Where objects are: Gaussian clusters with power-law weights, and a uniform background."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nearcast.workload.ragged import Floats, Longs

Bounds = tuple[float, float, float, float]

# The same Earth as docs/spec.md section 1; a degree of latitude is 111,195 m on it.
METRES_A_DEGREE = math.radians(1.0) * 6371008.8


def units_a_metre(planar: bool, y: Floats) -> tuple[Floats, Floats]:
    """How many coordinate units east and north one metre is at latitude ``y``; 1 on a plane."""
    if planar:
        return np.ones_like(y), np.ones_like(y)
    north = np.full_like(y, 1.0 / METRES_A_DEGREE)
    return north / np.cos(np.radians(y)), north


def grid_cells(bounds: Bounds, cells: int, x: Floats, y: Floats) -> Longs:
    """The cell of each point in a ``cells`` x ``cells`` grid of equal cells over ``bounds``."""
    minx, miny, maxx, maxy = bounds
    column = ((x - minx) * (cells / (maxx - minx))).astype(np.int64)
    row = ((y - miny) * (cells / (maxy - miny))).astype(np.int64)
    return np.clip(row, 0, cells - 1) * cells + np.clip(column, 0, cells - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """A mixture of clusters; every cluster lies in one tile, the region whose words it uses.

    Arrays of one entry per cluster: centre ``x``, ``y``, standard deviations ``sx``, ``sy`` in
    coordinate units, ``cumulative`` weights (the last is 1), ``tile``.
    """

    bounds: Bounds
    tiles: int
    background: float
    x: Floats
    y: Floats
    sx: Floats
    sy: Floats
    cumulative: Floats
    tile: Longs

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Floats, Floats, Longs]:
        """``n`` points within bounds and the tile of each."""
        minx, miny, maxx, maxy = self.bounds
        cluster = np.searchsorted(self.cumulative, rng.random(n), side="right")
        x = self.x[cluster] + self.sx[cluster] * rng.standard_normal(n)
        y = self.y[cluster] + self.sy[cluster] * rng.standard_normal(n)
        tile = self.tile[cluster]
        scattered = np.flatnonzero(rng.random(n) < self.background)
        x[scattered] = rng.uniform(minx, maxx, len(scattered))
        y[scattered] = rng.uniform(miny, maxy, len(scattered))
        tile[scattered] = grid_cells(self.bounds, self.tiles, x[scattered], y[scattered])
        return _folded(x, minx, maxx), _folded(y, miny, maxy), tile

    def tile_weights(self) -> Floats:
        """The share of objects that use the words of each tile, float64[tiles * tiles]."""
        weights = np.diff(self.cumulative, prepend=0.0)
        tiles = self.tiles * self.tiles
        clustered = np.bincount(self.tile, weights=weights, minlength=tiles)
        mixed = (1.0 - self.background) * clustered + self.background / tiles
        return mixed.astype(np.float64, copy=False)


def _folded(values: Floats, low: float, high: float) -> Floats:
    """Reflect what lies outside back in: clipping would heap points on the border."""
    outside = np.flatnonzero((values < low) | (values > high))
    width = high - low
    beyond = (values[outside] - low) % (2.0 * width)
    values[outside] = low + np.minimum(beyond, 2.0 * width - beyond)
    rounded: Floats = np.round(values, 6)
    return rounded

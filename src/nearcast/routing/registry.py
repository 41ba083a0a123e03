"""All routers, by name."""

from __future__ import annotations

from nearcast.routing.base import Router
from nearcast.routing.broadcast import Broadcast
from nearcast.routing.dkm.dkm_sks import DkmSks
from nearcast.routing.dkm.kop import Kop
from nearcast.routing.dkm.sop import Sop
from nearcast.routing.hash import Hash
from nearcast.routing.ps2stream.hybrid import Ps2Stream
from nearcast.routing.ps2stream.space_grid import SpaceGrid
from nearcast.routing.ps2stream.space_kd import SpaceKd
from nearcast.routing.ps2stream.space_r import SpaceR
from nearcast.routing.ps2stream.text_frequency import TextFrequency
from nearcast.routing.ps2stream.text_hypergraph import TextHypergraph
from nearcast.routing.ps2stream.text_metric import TextMetric
from nearcast.routing.random import Random
from nearcast.routing.skype.skype_hash import SkypeHash
from nearcast.routing.skype.skype_location import SkypeLocation
from nearcast.routing.sstd.router import Sstd
from nearcast.routing.sstd.sstd_quadtree import SstdQuadtree
from nearcast.routing.sstd.sstd_text import SstdText
from nearcast.routing.tornado.router import Tornado
from nearcast.routing.tornado.tornado_text import TornadoText
from nearcast.routing.tornado.tornado_uniform import TornadoUniform

_PS2STREAM = (Ps2Stream, TextFrequency, TextHypergraph, TextMetric, SpaceGrid, SpaceKd, SpaceR)
_TORNADO = (Tornado, TornadoText, TornadoUniform)
_SSTD = (Sstd, SstdQuadtree, SstdText)
_SKYPE = (SkypeHash, SkypeLocation)
_OF_PAPERS = (Kop, Sop, DkmSks, *_PS2STREAM, *_TORNADO, *_SSTD, *_SKYPE)
ROUTERS: dict[str, type[Router]] = {r.name: r for r in (Broadcast, Hash, Random, *_OF_PAPERS)}

"""O_init and S as the algorithms read them, and O_init as a plan keeps it."""

from __future__ import annotations

from typing import NamedTuple

from nearcast.kernels.ragged import frozen
from nearcast.routing.arrays import Arrays
from nearcast.routing.base import Sample
from nearcast.routing.dkm.costs import Subscriptions
from nearcast.routing.dkm.places import Places, places_of
from nearcast.routing.dkm.survey import Survey
from nearcast.routing.dkm.vocabulary import Vocabulary, WantedWords, vocabulary_of, wanted_by_survey


class Prepared(NamedTuple):
    """The words and places of O_init, and S in terms of these."""

    vocabulary: Vocabulary
    places: Places
    subscriptions: Subscriptions

    def arrays(self) -> Arrays:
        """What costs of new subscriptions need."""
        return {**self.vocabulary._asdict(), **self.places._asdict()}


def lay_out(sample: Sample, survey: Survey) -> Prepared:
    """Number the words, lay out the objects."""
    v = vocabulary_of(sample)
    wanted = WantedWords(*(frozen(part) for part in wanted_by_survey(v, survey)))
    x, y, boxes = frozen(survey.x), frozen(survey.y), frozen(survey.boxes)
    return Prepared(v, places_of(sample, v), Subscriptions(x, y, boxes.reshape(-1, 4), wanted))


def restore(plan: Arrays) -> tuple[Vocabulary, Places]:
    """What `Prepared.arrays` wrote."""
    v = Vocabulary(*(plan[name] for name in Vocabulary._fields))
    return v, Places(*(plan[name] for name in Places._fields))

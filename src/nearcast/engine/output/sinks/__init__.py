"""Where notifications and rejects go besides the folder of the run: files, Kafka, the console.

Each batch is first written to one folder (`engine.output.commit`), where its lines get the names
that they keep. The sinks of this package are then given the batch, one after the other, each before
the next batch begins. A batch may be given twice, after a crash: each sink says in `promise` what a
reader then sees.
"""

from nearcast.engine.output.sinks.base import Delivery, OfRun, Shown, SinkOf
from nearcast.engine.output.sinks.console import ConsoleOf
from nearcast.engine.output.sinks.files import FilesOf
from nearcast.engine.output.sinks.kafka import KafkaOf

__all__ = ["ConsoleOf", "Delivery", "FilesOf", "KafkaOf", "OfRun", "Shown", "SinkOf"]

"""The service in front of a run (docs/spec.md, section 8): HTTP, server-sent events, WebSocket.

It promises

- what it acknowledges is in the event log, on the disk, and valid;
- what it delivers are the lines of the notification log, in its order, from any cursor on;
- a slow or dead client delays nobody: queues are bounded, and what they cannot hold is read from
  the log again;
- a token sees and changes only what is its owner's.

It is a process of its own, imports no Spark, and holds nothing that a restart would lose: the
event log (`inbox`), the notification log (`wire.told`) and a file of what can be made from these
(`registry`) are all there is.
"""

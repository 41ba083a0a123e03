"""The shard step: envelopes in, notifications, reports and durable state out."""

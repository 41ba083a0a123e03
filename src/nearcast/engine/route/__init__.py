"""The route step: splits in, one envelope per shard out."""

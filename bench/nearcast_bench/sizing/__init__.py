"""What a subscription and an object take: bytes of memory and files, time to rebuild."""

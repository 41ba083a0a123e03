"""Lines that nobody would write, through decode: no crash, and every line accepted or refused."""

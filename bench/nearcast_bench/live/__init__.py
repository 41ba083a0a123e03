"""How soon a live run answers: from a publish to its visible notification."""

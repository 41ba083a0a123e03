"""What the paper on DkM-SKS prints, and how our figures of it are named."""

from __future__ import annotations

FIRST = "tables 2, 3; figure 7"
SERIES = {"m": "figure 8", "subscriptions": "figure 9", "k": "figure 10"}
AXES = {"figure 8": "workers", "figure 9": "subscriptions", "figure 10": "k_max"}

# Table 1: objects, distinct keywords, keywords per object.
DATASETS = {
    "place": {"objects": 9_356_750, "keywords": 53_931, "keywords_per_object": 2.94},
    "twitter": {"objects": 20_000_000, "keywords": 2_225_654, "keywords_per_object": 5.51},
}
# Tables 2 (Place, Twitter) and 3 (Place), milliseconds, 20 workers and 10,000,000 subscriptions.
PAPER = {
    "ps2stream": {
        "balance": 27490.11, "balance_twitter": 21962.50,
        "knn": 32892.90, "insert": 1.51, "delete": 1.54,
    },
    "kop": {
        "balance": 549.23, "balance_twitter": 486.97,
        "knn": 7684.48, "insert": 1.59, "delete": 1.42,
    },
    "sop": {
        "balance": 14037.33, "balance_twitter": 12265.40,
        "knn": 18549.04, "insert": 1110.65, "delete": 0.79,
    },
    "dkm-sks": {
        "balance": 32.08, "balance_twitter": 51.03,
        "knn": 471.00, "insert": 35.36, "delete": 1.10,
    },
}  # fmt: skip

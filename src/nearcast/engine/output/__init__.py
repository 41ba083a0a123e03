"""What a run writes: notifications, rejects, reports, the summary, a picture."""

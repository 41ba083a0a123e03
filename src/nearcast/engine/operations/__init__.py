"""What people look at who keep a run running: metrics, health, status, a log in JSON, signals."""

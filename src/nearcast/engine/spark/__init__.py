"""Where Spark is met: session, JVM, query, workers, and the warm-up of kernels."""

"""`advise`: what the pipeline learned of StreamApps, shown to a person. Nothing here writes."""

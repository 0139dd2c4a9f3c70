"""What the pipeline learned, in the form that the operator reads."""

"""What the commands can say about StreamApps: values, sentences and findings, independent of their layout."""

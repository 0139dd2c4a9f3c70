"""Bronze: the lines of the record as tables, each file and each line once; bad lines in quarantine."""

"""One pass over one application: watches, work queue, gather, apply, report."""

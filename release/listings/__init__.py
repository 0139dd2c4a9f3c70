"""What catalogues of others read about a release: Artifact Hub, the Operator Lifecycle Manager, Security Insights.

Called by `release.build` and by `make generate`. Everything is derived from the chart, the changelog and the maker's
options, so that no list can differ from what is shipped. Nothing names an address that the maker did not give.
"""

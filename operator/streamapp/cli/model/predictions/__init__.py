"""What new desired replicas would cause: `prediction` plays it, `of_brokers` adds what only the streams protocol has.

`documents` writes it for programs. Called by `commands.plan` and shown by `screens.plan`. Pure.
"""

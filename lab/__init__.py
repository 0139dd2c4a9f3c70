"""A real small Kubernetes and a real Kafka broker on this machine.

`python -m lab up` builds what is missing, starts it all inside namespaces of its own and leaves nothing behind
when it goes. Layers, from the top: `commands`, `scenarios`, `clusters`, then `node | build | meter`, then
`preflight`, then `settings | errors | terminal`.
The product never imports anything from here.
"""

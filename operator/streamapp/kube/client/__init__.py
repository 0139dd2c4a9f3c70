"""The API server: requests, watches, kinds, errors, and the kubeconfig."""

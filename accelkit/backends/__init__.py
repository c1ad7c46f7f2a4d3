"""Views handed to Kubernetes, one folder an interface. Backends do not know each other."""

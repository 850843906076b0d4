"""The demonstration of deployment: `make deploy-demo`."""

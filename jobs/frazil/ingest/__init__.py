"""The data's way, one verb a module: plan, read, decode, route, report; run.py alone knows their order."""

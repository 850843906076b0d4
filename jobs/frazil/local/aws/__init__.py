"""AWS on this machine, for the demo and the tests: moto in a process of its own, patched where it would hide a fault.

Each patched service has a module here. All data are in memory and end with the process.
"""

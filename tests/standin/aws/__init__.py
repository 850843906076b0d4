"""AWS on this machine: moto in a process of its own, patched where it would hide a fault.

Each patched service has a module here. All data are in memory and end with the process.
"""

"""AWS on this machine, for the demo and the tests: moto in a process of its own, mended where it would hide a fault.

Each service that is mended has its module here; all of it is in memory and ends with the process.
"""

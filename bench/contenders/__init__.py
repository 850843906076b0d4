"""The contenders, each in a process of its own: simple pipelines, the spike, Frazil, and single steps of Frazil."""

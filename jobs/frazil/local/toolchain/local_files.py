"""Spark's files on this machine, without a process for each.

Without its native library, Hadoop's local file system runs `chmod` for every file that it creates. The class sets the same
permissions by Java's own calls; ADR 49 has what that saves. https://github.com/globalmentor/hadoop-bare-naked-local-fs
"""

from __future__ import annotations

SETTINGS = {"spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"}
"""Spark's settings for a driver that has the class on its class path (`class_path`)."""

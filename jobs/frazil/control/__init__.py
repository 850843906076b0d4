"""Control: releases, the settings of job runs, and the way from what is wanted to what runs. No Spark."""

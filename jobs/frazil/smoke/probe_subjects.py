"""The subjects of all probes, in the order in which they are asked. docs/deploy.md has them as a table."""

from __future__ import annotations

from frazil.smoke.probe import Subject

RUN = Subject(
    name="run",
    shows="EMR Serverless runs the job with its role, network, image and capacity",
    stand_ins="a Spark process of this machine runs it; no image, network or quota",
)
LOG_GROUP = Subject(
    name="log group",
    shows="the log agent writes the driver's log to CloudWatch Logs",
    stand_ins="not shown here: the local cloud writes no log group",
)
LOG_FILES = Subject(
    name="log files",
    shows="EMR Serverless stores the driver's log on S3 with the job's role",
    stand_ins="the local cloud stores the log itself; no key and no policies",
)
DOCUMENTS = Subject(
    name="documents",
    shows="the documents and the release of the desired state can be read and decrypted",
    stand_ins="they can be read; no key and no policies",
)
PROOF = Subject(
    name="proof",
    shows="the newest run writes its proof, and its pipelines commit or have caught up",
    stand_ins="the same; no key and no policies",
)
GENERATION = Subject(
    name="generation",
    shows="the reconciler has proven the deployed generation",
    stand_ins="the same",
)
RUNTIME = Subject(
    name="runtime",
    shows="the image has the release's Python and Spark, and the driver finds its packages",
    stand_ins="not shown here: Python and Spark are those of this machine",
)
MISSING_OBJECTS = Subject(
    name="missing objects",
    shows="S3 answers the job 404 and not 403 for an object that does not exist",
    stand_ins="not shown here: the local S3 evaluates no policies",
)
SECRET = Subject(
    name="secret",
    shows="the job reads its secret, and the key decrypts it",
    stand_ins="not shown here: the local broker needs no secret",
)
METRICS = Subject(
    name="metrics",
    shows="CloudWatch makes metrics of the driver's log (EMF); all alarms of pipelines need them",
    stand_ins="not shown here: the local cloud makes no metrics of logs",
)
RECONCILER = Subject(
    name="reconciler",
    shows="the function was called in the last hour, without errors, and its log makes metrics",
    stand_ins="not shown here: the function exists, and no calls are counted",
)
SCHEDULES = Subject(
    name="schedules",
    shows="the rule for events and the schedules of both jobs are enabled",
    stand_ins="they are enabled; only a person runs a schedule there",
)
ALARMS = Subject(
    name="alarms",
    shows="alarms exist, and CloudWatch has data for them",
    stand_ins="not shown here: alarms exist, and nothing evaluates them",
)
ALARM_TOPIC = Subject(
    name="alarm topic",
    shows="the topic has its key, all `alarm_emails` are confirmed, and CloudWatch could publish to it",
    stand_ins="not shown here: the topic exists, and alarms publish nothing",
)
TABLES = Subject(
    name="tables",
    shows="the reader role reads each table's entry in Glue and its metadata on S3",
    stand_ins="they can be read; no key and no policies",
)

SUBJECTS = (
    *(RUN, LOG_GROUP, LOG_FILES, DOCUMENTS, PROOF, GENERATION, RUNTIME, MISSING_OBJECTS, SECRET, METRICS, RECONCILER),
    *(SCHEDULES, ALARMS, ALARM_TOPIC, TABLES),
)

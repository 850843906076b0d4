"""Declarations are found in a file, with every problem in its place."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

from frazil.declaration import Environment, InvalidDeclaration, Kafka, LocalCatalog, Pipeline, Table, Topic
from frazil.declaration.documents.document import document
from frazil.errors import FrazilError
from frazil.project.declaration_file import chosen, declared, found, refuse_misfits

HEAD = "from frazil.declaration import Pipeline, Table, Topic\n"


def pipeline(name: str) -> Pipeline:
    return Pipeline(topic=Topic(name, value="text"), table=Table(f"shop.{name}"))


def written(folder: Path, text: str) -> Path:
    file = folder / "mine.py"
    file.write_text(HEAD + dedent(text))
    return file


def made(name: str, table: str = "") -> str:
    return f"Pipeline(topic=Topic({name!r}, value='text'), table=Table('shop.{table or name}'))"


def test_pipelines_are_those_of_the_list(tmp_path: Path) -> None:
    file = written(tmp_path, f"a = {made('a')}\nb = {made('b')}\npipelines = [b]\n")
    assert declared(file) == (pipeline("b"),)


def test_without_a_list_they_are_all_that_have_a_name(tmp_path: Path) -> None:
    file = written(tmp_path, f"a = {made('a')}\nb = {made('b')}\nagain = a\n")
    assert declared(file) == (pipeline("a"), pipeline("b"))


def test_a_document_declares_the_same(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(document([pipeline("a"), pipeline("b")])))
    assert declared(file) == (pipeline("a"), pipeline("b"))


def test_a_file_may_import_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_mine.py").write_text("TABLE = 'shop.a'\n")
    file = written(
        tmp_path,
        """
        from neighbour_of_mine import TABLE
        a = Pipeline(topic=Topic("a", value="text"), table=Table(TABLE))
        """,
    )
    assert declared(file) == (pipeline("a"),)


def test_a_neighbour_with_problems_is_read_again(tmp_path: Path) -> None:
    neighbour = tmp_path / "wrong_neighbour_of_mine.py"
    neighbour.write_text(HEAD + "ORDERS = Topic('a b', value='text')\n")
    file = written(
        tmp_path,
        """
        from wrong_neighbour_of_mine import ORDERS
        a = Pipeline(topic=ORDERS, table=Table("shop.a"))
        """,
    )
    for _ in range(2):
        with pytest.raises(InvalidDeclaration) as raised:
            declared(file)
        assert [problem.path for problem in raised.value.problems] == [f"{neighbour}:2: topic.name"]


def test_a_problem_of_a_document_has_its_path(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    text = json.dumps(document([pipeline("a")])).replace('"shop.a"', '"Shop"')
    file.write_text(text)
    with pytest.raises(InvalidDeclaration) as raised:
        declared(file)
    assert raised.value.problems[0].path == f"{file}: pipelines[0].table.identifier"


def test_pipelines_that_clash_are_reported_together(tmp_path: Path) -> None:
    b, c = (made(name, "a").replace("Pipeline(", f"Pipeline(name={name!r}, ") for name in "bc")
    text = f"a = {made('a')}\nb = {b}\npipelines = [a, b, {c}]\n"
    with pytest.raises(InvalidDeclaration) as raised:
        declared(written(tmp_path, text))
    said, do = (
        "already writes shop.a; a table has one writer",
        "Choose another table, and read both by a view: create view",
    )
    assert [str(each).replace(f"{tmp_path}/", "").partition(" shop.a as")[0] for each in raised.value.problems] == [
        f"mine.py: pipelines[1].table.identifier: pipelines[0] (a, mine.py) {said}. {do}",
        f"mine.py: pipelines[2].table.identifier: pipelines[0] (a, mine.py) {said}. {do}",
        f"mine.py: pipelines[2].table.identifier: pipelines[1] (b, mine.py) {said}. {do}",
    ]


def test_a_pipeline_that_does_not_fit_an_environment_is_reported(tmp_path: Path) -> None:
    file = written(tmp_path, f"a = {made('a')}\nb = {made('b').replace('text', 'avro')}\n")
    document_file = tmp_path / "mine.json"
    document_file.write_text(json.dumps(document(declared(file))))
    place = Environment(name="dev", kafka=Kafka(bootstrap="b:1"), catalog=LocalCatalog(path="/c.db", warehouse="/lake"))
    for of, path in ((file, str(file)), (document_file, str(document_file))):
        with pytest.raises(InvalidDeclaration) as raised:
            refuse_misfits(found(of).listed, place)
        assert [problem.path for problem in raised.value.problems] == [f"{path}: pipelines[1].topic.value"]
    refuse_misfits(found(file).listed[:1], place)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for name in ("x" * 5000, f"{'x' * 5000}.json"):
        with pytest.raises(FrazilError, match=r"it cannot be read \(File name too long\)"):
            declared(tmp_path / name)


@pytest.mark.parametrize("token", ["${TfToken[TOKEN.0]}", "${aws_msk_cluster.main.name}"])
def test_a_terraform_token_is_refused_by_name(tmp_path: Path, token: str) -> None:
    with pytest.raises(InvalidDeclaration, match="Terraform token"):
        declared(written(tmp_path, f"a = {made(token, 'a')}\n"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = 1\n", "mine.py: the file declares no pipelines"),
        ("pipelines = []\n", "mine.py: the file declares no pipelines"),
        ("pipelines = 3\n", "mine.py: `pipelines` is of type int, not a list"),
        ("pipelines = (name for name in ())\n", "mine.py: `pipelines` is of type generator, not a list"),
        ("pipelines = map(print, ())\n", "mine.py: `pipelines` is of type map, not a list"),
        ("pipelines = list\n", "mine.py: `pipelines` is the class list, not a list"),
        ("pipelines = [Pipeline]\n", r"mine.py: `pipelines\[0\]` is the class Pipeline, not a Pipeline"),
        ("pipelines = ['a']\n", r"mine.py: `pipelines\[0\]` is of type str"),
    ],
)
def test_a_file_without_pipelines_is_told_on_one_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(FrazilError, match=said) as raised:
        declared(written(tmp_path, text))
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FrazilError, match=r"nothing\.py: the file does not exist"):
        declared(tmp_path / "nothing.py")


def test_names_choose_in_their_order_and_once() -> None:
    a, b = pipeline("a"), pipeline("b")
    assert chosen([a, b], ["b", "a", "b"]) == (b, a)
    with pytest.raises(FrazilError, match=r"the pipeline c does not exist\. Name one of a, b"):
        chosen([a, b], ["a", "c"])


def test_new_types_of_one_topic_are_declared_once(tmp_path: Path) -> None:
    head = "from frazil.declaration import Avro, RecordName, routes\nTOPIC = Topic('t', value=Avro(subject_strategy='topic_record'))\n"
    of = "routes(TOPIC, by=RecordName(), to={{{!r}: 'shop.{}_{{name}}'}}, otherwise=Table('shop.{}'))"
    both = f"a = {of.format('s.e.*', 'a', 'a')}\nb = {of.format('s.*', 'b', 'b')}\n"
    with pytest.raises(InvalidDeclaration) as raised:
        found(written(tmp_path, head + both))
    (problem,) = raised.value.problems
    assert problem.path.endswith("mine.py: types[1].pipeline.shape.route.new_types")
    assert problem.what == "another route of topic t has new types already: s.e.*"
    assert problem.do == "Name each type of s.* in `to`, or write all patterns of the topic in one entry"

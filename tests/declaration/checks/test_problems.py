import pickle

from frazil.declaration import InvalidDeclaration, Problem
from frazil.errors import FrazilError

TWO = (Problem("topic.name", "'a b' is no name", "Use letters"), Problem("topic.headers", "1 is an int", "Write True"))


def test_a_problem_says_where_what_and_what_to_do_on_one_line():
    assert str(TWO[0]) == "topic.name: 'a b' is no name. Use letters"


def test_an_invalid_declaration_lists_all_problems_one_a_line():
    assert (
        str(InvalidDeclaration(TWO))
        == "topic.name: 'a b' is no name. Use letters\ntopic.headers: 1 is an int. Write True"
    )


def test_an_invalid_declaration_is_an_error_of_the_one_tree_and_keeps_its_facts():
    error = InvalidDeclaration(iter(TWO))
    assert isinstance(error, FrazilError)
    assert error.problems == TWO
    assert error.what == "2 problems in the declaration"


def test_an_invalid_declaration_survives_the_way_from_a_worker_process():
    assert pickle.loads(pickle.dumps(InvalidDeclaration(TWO))).problems == TWO


def test_a_problem_moves_with_the_object_that_has_it():
    assert TWO[0].moved("topic.", "pipelines[3].topic.").path == "pipelines[3].topic.name"


def test_a_text_that_repeats_what_somebody_wrote_is_cut():
    assert len(str(Problem("p" * 9000, "w" * 9000, "d" * 9000))) < 2000

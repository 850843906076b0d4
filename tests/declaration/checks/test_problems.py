import pickle

from frazil.declaration import InvalidDeclaration, Problem

TWO = (Problem("topic.name", "'a b' is no name", "Use letters"), Problem("topic.headers", "1 is an int", "Write True"))


def test_an_invalid_declaration_survives_the_way_from_a_worker_process():
    assert pickle.loads(pickle.dumps(InvalidDeclaration(TWO))).problems == TWO


def test_a_problem_moves_with_the_object_that_has_it():
    assert TWO[0].moved("topic.", "pipelines[3].topic.").path == "pipelines[3].topic.name"


def test_a_text_that_repeats_what_somebody_wrote_is_cut():
    assert len(str(Problem("p" * 9000, "w" * 9000, "d" * 9000))) < 2000

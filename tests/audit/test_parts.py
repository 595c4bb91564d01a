"""The parts of the inference, each alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import trees
from tree_sitter import Node

from schema_patch.inference.domain import models
from schema_patch.inference.domain.state import CROWD, State, Variable
from schema_patch.inference.domain.summary import LOST, MOST, UNKNOWN, WRITE, Summary
from schema_patch.inference.domain.values import (
    ACCESSOR,
    ADDRESS,
    COPY,
    DATA,
    DEREF,
    NOTHING,
    PERHAPS,
    THIS,
    Local,
    Origin,
    Parameter,
    Value,
    at,
    either,
    element,
    extend,
    field_of,
    is_data,
    loaded,
    ordered,
    parameter,
)
from schema_patch.inference.engine.applying import AppliedCall, Given
from schema_patch.inference.engine.declarations import Declarations
from schema_patch.inference.engine.evaluator import Evaluator
from schema_patch.inference.engine.frame import FunctionFrame
from schema_patch.inference.engine.lambdas import Lambdas
from schema_patch.inference.engine.memory import TensorMemory
from schema_patch.inference.engine.types import Types
from schema_patch.inference.index import tree
from schema_patch.inference.index.index import Index
from schema_patch.inference.index.store import Store
from schema_patch.inference.index.syntax import parse

FIRST, SECOND = parameter(0), parameter(1)
HERE = (("a.cpp", 1),)


def origin(root: Parameter | Local, *path: object) -> Origin:
    return (root, path, False)  # type: ignore[return-value]


# Roots and paths.


def test_a_root_and_a_selector_are_one_object_each() -> None:
    assert parameter(0) is FIRST
    assert field_of("x") is field_of("x")
    assert len({at(FIRST), at(SECOND), at(FIRST, field_of("0")), at(FIRST, element(0))}) == 4


@pytest.mark.parametrize(
    ("path", "selector", "longer"),
    [
        ((), DATA, (DATA,)),
        ((ADDRESS,), DEREF, ()),
        ((ACCESSOR, DEREF), DEREF, (ACCESSOR, DEREF)),
        ((PERHAPS,), PERHAPS, (PERHAPS,)),
        ((field_of("p"), COPY), DEREF, (field_of("p"), DEREF)),
        ((field_of("p"),) * 7, DEREF, None),
    ],
)
def test_one_step_further(path: tuple[object, ...], selector: object, longer: tuple[object, ...] | None) -> None:
    found = extend(origin(FIRST, *path), selector)  # type: ignore[arg-type]
    assert (found and found[1]) == longer


def test_what_is_data_and_what_was_read_from_it() -> None:
    assert is_data((DATA, DEREF, field_of("x")))
    assert not is_data((DATA,))
    assert loaded((DATA, DEREF))
    assert not loaded((field_of("p"), DEREF))


def test_an_order_without_hashes() -> None:
    value = at(Local("variable", 2)) | at(THIS) | at(SECOND, DATA) | at(FIRST) | at(Local("list", 1)) | at(SECOND)
    assert [o[:2] for o in ordered(value)] == [
        (THIS, ()),
        (FIRST, ()),
        (SECOND, ()),
        (SECOND, (DATA,)),
        *((root, ()) for root in sorted((o[0] for o in value if isinstance(o[0], Local)), key=lambda r: r.number)),
    ]


def test_an_element_of_old_and_new_tensors_is_perhaps_the_old() -> None:
    new = at(Local("tensor", 1))
    assert either(at(FIRST) | new) == at(FIRST, PERHAPS) | new
    assert either(at(FIRST)) == at(FIRST)


# State: what places hold.


def test_an_assignment_replaces_and_branches_meet() -> None:
    state = State()
    variable = state.declare("p", Variable(state.new()))
    state.assign(variable, at(FIRST, DATA), HERE)
    before = dict(state.heap)
    state.assign(variable, at(SECOND, DATA), HERE)
    assert state.heap[variable.root, ()] == at(SECOND, DATA)
    state.merge(before)
    assert state.heap[variable.root, ()] == at(FIRST, DATA) | at(SECOND, DATA)


def test_a_store_through_a_parameter_is_an_effect_and_through_a_local_none() -> None:
    state = State()
    state.store(at(FIRST, DATA, DEREF) | at(state.new(), DEREF), NOTHING, HERE)
    assert state.summary.effects == {(WRITE, FIRST, (DATA, DEREF)): HERE}


def test_a_parameter_by_value_keeps_its_own_fields() -> None:
    state = State(by_value={FIRST})
    state.store(at(FIRST, field_of("n")) | at(FIRST, field_of("p"), DEREF), NOTHING, HERE)
    assert state.summary.effects == {(WRITE, FIRST, (field_of("p"), DEREF)): HERE}


def test_what_is_reachable_stands_behind_fields_and_addresses() -> None:
    state = State()
    box = state.new("object")
    state.add((box, (field_of("p"),)), at(FIRST, DATA))
    assert at(FIRST, DATA) <= state.reachable(at(box, ADDRESS))


def test_a_place_that_grew_too_wide_stays_so_until_it_is_assigned() -> None:
    state = State(now=HERE)
    place = (state.new("list"), (DEREF,))
    for number in range(60):
        state.add(place, at(parameter(number), DATA))
    assert {effect[1].number for effect in state.summary.effects} == set(range(60))
    state.merge({place: at(FIRST)})
    assert state.heap[place] == CROWD
    state.hold(place, at(FIRST))
    assert state.load([origin(*place[:1], DEREF)]) == at(place[0], DEREF) | at(FIRST)


def test_what_is_too_deep_is_given_up_by_name() -> None:
    state = State(now=HERE)
    assert state.select([origin(FIRST, *[field_of("next")] * 7)], DEREF) == NOTHING
    assert list(state.summary.reasons.values()) == ["reached through more than 7 steps"]


def test_too_many_effects_end_in_one_unknown_for_each_parameter_that_loses_some() -> None:
    one, other = Summary(), Summary()
    effects = [(WRITE, parameter(n % 3), (field_of(f"f{n}"), DEREF)) for n in range(MOST + 50)]
    for effect in effects:
        one.add(effect, HERE)
    for effect in reversed(effects):
        other.add(effect, HERE)
    one.finish()
    other.finish()
    assert list(one.effects) == list(other.effects)
    unknown = [effect for effect in one.effects if effect[0] == UNKNOWN]
    assert {root.number for _, root, _ in unknown} <= {0, 1, 2}
    assert unknown
    assert {one.reasons[effect] for effect in unknown} == {f"it is used in more than {MOST} ways"}


# One function's parts.


def frame(folder: Path, code: str, name: str = "f") -> FunctionFrame:
    """A frame of the function `f` in this code; what it calls does nothing."""
    whole = tree.read(trees.write(folder, op_cpp=trees.source(code)), Store("", on=False))
    index = Index(file.index for file in whole.files)
    return FunctionFrame(parse(index.functions[name][0], index), index, models.load(), lambda *_: Summary())


def nodes(frame: FunctionFrame, kind: str) -> list[Node]:
    found, todo = [], [frame.body.root]
    while todo:
        node = todo.pop(0)
        found += [node] if node.type == kind else []
        todo += node.named_children
    return found


def test_frame_knows_names_and_tensors(tmp_path: Path) -> None:
    at_hand = frame(tmp_path, "void f(at::Tensor& a, float* p) { n::g<int, true>(a); }")
    (call,) = nodes(at_hand, "call_expression")
    function = call.child_by_field_name("function")
    assert at_hand.names(function) == ("n", "g")
    assert at_hand.template_arguments(function) == ["int", " true"]
    assert at_hand.is_tensor(origin(FIRST))
    assert not at_hand.is_tensor(origin(FIRST, DATA))
    assert not at_hand.is_tensor(origin(SECOND))


def test_types_follow_aliases_fields_and_templates(tmp_path: Path) -> None:
    code = "struct In {}; struct Box { In* in; }; using Alias = n::Box;\ntemplate <class T> void f(T t) {}"
    types = Types(frame(tmp_path, code))
    assert types.class_of("const Alias&") == types.class_of("std::unique_ptr<Box>") == "Box"
    assert types.field_class("Box", "in") == "In"
    assert types.class_of("T") == types.class_of("Other") == ""


def test_memory_tells_tensors_from_pointers(tmp_path: Path) -> None:
    at_hand = frame(tmp_path, "void f(at::Tensor a, float* p) {}")
    memory = TensorMemory(at_hand)
    memory.write_through(at(FIRST) | at(SECOND), at_hand.body.root)
    assert {effect[1:] for effect in at_hand.state.summary.effects} == {(FIRST, (DATA, DEREF)), (SECOND, (DEREF,))}
    memory.lose(at(FIRST, DATA), at_hand.body.root)
    assert (LOST, FIRST, (DATA,)) in at_hand.state.summary.effects


def evaluator(folder: Path, code: str) -> tuple[FunctionFrame, Evaluator, Declarations]:
    at_hand = frame(folder, code)
    declarations = Declarations(at_hand, Types(at_hand))
    declarations.parameters()
    return at_hand, Evaluator(at_hand, TensorMemory(at_hand)), declarations


def test_the_evaluator_alone_knows_operators_and_assignments(tmp_path: Path) -> None:
    at_hand, alone, _ = evaluator(tmp_path, "void f(float* p, float* q, int n) { p[n] = *(q + n); }")
    (assignment,) = nodes(at_hand, "assignment_expression")
    alone.value(assignment)
    assert {effect[1:] for effect in at_hand.state.summary.effects} == {(FIRST, (DEREF,))}
    assert (SECOND, (DEREF,), False) in at_hand.state.summary.reads


def test_another_part_enters_what_it_reads(tmp_path: Path) -> None:
    at_hand, alone, _ = evaluator(tmp_path, "void f(float* p) { g(p)[0] = 1; }")
    (assignment,) = nodes(at_hand, "assignment_expression")
    alone.value(assignment)
    assert not at_hand.state.summary.effects
    at_hand.values["call_expression"] = lambda _: at(FIRST)
    alone.value(assignment)
    assert at_hand.state.summary.effects


def test_a_lambda_is_read_with_what_it_is_given(tmp_path: Path) -> None:
    at_hand, alone, declarations = evaluator(tmp_path, "void f(float* p) { [](float* x) { x[0] = 1; }; }")
    lambdas = Lambdas(at_hand, alone, declarations)
    (node,) = nodes(at_hand, "lambda_expression")
    ((closure, _, _),) = lambdas.of_lambda_expression(node)
    assert not at_hand.state.summary.effects
    lambdas.call(closure, [at(FIRST)], [at(FIRST)])  # type: ignore[arg-type]
    assert {effect[1:] for effect in at_hand.state.summary.effects} == {(FIRST, (DEREF,))}


class Caller:
    """What a summary needs of the function that calls: a state, and somewhere to send what it does not know."""

    def __init__(self) -> None:
        self.state = State()
        self.escaped: list[Value] = []
        self.called: list[tuple[Value, list[Value]]] = []

    def escape(self, value: Value, node: Node, reason: str) -> None:
        self.escaped.append(value)

    def call_value(self, called: Value, given: Given) -> Value:
        self.called.append((called, given.values))
        return NOTHING

    def call_method(self, objects: Value, name: str, given: Given) -> None:
        self.called.append((objects, given.values))


def test_a_summary_is_put_to_use_in_the_callers_terms(tmp_path: Path) -> None:
    node = frame(tmp_path, "void f() {}").body.root
    summary = Summary(returned=at(SECOND))
    summary.add((WRITE, FIRST, (DEREF,)), (("callee.cpp", 7),))
    summary.calls[origin(SECOND), "operator()", (at(FIRST),), (at(FIRST),)] = None
    summary.finish()
    caller = Caller()
    given = [at(parameter(4), DATA), at(parameter(5))]
    returned = AppliedCall(caller, summary, given, given, NOTHING, node, HERE).run()
    assert returned == given[1]
    assert caller.state.summary.effects == {(WRITE, parameter(4), (DATA, DEREF)): (*HERE, ("callee.cpp", 7))}
    assert caller.called == [(given[1], [given[0]])]

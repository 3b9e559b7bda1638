"""Linear cost, shown by counting steps instead of reading a clock.

The source of the frame reader is rewritten so that every call, ``+``, ``+=``, slice and ``in`` goes
through a `Counter`, which adds 1 and the bytes that the operation may touch. The rewritten reader then
reads a text and one of twice the size, in the same cut: at linear cost the count doubles.

The model errs upwards: bytes that are handed over by reference count as if they were read, and a search
counts the whole of what it searches. What it deliberately cannot see is how a regular expression
backtracks, since that happens inside one call; and comparisons, which end where two texts differ.
Deletions and assignments of slices are refused, so that nothing escapes the count unnoticed.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple, cast

from sse_machines import _frames

MAX_RATIO = 2.6
"""Most that the double input may cost, in relation to the single one."""

# Well above 512 bytes, up to which the reader is free to look again at what it holds.
_TINY_PIECES = 3 * 1024
_PIECES = 12 * 1024
# More than two of the windows that the reader takes its input in.
_ALL_FIRST = 36 * 1024

_TEXT = (bytes, bytearray, memoryview, str)
# These look at what they are given without reading it.
_FREE_FUNCTIONS = (len, isinstance, type)
_FREE_LIST_METHODS = ("append", "extend")
_COUNTER = "_step_counter"


class Counter:
    """Does what it is asked to do, and counts."""

    def __init__(self) -> None:
        self.total = 0

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function."""
        if function in _FREE_FUNCTIONS:
            self.total += 1
            return function(*args, **kwargs)
        return self._call(function, args, kwargs)

    def method(self, owner: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call ``owner.name(...)``."""
        free = name in _FREE_LIST_METHODS or (name == "pop" and not args)
        if isinstance(owner, _TEXT) or (isinstance(owner, list) and not free):
            self.total += len(owner)
        return self._call(getattr(owner, name), args, kwargs)

    def add(self, left: Any, right: Any) -> Any:
        """``left + right``."""
        result = left + right
        self.total += 1 + size(result)
        return result

    def add_in_place(self, left: Any, right: Any) -> Any:
        """``left += right``; growing a mutable left side is paid by what is added, amortized."""
        self.total += 1 + size(right)
        if not isinstance(left, (bytearray, list)):
            self.total += size(left)
        left += right
        return left

    def slice(self, owner: Any, *bounds: int | None) -> Any:
        """``owner[start:stop:step]``."""
        result = owner[slice(*bounds)]
        self.total += 1 + size(result)
        return result

    def contains(self, item: Any, owner: Any) -> bool:
        """``item in owner``."""
        self.total += 1 + size(owner)
        return item in owner

    def _call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # Before the call, which may empty what it is given.
        self.total += 1 + size(args)
        if kwargs:
            self.total += size(list(kwargs.values()))
        result = function(*args, **kwargs)
        self.total += size(result)
        return result


def size(value: Any) -> int:
    """The bytes of a text, or of all texts in a list or tuple and one for each of them."""
    if isinstance(value, _TEXT):
        return len(value)
    if isinstance(value, (list, tuple)):
        total = len(value)
        for item in value:
            if isinstance(item, _TEXT):
                total += len(item)
            elif isinstance(item, (list, tuple)):
                total += size(item)
        return total
    return 0


class _Rewriter(ast.NodeTransformer):
    """Sends the operations of a module through the counter."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = node.func
        if isinstance(function, ast.Attribute):
            target = [function.value, ast.Constant(function.attr)]
            return _counted("method", [*target, *node.args], node.keywords)
        return _counted("call", [function, *node.args], node.keywords)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return _counted("add", [node.left, node.right]) if isinstance(node.op, ast.Add) else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Add):
            return node
        # The same expression, read instead of written to. It is evaluated twice, which does no harm
        # to names and attributes.
        target = ast.parse(ast.unparse(node.target), mode="eval").body
        return ast.Assign([node.target], _counted("add_in_place", [target, node.value]))

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        index = node.slice
        if not isinstance(index, ast.Slice):
            return node
        if not isinstance(node.ctx, ast.Load):
            raise NotImplementedError(f"line {node.lineno}: a slice is deleted or assigned to")
        bounds = [bound or ast.Constant(None) for bound in (index.lower, index.upper, index.step)]
        return _counted("slice", [node.value, *bounds])

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) > 1 or not isinstance(node.ops[0], (ast.In, ast.NotIn)):
            return node
        found = _counted("contains", [node.left, node.comparators[0]])
        return found if isinstance(node.ops[0], ast.In) else ast.UnaryOp(ast.Not(), found)


def _counted(name: str, args: list[ast.expr], keywords: list[ast.keyword] | None = None) -> ast.expr:
    function = ast.Attribute(ast.Name(_COUNTER, ast.Load()), name, ast.Load())
    return ast.Call(function, args, keywords or [])


def rewritten(source: str, counter: Counter) -> ModuleType:
    """Run the source of a module of ``sse_machines`` so that it counts its steps."""
    tree = ast.fix_missing_locations(_Rewriter().visit(ast.parse(source)))
    module = ModuleType("sse_machines._counted")
    module.__package__ = "sse_machines"
    setattr(module, _COUNTER, counter)
    # The file name belongs to no file, so that a coverage report is left alone.
    exec(compile(tree, "<counted>", "exec"), module.__dict__)
    return module


class Shape(NamedTuple):
    """A text that can be made in any size, and how it is cut.

    Attributes:
        name: What it is.
        head: Stands before the units.
        unit: Is repeated.
        end: Stands behind the units.
        piece: Bytes that are fed at a time.
        late: Whether frames are taken only when everything is fed.
    """

    name: str
    head: bytes
    unit: bytes
    end: bytes
    piece: int
    late: bool = False

    @property
    def length(self) -> int:
        """A length that is enough to tell linear from quadratic, and quick."""
        if self.late:
            return _ALL_FIRST
        return _TINY_PIECES if self.piece == 1 else _PIECES

    def pieces(self, length: int) -> list[bytes]:
        """The text, about ``length`` bytes long, in pieces."""
        text = self.head + self.unit * (length // len(self.unit)) + self.end
        return [text[start : start + self.piece] for start in range(0, len(text), self.piece)]


SHAPES = (
    Shape("one long line, 64 B pieces", b"data: ", b"x", b"\n\n", 64),
    Shape("one long line, 1 B pieces", b"data: ", b"x", b"\n\n", 1),
    Shape("many data lines in one event", b"", b"data: x\n", b"\n", 61),
    Shape("comments without blank lines", b"", b": keep-alive\n", b"", 61),
    Shape("comments inside an event", b"data: x\n", b": keep-alive\n", b"\n", 61),
    Shape("CR only, one event", b"", b"data: x\r", b"\r", 61),
    Shape("CR only, many events", b"", b"data: x\r\r", b"", 61),
    Shape("CRLF in 1 B pieces, one event", b"", b"data: x\r\n", b"\r\n", 1),
    Shape("CRLF in 1 B pieces, many events", b"", b"data: x\r\n\r\n", b"", 1),
    Shape("one long line, all fed first", b"data: ", b"x", b"\n\n", 64, late=True),
    Shape("many events, all fed first", b"", b"data: x\n\n", b"", 61, late=True),
)


class Run(NamedTuple):
    """What reading one text took and gave."""

    steps: int
    frames: int


def frames_source() -> str:
    """The source of the frame reader."""
    return inspect.getsource(_frames)


def run(source: str, shape: Shape, length: int) -> Run:
    """Count the steps of reading one text.

    Args:
        source: A module with a ``FrameReader`` that has ``feed`` and ``next_frame``.
        shape: What it reads.
        length: How much of that, in bytes.
    """
    counter = Counter()
    reader = cast("Any", rewritten(source, counter)).FrameReader()
    # What importing and making the reader took does not grow.
    counter.total = 0
    frames = 0
    for piece in shape.pieces(length):
        reader.feed(piece)
        frames += 0 if shape.late else _take(reader)
    frames += _take(reader)
    return Run(counter.total, frames)


def _take(reader: Any) -> int:
    count = 0
    while reader.next_frame() is not None:
        count += 1
    return count


def ratio(source: str, shape: Shape) -> float:
    """How much more the double input costs: about 2 if the cost is linear, 4 if it is quadratic."""
    return run(source, shape, 2 * shape.length).steps / run(source, shape, shape.length).steps


def print_steps(length: int | None) -> None:
    """Count and print.

    Args:
        length: Bytes of the single input; by default each shape has its own.
    """
    source = frames_source()
    print(f"{'':34}{'bytes':>8}{'steps/byte':>12}{'at double':>12}{'ratio':>8}")
    for shape in SHAPES:
        single = length or shape.length
        once, twice = run(source, shape, single).steps, run(source, shape, 2 * single).steps
        print(
            f"{shape.name:34}{single:>8,}{once / single:>12.1f}{twice / single / 2:>12.1f}"
            f"{twice / once:>8.2f}"
        )

"""Follows the code of a library from a function on: every path, as far as numbers tell where it leads.

Where a branch is not decided, both sides are followed to where they meet, and joined there; a loop is followed until
nothing more is forgotten. Functions of the library are followed too, those of others are what `imports` makes of them.
Nothing is run: all is reckoning with values of machine.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from .conditions import holds
from .instructions import BRANCH, CALL, JUMP, PLAIN, RETURN, Step
from .machine import FOREIGN, HEAP, IMAGE, NOTHING, RBP, RSP, STACK, STACK_SIZE, Foreign, Log, Memory, Registers, Value
from .program import Program, Unknown

LOOKED_AT = 8  # words that are as much work as an instruction
STEPS = 3_000_000  # instructions followed from one function on
FORKED = 60  # instructions that a side of an undecided branch counts as: what it takes to copy and join
OTHERS = 20  # instructions that a call of another library's function is as much work as
DEEPEST = 48  # calls within calls, and undecided branches within those
TORCHS_OWN = "_ZN5torch"  # what a function is called that torch gave us, such as a destructor
REPEATS = 2  # of a function within itself
ROUNDS = 12  # of a loop, until what it forgets is known
STUB = 11  # bytes before the jump of a stub
SAVED = (3, 5, 12, 13, 14, 15)  # registers that a function gives back as it got them
GIVEN = (7, 6, 2, 1, 8, 9)  # registers that hold arguments
SCRATCH = (1, 2, 6, 7, 8, 9, 10, 11)


class Limit(Unknown):
    """There is more code to follow than is followed."""


@dataclass(slots=True)
class Frame:
    """One call. `returned`: the ends of its paths, where there are several; `given`: its arguments."""

    entry: int
    top: int
    site: int
    active: dict[int, tuple[int, list[tuple[Registers, Log]]]] = field(default_factory=dict)
    returned: list[tuple[Registers, Log]] = field(default_factory=list)
    level: int = 0
    nested: int = 0
    given: tuple[Value, ...] = ()


class Follower:
    """What was followed, and how far. `lost`: jumps to where nobody knows; `cut`: functions that call themselves.

    `import_(follower, name, site)` does what another library's function does; `apart(follower, entry)` what one of the
    library does, if it can; `most`: instructions; `above`: calls that lead here.
    """

    def __init__(
        self,
        program: Program,
        memory: Memory,
        import_: Callable[[Follower, str, int], bool],
        apart: Callable[[Follower, int], bool],
        *,
        most: int = STEPS,
        above: int = 0,
    ) -> None:
        self.program, self.memory, self.import_, self.apart, self.above = program, memory, import_, apart, above
        self.step, self.name = program.step, program.name
        self.registers = Registers()
        self.registers.general[RSP] = STACK + STACK_SIZE - 4096
        memory.floor = lambda: self.registers.general[RSP]
        self.frames: list[Frame] = []
        self.steps, self.most = 0, min(most, STEPS)
        self.called: set[int] = set()
        self.entered: set[int] = set()
        self.lost: list[int] = []
        self.cut: set[int] = set()
        self.jumped = (0, 0)

    @property
    def work(self) -> int:
        """In instructions."""
        return self.steps + self.memory.looked_at // LOOKED_AT

    # What an import needs to know and do.

    def argument(self, index: int) -> Value:
        return self.registers.general[GIVEN[index]]

    def others_write(self, *, size: int = 0, keeps: bool = True, given: Iterable[Value] | None = None) -> None:
        """What a function that is not known may do to all that it was given, and to what it kept."""
        seen: set[tuple[int, int]] = set()
        pending = [*(map(self.argument, range(len(GIVEN))) if given is None else given)]
        while pending:
            address = pending.pop()
            if not isinstance(address, int) or not IMAGE <= address < STACK + STACK_SIZE or IMAGE <= address < HEAP:
                continue
            start, end = self.memory.extent(address)
            if size:
                end = min(end, address + size)
            if (start, end) in seen:
                continue
            seen.add((start, end))
            if keeps:
                pending += [word for at, word in self._words(start, end) if isinstance(word, int)]
                self.memory.escape(address)
        for start, end in seen:
            self.memory.forget(start, end)
        if keeps:
            self.memory.forget_escaped()

    def _words(self, start: int, end: int) -> list[tuple[int, object]]:
        words = self.memory.words
        if end - start > 8 * len(words):
            return [(at, word) for at, word in words.items() if start <= at < end]
        return [(at, words[at]) for at in range(start & ~7, end, 8) if at in words]

    def _reached(self) -> list[Value]:
        """What a function may be given: in any register, or on the stack, where the frame is that calls it."""
        top, frame = self.registers.general[RSP], self.frames[-1]
        stack = self._words(top, frame.top) if isinstance(top, int) else []
        words = [word for _, word in stack] + [word for words in self.registers.vector for word in words]
        return [*self.registers.general, *(word for word in words if isinstance(word, int))]

    # The following.

    def call(self, entry: int, site: int = 0) -> bool:
        """Follows a function to its return; False where it never returns."""
        if [frame.entry for frame in self.frames].count(entry) >= REPEATS:
            self.cut.add(entry)
            self.others_write(given=self._reached())
            self.registers.general[0] = None
            return True
        if self.above + len(self.frames) >= DEEPEST:
            raise Limit(f"calls {DEEPEST} deep")
        general = self.registers.general
        top = general[RSP]
        if not isinstance(top, int):
            raise Limit("the stack is not known")
        saved = [general[register] for register in SAVED]
        general[RSP] = top - 8
        self.memory.store(top - 8, 8, None)
        frame = Frame(entry, top - 8, site, given=tuple([general[register] for register in GIVEN]))
        self.frames.append(frame)
        self.memory.tops.append(frame.top)
        self.entered.add(entry)
        try:
            alive = self._run(frame, entry, 0)
            if frame.level:
                ends = [*frame.returned, *([self._end(frame.level)] if alive else [])]
                self._leave(frame)
                alive = self._join(ends)
        finally:
            self.frames.pop()
            self.memory.tops.pop()
        general = self.registers.general
        for register, value in zip(SAVED, saved, strict=True):
            general[register] = value
        general[RSP] = top
        self.memory.frame_ends(top)
        return alive

    def _run(self, frame: Frame, at: int, stop: int) -> bool:
        """Follows to an address, or to the return: True where it was reached."""
        step, registers, memory, line = self.step, self.registers, self.memory, self.program.image.line
        resumed = self.program.resumed(frame.entry)
        while at != stop:
            if self.work > self.most:
                raise Limit(f"{self.most} instructions from one function on")
            end, count, acts = line(at)
            if count and not at < stop < end and not resumed:
                for act in acts:
                    act(registers, memory)
                self.steps += count
                at = end
                continue
            if at in resumed:
                self._resume(frame)
            now = step(at)
            self.steps += 1
            kind = now.kind
            if kind == PLAIN:
                if now.act:
                    now.act(registers, memory)
                at = now.next
            elif kind == BRANCH:
                if now.condition < 0:  # jrcxz and loop, which counts
                    registers.general[1] = None
                met = None if now.condition < 0 else holds(now.condition, registers.flags)
                if met is None:
                    next_ = self._fork(frame, now, (now.next, now.to))
                    registers = self.registers
                    if next_ is None:
                        return False
                    at = next_
                else:
                    at = now.to if met else now.next
            elif kind == CALL:
                if not self._called(now):
                    return False
                registers = self.registers
                at = now.next
            elif kind == JUMP:
                self.called.add(now.next)
                if now.to:
                    self.jumped = (now.to, now.next)
                where = now.to or (now.where(registers, memory) if now.where else None)
                if isinstance(where, int) and self.name(where) is None and IMAGE <= where < HEAP:
                    if not now.to and where not in self.program.graph(frame.entry).after:
                        frame.entry = where  # a stub, or another function in place of this one
                        self.entered.add(where)
                        resumed = self.program.resumed(where)
                    at = where
                    continue
                targets = (
                    self.program.graph(frame.entry).tables.get(now.address, ())
                    if where is None or isinstance(where, Foreign)
                    else ()
                )
                if not targets:
                    return self._jumped_out(frame, now, where)
                next_ = self._fork(frame, now, targets)
                registers = self.registers
                if next_ is None:
                    return False
                at = next_
            elif kind == RETURN:
                return self._returned(frame)
            else:
                return False
        return True

    def _resume(self, frame: Frame) -> None:
        """Joins what a caught exception left behind, which was not followed: anything, but for where the frame is."""
        general = self.registers.general
        stack, base = general[RSP], general[RBP]
        self.others_write(given=frame.given)
        if isinstance(stack, int):
            self.memory.forget(stack, frame.top)
        self._clobber()
        general[:] = [None] * len(general)
        general[RSP], general[RBP] = stack, base if base == frame.top - 8 else None

    def _returned(self, frame: Frame) -> bool:
        top = self.registers.general[RSP]
        if isinstance(top, int) and (top != frame.top or isinstance(self.memory.load(top, 8), int)):
            raise Unknown("a return to where no call came from")
        if frame.nested:
            frame.returned.append(self._end(frame.level))
            return False
        return True

    def _jumped_out(self, frame: Frame, now: Step, where: Value) -> bool:
        """A jump to a function of others, which returns for this one; or to where nobody knows."""
        top = self.registers.general[RSP]
        if top != frame.top and not (top is None and isinstance(where, int) and self.name(where)):
            self.lost.append(now.address)  # an import may return where the stack is not known, as behind a catch
            return False
        to, behind = self.jumped
        site = behind if 0 <= now.address - to <= STUB else now.next
        if 0 <= now.address - frame.entry <= STUB and frame.site:
            site = frame.site
        return self._other(where, site) and self._returned(frame)

    def _called(self, now: Step) -> bool:
        where = now.to or (now.where(self.registers, self.memory) if now.where else None)
        self.called.add(now.next)
        if isinstance(where, int) and IMAGE <= where < HEAP and self.name(where) is None:
            entry = self.program.behind(where)
            if self.name(entry) is None:
                return self.apart(self, entry) or self.call(entry, now.next)
            where = entry
        return self._other(where, now.next)

    def _other(self, where: Value, site: int) -> bool:
        if isinstance(where, int) and where >= HEAP:
            raise Unknown("a call into data")
        name = (self.name(where) if isinstance(where, int) else TORCHS_OWN if where else None) or ""
        self.steps += OTHERS
        alive = self.import_(self, name, site)
        self._clobber()
        return alive

    def _clobber(self) -> None:
        """What a call leaves in the registers that it need not keep: nothing that anyone reads."""
        for register in SCRATCH:
            self.registers.general[register] = FOREIGN
        self.registers.vector = [NOTHING] * 32
        self.registers.flags = (None,) * 4

    def _fork(self, frame: Frame, now: Step, targets: tuple[int, ...]) -> int | None:
        """Follows all sides of a branch to where they meet; gives that address, or None where no path goes on."""
        if now.address in frame.active:
            level, backs = frame.active[now.address]
            backs.append(self._end(level))
            return None
        if frame.nested > DEEPEST:
            raise Limit(f"{DEEPEST} undecided branches within each other")
        if not frame.level:
            self.memory.logs.append({})
            frame.level = len(self.memory.logs) - 1
        home = frame.entry  # a side may jump to another function, which stands in for this one to its end
        stop = self.program.meeting(home, now.address)
        level, backs = frame.active[now.address] = (len(self.memory.logs), [])
        entry = self.registers
        for _ in range(ROUNDS):
            ends: list[tuple[Registers, Log]] = []
            self.steps += FORKED * len(targets)
            for target in targets:
                if not self.program.returns(home, target):
                    continue  # it ends in an exception: nothing of it is seen here
                frame.entry = home
                self.registers = entry.copy()
                self.memory.logs.append({})
                frame.nested += 1
                if self._run(frame, target, stop):
                    ends.append(self._end(level))
                frame.nested -= 1
                self.memory.undo()
            if not backs:
                break
            changed = self.memory.merge([{}, *(log for _, log in backs)])
            for registers, _ in backs:
                changed |= entry.join(registers, self.memory)
            backs.clear()
            if not changed:
                break
        else:
            raise Limit(f"a loop that forgets more in each of {ROUNDS} rounds")
        del frame.active[now.address]
        frame.entry = home
        return stop if self._join(ends) else None

    def _end(self, level: int) -> tuple[Registers, Log]:
        return self.registers.copy(), self.memory.since(level)

    def _join(self, ends: list[tuple[Registers, Log]]) -> bool:
        if not ends:
            return False
        self.registers = ends[0][0].copy()
        for registers, _ in ends[1:]:
            self.registers.join(registers, self.memory)
        self.memory.merge([log for _, log in ends])
        return True

    def _leave(self, frame: Frame) -> None:
        """Takes back what a function wrote since its first undecided branch, for its paths to be joined."""
        while len(self.memory.logs) > frame.level:
            self.memory.undo()


def never_returns(name: str) -> bool:
    """Whether another library's function ends the path that calls it."""
    return any(word in name for word in ENDINGS)


ENDINGS = (
    "__throw_", "_Unwind_Resume", "__cxa_throw", "__cxa_rethrow", "__cxa_bad_", "abort", "terminate", "__assert_fail",
    "__stack_chk_fail", "torchCheckFail", "torchInternalAssertFail", "__cxa_pure_virtual", "__fortify_fail",
)  # fmt: skip

#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""Run small concurrent programs under CPython's asyncio and print what happened, in order.

The trace that this prints is the reference that weft's own player must print for the same program:
same lines, same order. Time is virtual (it jumps to the next timer when nothing is ready), one unit
is written `1` in a program and in a trace, so no run depends on the machine's speed.

  asyncio_oracle.py run FILE              trace of one program
  asyncio_oracle.py generate SEED [SIZE]  a random program (SIZE 1..5, default 3)
  asyncio_oracle.py both SEED [SIZE]      the program, a line '---', its trace

Where CPython has no answer (tasks that wait for each other in a ring, and one is cancelled: a
RecursionError) it prints `invalid` in place of the trace and exits 3; skip that program.

The language is described in README.md beside this file.
"""

import asyncio
import collections
import heapq
import os
import random
import sys
from asyncio import events


# ---------------------------------------------------------------- virtual time

class _TimerHandle(events.TimerHandle):
    """Equal deadlines fire in the order in which they were scheduled."""

    __slots__ = ("_seq",)

    def __lt__(self, other):
        return (self._when, self._seq) < (other._when, other._seq)

    def __le__(self, other):
        return (self._when, self._seq) <= (other._when, other._seq)

    def __gt__(self, other):
        return (self._when, self._seq) > (other._when, other._seq)

    def __ge__(self, other):
        return (self._when, self._seq) >= (other._when, other._seq)


class _JumpingSelector:
    def __init__(self, loop):
        self._loop = loop

    def select(self, timeout=None):
        if timeout is None:  # nothing is ready and no timer is pending
            self._loop.stop()
        elif timeout > 0:
            self._loop.now = self._loop._scheduled[0]._when
        return []

    def close(self):
        pass

    def get_map(self):
        return {}


class _InOrder(dict):
    """A set that keeps the order of insertion: a TaskGroup cancels its children in that order."""

    def add(self, item):
        self[item] = None

    def discard(self, item):
        self.pop(item, None)


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self):
        super().__init__()
        self.now = 0.0
        self._timer_seq = 0
        self._real_selector = self._selector
        self._selector = _JumpingSelector(self)
        if _Task is not None:
            self.set_task_factory(lambda loop, coro, **options: _Task(coro, loop=loop, **options))

    def time(self):
        return self.now

    def call_at(self, when, callback, *args, context=None):
        self._check_closed()
        timer = _TimerHandle(when, callback, args, self, context)
        timer._seq = self._timer_seq
        self._timer_seq += 1
        heapq.heappush(self._scheduled, timer)
        timer._scheduled = True
        return timer

    def _process_events(self, event_list):
        pass

    def close(self):
        self._selector = self._real_selector
        super().close()


# ---------------------------------------------------------------- races that 3.11 loses and 3.13 does not
#
# From 3.13 on, CPython's own classes are used; before, these, which behave like them.

class _Task(asyncio.tasks._PyTask):
    """Taking back the last request to cancel also takes back one that is not yet delivered."""

    def uncancel(self):
        left = super().uncancel()
        if left == 0:
            self._must_cancel = False
        return left


class _TaskGroup(asyncio.TaskGroup):
    """Takes back only its own request to cancel the parent, and only when the children are done, so
    that neither it nor the children's errors hide a request from outside."""

    async def __aenter__(self):
        await super().__aenter__()
        self._tasks = _InOrder()
        return self

    async def __aexit__(self, kind, error, traceback):
        self._exiting = True
        from_outside = error if isinstance(error, asyncio.CancelledError) else None
        if error is not None and not self._aborting:
            self._abort()
        while self._tasks:
            if self._on_completed_fut is None:
                self._on_completed_fut = self._loop.create_future()
            try:
                await self._on_completed_fut
            except asyncio.CancelledError as request:
                if not self._aborting:
                    from_outside = request
                    self._abort()
            self._on_completed_fut = None
        if self._parent_cancel_requested and self._parent_task.uncancel() == 0:
            from_outside = None
        if from_outside is not None and not self._errors:
            raise from_outside
        if error is not None and not isinstance(error, asyncio.CancelledError):
            self._errors.append(error)
        if self._errors:
            if self._parent_task.cancelling():
                self._parent_task.uncancel()
                self._parent_task.cancel()
            raise BaseExceptionGroup("errors of a TaskGroup", self._errors)


def _semaphore(kind):
    class Semaphore(kind):
        """A unit handed to a waiter that is then cancelled goes on, at once, to all whom it suffices for."""

        async def acquire(self):
            if not self.locked():
                self._value -= 1
                return True
            if self._waiters is None:
                self._waiters = collections.deque()
            woken = asyncio.get_running_loop().create_future()
            self._waiters.append(woken)
            try:
                try:
                    await woken
                finally:
                    self._waiters.remove(woken)
            except asyncio.CancelledError:
                if woken.done() and not woken.cancelled():
                    self._value += 1
                raise
            finally:
                while self._value > 0 and any(not w.done() for w in self._waiters):
                    self._wake_up_next()
            return True

    return Semaphore


class _Condition(asyncio.Condition):
    """A waiter that was notified and then fails hands the notification on."""

    async def wait(self):
        if not self.locked():
            raise RuntimeError("the lock is not held")
        woken = asyncio.get_running_loop().create_future()
        self.release()
        try:
            try:
                self._waiters.append(woken)
                try:
                    await woken
                finally:
                    self._waiters.remove(woken)
            finally:
                cancelled = None
                while True:
                    try:
                        await self.acquire()
                        break
                    except asyncio.CancelledError as error:
                        cancelled = error
                if cancelled is not None:
                    raise cancelled
        except BaseException:
            if self._waiters:
                self.notify(1)
            raise
        return True


class _Timeout:
    """Turns its own request to cancel, and no other, into TimeoutError."""

    def __init__(self, delay):
        self._delay = delay
        self._expired = False

    def expired(self):
        return self._expired

    async def __aenter__(self):
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._requests_before = self._task.cancelling()
        if self._delay <= 0:
            self._alarm = loop.call_soon(self._on_alarm)
        else:
            self._alarm = loop.call_at(loop.time() + self._delay, self._on_alarm)
        return self

    def _on_alarm(self):
        self._task.cancel()
        self._expired = True

    async def __aexit__(self, kind, error, traceback):
        self._alarm.cancel()
        if self._expired and self._task.uncancel() <= self._requests_before and isinstance(error, asyncio.CancelledError):
            raise TimeoutError from error


async def _wait_for(awaitable, delay):
    if delay > 0:
        async with timeout(delay):
            return await awaitable
    future = asyncio.ensure_future(awaitable)
    if future.done():
        return future.result()
    woken = asyncio.get_running_loop().create_future()
    wake = lambda _future: woken.done() or woken.set_result(None)
    future.add_done_callback(wake)
    try:
        future.cancel()
        await woken
    finally:
        future.remove_done_callback(wake)
    try:  # A gather that was cancelled has a CancelledError for its error.
        return future.result()
    except asyncio.CancelledError as error:
        raise TimeoutError from error


def _gather(*futures, return_exceptions=False):
    """Counts children that are already done at once, not a round later."""
    outer = asyncio.tasks._GatheringFuture(list(futures), loop=asyncio.get_running_loop())
    children = list(dict.fromkeys(futures))
    missing = len(children)

    def outcome_of(child):
        if child.cancelled():
            return asyncio.CancelledError()
        return child.result() if child.exception() is None else child.exception()

    def on_done(child):
        nonlocal missing
        missing -= 1
        if outer.done():
            child.cancelled() or child.exception()  # retrieved
        elif not return_exceptions and (child.cancelled() or child.exception() is not None):
            outer.set_exception(outcome_of(child))
        elif missing == 0 and outer._cancel_requested:
            outer.set_exception(asyncio.CancelledError())
        elif missing == 0:
            outer.set_result([outcome_of(f) for f in futures])

    done_already = [child for child in children if child.done()]
    for child in children:
        if not child.done():
            child.add_done_callback(on_done)
    for child in done_already:
        on_done(child)
    return outer


if sys.version_info >= (3, 13):

    class _TaskGroup(asyncio.TaskGroup):
        async def __aenter__(self):
            await super().__aenter__()
            self._tasks = _InOrder()
            return self

    _Condition = asyncio.Condition
    _Semaphore, _BoundedSemaphore = asyncio.Semaphore, asyncio.BoundedSemaphore
    _Task = None
    timeout, wait_for, gather = asyncio.timeout, asyncio.wait_for, asyncio.gather
else:
    _Semaphore, _BoundedSemaphore = _semaphore(asyncio.Semaphore), _semaphore(asyncio.BoundedSemaphore)
    timeout, wait_for, gather = _Timeout, _wait_for, _gather


# ---------------------------------------------------------------- the language

class Failure(Exception):
    """What `raise NAME` raises."""


class _Return(Exception):
    def __init__(self, value):
        self.value = value


def parse(text):
    """The program as {'procs': {name: block}, 'objects': [(kind, name, n)]}; a block is a list of
    [word, ...] statements, where a word may itself be a block (a list of statements)."""
    tokens = []
    for line in text.splitlines():
        tokens.extend(line.split("#")[0].split())
        tokens.append("\n")
    position = 0

    def block():
        nonlocal position
        statements, words = [], []
        while True:
            token = tokens[position]
            position += 1
            if token == "\n":
                if words:
                    statements.append(words)
                words = []
            elif token == "{":
                words.append(block())
            elif token == "}":
                if words:
                    statements.append(words)
                return statements
            else:
                words.append(token)

    tokens.append("}")
    program = {"procs": {}, "objects": []}
    for statement in block():
        if statement[0] == "proc":
            program["procs"][statement[1]] = statement[2]
        else:
            program["objects"].append((statement[0], statement[1], int(statement[2]) if len(statement) > 2 else 0))
    return program


class Player:
    def __init__(self, program, out):
        self.procs = program["procs"]
        self.out = out
        self.names = {}
        self.vars = {}
        self.objects = program["objects"]
        self.tasks = []
        self.invalid = False  # tasks that wait for each other in a ring cannot be cancelled in CPython

    # -- helpers

    def log(self, who, text):
        self.out.append(f"{int(self.loop.now)} {who} {text}")

    def name_of(self, wanted):
        count = self.names.get(wanted, 0)
        self.names[wanted] = count + 1
        return wanted if count == 0 else f"{wanted}#{count}"

    def make_task(self, proc, name, factory=asyncio.create_task):
        name = self.name_of(name)
        task = factory(self.body(proc, name), name=name)
        self.tasks.append(task)  # asyncio itself would lose a task that only waits
        return task

    async def body(self, proc, me):
        self.log(me, "begin")
        try:
            await self.block(self.procs[proc], me, None)
        except _Return as r:
            self.log(me, f"end return {r.value}")
            return r.value
        except asyncio.CancelledError:
            self.log(me, "end cancelled")
            raise
        except RecursionError:
            self.invalid = True
            raise
        except Exception as e:
            self.log(me, f"end raised {describe(e)}")
            raise
        self.log(me, "end")
        return 0

    def on_exception(self, _loop, context):
        if isinstance(context.get("exception"), RecursionError):
            self.invalid = True

    def start(self):
        for kind, name, n in self.objects:
            if kind == "future":
                self.vars[name] = self.loop.create_future()
            elif kind == "event":
                self.vars[name] = asyncio.Event()
            elif kind == "lock":
                self.vars[name] = asyncio.Lock()
            elif kind == "sem":
                self.vars[name] = _Semaphore(n)
            elif kind == "bsem":
                self.vars[name] = _BoundedSemaphore(n)
            elif kind == "cond":
                self.vars[name] = _Condition()
            elif kind == "queue":
                self.vars[name] = asyncio.Queue(n)
            elif kind == "barrier":
                self.vars[name] = asyncio.Barrier(n)
                self.vars[name]._cond = _Condition()
            else:
                raise ValueError(f"unknown object {kind}")
        self.make_task("main", "main")

    def run(self):
        self.loop = loop = VirtualLoop()
        loop.set_exception_handler(self.on_exception)
        asyncio.set_event_loop(loop)
        sys.stderr = open("/dev/null", "w")  # warnings of what is left behind are no part of the trace
        loop.call_soon(self.start)
        loop.run_forever()
        pending = sorted(t.get_name() for t in asyncio.all_tasks(loop))
        self.log("-", f"idle pending {','.join(pending) or '-'}")

    # -- statements

    async def block(self, statements, me, group):
        for words in statements:
            await self.statement(words, me, group)

    async def outcome(self, me, label, awaitable):
        """Awaits, logs how it ended, lets a cancellation through and swallows a failure."""
        try:
            value = await awaitable
        except asyncio.CancelledError:
            self.log(me, f"{label} -> cancelled")
            raise
        except TimeoutError:
            self.log(me, f"{label} -> timeout")
        except RecursionError:
            raise
        except Exception as e:
            self.log(me, f"{label} -> raised {describe(e)}")
        else:
            self.log(me, f"{label} -> {show(value)}")

    PLAIN = {"log", "cancel", "done", "drop", "resolve", "fail", "set", "clear", "try_put", "try_get", "task_done", "release"}

    def plain(self, words, me):
        """A statement that waits for nothing: in a task, or (`me` is "-") in a callback."""
        op, args = words[0], words[1:]
        v = self.vars
        if op == "log":
            self.log(me, args[0])
        elif op == "cancel":
            if args[0] in v:
                self.log(me, f"cancel {args[0]} -> {show(v[args[0]].cancel())}")
        elif op == "done":
            if args[0] in v:
                self.log(me, f"done {args[0]} -> {show(v[args[0]].done())}")
        elif op == "drop":
            if args[0] in v:
                v[args[0]].cancel()
        elif op == "resolve" or op == "fail":
            future = v[args[0]]
            if future.done():
                self.log(me, f"{op} {args[0]} -> already done")
            elif op == "resolve":
                future.set_result(int(args[1]))
            else:
                future.set_exception(Failure(args[1]))
        elif op == "set":
            v[args[0]].set()
        elif op == "clear":
            v[args[0]].clear()
        elif op == "try_put":
            try:
                v[args[0]].put_nowait(int(args[1]))
                self.log(me, f"try_put {args[0]} -> ok")
            except asyncio.QueueFull:
                self.log(me, f"try_put {args[0]} -> full")
        elif op == "try_get":
            try:
                self.log(me, f"try_get {args[0]} -> {v[args[0]].get_nowait()}")
            except asyncio.QueueEmpty:
                self.log(me, f"try_get {args[0]} -> empty")
        elif op == "task_done":
            try:
                v[args[0]].task_done()
            except ValueError:
                self.log(me, f"task_done {args[0]} -> too many")
        elif op == "release":
            try:
                v[args[0]].release()
            except ValueError:
                self.log(me, f"release {args[0]} -> too many")

    async def statement(self, words, me, group):
        op, args = words[0], words[1:]
        v = self.vars
        if op in self.PLAIN:
            self.plain(words, me)
        elif op == "yield":
            await asyncio.sleep(0)
        elif op == "sleep":
            await asyncio.sleep(int(args[0]))
        elif op == "repeat":
            for _ in range(int(args[0])):
                await self.block(args[1], me, group)
        elif op == "raise":
            raise Failure(args[0])
        elif op == "return":
            raise _Return(int(args[0]))
        elif op == "spawn":
            v[args[0]] = self.make_task(args[1], args[0])
        elif op == "await":
            if v.get(args[0]) is asyncio.current_task():
                self.log(me, f"await {args[0]} -> itself")
            elif args[0] in v:
                await self.outcome(me, f"await {args[0]}", v[args[0]])
        elif op == "cancel_self":
            self.log(me, f"cancel_self -> {show(asyncio.current_task().cancel())}")
        elif op == "uncancel":
            self.log(me, f"uncancel -> {asyncio.current_task().uncancel()}")
        elif op == "cancelling":
            self.log(me, f"cancelling -> {asyncio.current_task().cancelling()}")
        elif op == "soon":
            v[args[0]] = self.loop.call_soon(self.plain, args[1:], "-")
        elif op == "later":
            v[args[0]] = self.loop.call_later(int(args[1]), self.plain, args[2:], "-")
        elif op == "on_done":
            if args[0] in v:
                v[args[0]].add_done_callback(lambda _f, label=args[1]: self.log("-", label))
        elif op == "call":
            await self.outcome(me, f"call {args[0]}", self.body(args[0], self.name_of(args[0])))
        elif op == "gather":
            tasks = [self.make_task(p, p) for p in args if p != "collect"]
            await self.outcome(me, "gather", gather(*tasks, return_exceptions="collect" in args))
        elif op == "gather_these":
            things = [v[name] for name in args[1:] if name in v and name != "collect"]
            if things and asyncio.current_task() not in things:
                v[args[0]] = gather(*things, return_exceptions="collect" in args)
        elif op == "wait":
            things = {name: v[name] for name in args[2:] if name in v}
            if things and asyncio.current_task() not in things.values():
                mode = {"all": asyncio.ALL_COMPLETED, "first": asyncio.FIRST_COMPLETED, "error": asyncio.FIRST_EXCEPTION}[args[0]]
                limit = None if args[1] == "forever" else int(args[1])
                try:
                    done, _pending = await asyncio.wait(list(things.values()), return_when=mode, timeout=limit)
                except asyncio.CancelledError:
                    self.log(me, "wait -> cancelled")
                    raise
                names = [sorted(n for n in things if (things[n] in done) == wanted) for wanted in (True, False)]
                self.log(me, f"wait -> done {','.join(names[0]) or '-'} pending {','.join(names[1]) or '-'}")
        elif op == "wait_for":
            coro = self.body(args[1], self.name_of(args[1]))
            await self.outcome(me, f"wait_for {args[1]}", wait_for(coro, int(args[0])))
        elif op == "wait_for_this":
            if args[1] in v and v[args[1]] is not asyncio.current_task():
                await self.outcome(me, f"wait_for_this {args[1]}", wait_for(v[args[1]], int(args[0])))
        elif op == "shield":
            if v.get(args[0]) is asyncio.current_task():
                self.log(me, f"shield {args[0]} -> itself")
            elif args[0] in v:
                await self.outcome(me, f"shield {args[0]}", asyncio.shield(v[args[0]]))
        elif op == "timeout":
            try:
                async with timeout(int(args[0])) as limit:
                    await self.block(args[1], me, group)
                self.log(me, f"timeout -> in time {show(limit.expired())}")
            except TimeoutError:
                self.log(me, "timeout -> expired")
        elif op == "group":
            try:
                async with _TaskGroup() as inner:
                    await self.block(args[0], me, inner)
                self.log(me, "group -> ok")
            except BaseExceptionGroup as g:
                self.log(me, f"group -> raised {describe(g)}")
        elif op == "start":
            if group is not None:
                try:
                    v[args[0]] = self.make_task(args[1], args[0], group.create_task)
                except RuntimeError:
                    self.log(me, f"start {args[0]} -> refused")
        elif op == "try":
            # try { } catch { }   swallows a cancellation;  try { } rethrow { }   lets it on;
            # try { } finally { }
            if args[1] == "finally":
                try:
                    await self.block(args[0], me, group)
                finally:
                    await self.block(args[2], me, group)
            else:
                try:
                    await self.block(args[0], me, group)
                except asyncio.CancelledError:
                    self.log(me, "caught cancelled")
                    await self.block(args[2], me, group)
                    if args[1] == "rethrow":
                        raise
                except Failure as f:
                    self.log(me, f"caught {f}")
                    await self.block(args[2], me, group)
        elif op == "wait_event":
            await self.outcome(me, f"wait_event {args[0]}", v[args[0]].wait())
        elif op == "lock" or op == "sem":
            async with v[args[0]]:
                self.log(me, f"enter {args[0]}")
                await self.block(args[1], me, group)
            self.log(me, f"leave {args[0]}")
        elif op == "cond_wait":
            async with v[args[0]]:
                self.log(me, f"enter {args[0]}")
                await v[args[0]].wait()
                self.log(me, f"woken {args[0]}")
        elif op == "notify":
            async with v[args[0]]:
                v[args[0]].notify(int(args[1]))
                self.log(me, f"notify {args[0]}")
        elif op == "put":
            await v[args[0]].put(int(args[1]))
            self.log(me, f"put {args[0]} {args[1]} size {v[args[0]].qsize()}")
        elif op == "get":
            value = await v[args[0]].get()
            self.log(me, f"get {args[0]} {value} size {v[args[0]].qsize()}")
        elif op == "join":
            await v[args[0]].join()
            self.log(me, f"joined {args[0]}")
        elif op == "abort" or op == "reset":
            await (v[args[0]].abort() if op == "abort" else v[args[0]].reset())
            self.log(me, f"{op} {args[0]}")
        elif op == "arrive":
            await self.outcome(me, f"arrive {args[0]}", v[args[0]].wait())
        else:
            raise ValueError(f"unknown statement {op}")


def show(value):
    if value is True or value is False:
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return "[" + " ".join(show(x) for x in value) + "]"
    if isinstance(value, BaseException):
        return "!" + describe(value)
    return str(value)


def describe(error):
    if isinstance(error, BaseExceptionGroup):
        return "group(" + " ".join(describe(e) for e in error.exceptions) + ")"
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, asyncio.BrokenBarrierError):
        return "broken"
    if isinstance(error, Failure):
        return str(error)
    return "misuse"  # a RuntimeError and the like: a task that awaits itself, a late start


# ---------------------------------------------------------------- random programs

def generate(seed, size=3):
    rng = random.Random(seed)
    pick = rng.choice
    procs = [f"p{i}" for i in range(1, rng.randint(2, 2 + size) + 1)]
    tasks = [f"t{i}" for i in range(1, 3 + 2 * size)]
    futures, gathers, handles = ["f1", "f2"], ["g1", "g2"], ["h1", "h2", "h3"]
    waitables = tasks + futures + gathers
    lines = ["future f1", "future f2", "event e1", "lock l1", f"sem s1 {rng.randint(1, 2)}", f"bsem s2 {rng.randint(1, 2)}",
             "cond c1", f"queue q1 {rng.randint(0, 2)}", f"barrier b1 {rng.randint(1, 3)}"]
    numbers = iter(range(1, 100000))
    label = lambda: f"x{next(numbers)}"
    digit = lambda: rng.randint(1, 9)
    delay = lambda: pick([1, 1, 2, 3, 5, 8, 10])
    any_delay = lambda: pick([1, 1, 2, 3, 5, 8, 10, 0, 0, -1])
    patience = lambda: pick(["forever", str(any_delay())])
    some = lambda names: " ".join(rng.sample(names, rng.randint(1, 3)))

    def plain():
        return rng.choices(
            [f"log {label()}", f"cancel {pick(waitables)}", f"done {pick(waitables)}", f"drop {pick(handles)}",
             f"resolve {pick(futures)} {digit()}", f"fail {pick(futures)} E{rng.randint(1, 3)}", "set e1", "clear e1",
             f"try_put q1 {digit()}", "try_get q1", "task_done q1", f"release {pick(['s1', 's2'])}"],
            [4, 4, 1, 1, 3, 1, 3, 1, 2, 2, 1, 1])[0]

    def waiting(procs_after):
        """Statements that may wait for ever: most of the time under a timeout."""
        choices = [f"await {pick(waitables)}", f"await {pick(futures)}", f"shield {pick(waitables)}", "wait_event e1", "cond_wait c1",
                   f"put q1 {digit()}", "get q1", "join q1", "arrive b1", f"wait {pick(['all', 'first', 'error'])} {patience()} {some(waitables)}",
                   f"wait_for_this {any_delay()} {pick(waitables)}"]
        weights = [4, 2, 2, 3, 2, 3, 3, 1, 1, 3, 2]
        if procs_after:
            choices += [f"gather {pick(['', '', 'collect '])}" + " ".join(pick(procs_after) for _ in range(rng.randint(1, 3))),
                        f"wait_for {any_delay()} {pick(procs_after)}", f"call {pick(procs_after)}"]
            weights += [3, 3, 2]
        return rng.choices(choices, weights)[0]

    def some_block(depth, procs_after, budget, grouped, indent):
        out = []
        for _ in range(rng.randint(1, budget)):
            out.extend(some_statement(depth, procs_after, grouped, indent))
        return out

    def nest(head, depth, procs_after, grouped, indent, budget=3, tail=""):
        return [f"{indent}{head} {{"] + some_block(depth + 1, procs_after, budget, grouped, indent + "  ") + [f"{indent}}}{tail}"]

    def some_statement(depth, procs_after, grouped, indent):
        kinds = [("plain", 14), ("waiting", 20), ("yield", 6), ("sleep", 6), ("soon", 3), ("later", 4), ("on_done", 2), ("notify", 2),
                 ("gather_these", 1), ("raise", 1), ("return", 1), ("cancel_self", 1), ("cancelling", 1), ("uncancel", 1), ("abort", 1)]
        if procs_after:
            kinds += [("spawn", 7)] + ([("start", 9)] if grouped else [])
        if depth < 3:
            kinds += [("timeout", 2), ("group", 3 if procs_after else 0), ("try", 4), ("lock", 3), ("sem", 3), ("repeat", 1)]
        kind = rng.choices([k for k, _ in kinds], [w for _, w in kinds])[0]
        if kind == "waiting":
            text = waiting(procs_after)
            if rng.random() < 0.55:
                return [f"{indent}timeout {any_delay()} {{", f"{indent}  {text}", f"{indent}}}"]
            return [indent + text]
        if kind == "timeout":
            return nest(f"timeout {any_delay()}", depth, procs_after, grouped, indent)
        if kind == "group":
            return nest("group", depth, procs_after, True, indent, budget=4)
        if kind == "try":
            second = some_block(depth + 1, procs_after, 2, grouped, indent + "  ")
            return nest("try", depth, procs_after, grouped, indent, tail=f" {pick(['catch', 'rethrow', 'finally'])} {{") + second + [f"{indent}}}"]
        if kind == "lock":
            return nest("lock l1", depth, procs_after, grouped, indent)
        if kind == "sem":
            return nest(f"sem {pick(['s1', 's2'])}", depth, procs_after, grouped, indent)
        if kind == "repeat":
            return nest(f"repeat {rng.randint(2, 3)}", depth, procs_after, grouped, indent, budget=2)
        return [indent + {
            "plain": plain,
            "yield": lambda: "yield",
            "sleep": lambda: f"sleep {any_delay()}",
            "soon": lambda: f"soon {pick(handles)} {plain()}",
            "later": lambda: f"later {pick(handles)} {any_delay()} {plain()}",
            "on_done": lambda: f"on_done {pick(waitables)} {label()}",
            "notify": lambda: f"notify c1 {rng.randint(1, 2)}",
            "gather_these": lambda: f"gather_these {pick(gathers)} {pick(['', 'collect '])}{some(tasks + futures)}",
            "raise": lambda: f"raise E{rng.randint(1, 3)}",
            "return": lambda: f"return {digit()}",
            "cancel_self": lambda: "cancel_self",
            "cancelling": lambda: "cancelling",
            "uncancel": lambda: "uncancel",
            "abort": lambda: f"{pick(['abort', 'reset'])} b1",
            "spawn": lambda: f"spawn {pick(tasks)} {pick(procs_after)}",
            "start": lambda: f"start {pick(tasks)} {pick(procs_after)}",
        }[kind]()]

    # a proc starts only procs that come after it, so that every program ends
    for i, proc in enumerate(["main"] + procs):
        body = some_block(0, procs[i:], 3 + 2 * size, False, "  ")
        if proc == "main":
            body = [f"  spawn t{k + 1} {pick(procs)}" for k in range(rng.randint(1, 1 + size))] + body
        lines += [f"proc {proc} {{"] + body + ["}"]
    return "\n".join(lines) + "\n"


def trace(text):
    """The trace, or None for a program to which CPython has no answer."""
    out = []
    player = Player(parse(text), out)
    player.run()
    return None if player.invalid else "\n".join(out) + "\n"


def main(argv):
    status = 0
    if len(argv) >= 3 and argv[1] == "run":
        result = trace(open(argv[2]).read())
        status = write(result)
    elif len(argv) >= 3 and argv[1] in ("generate", "both"):
        text = generate(int(argv[2]), int(argv[3]) if len(argv) > 3 else 3)
        sys.stdout.write(text)
        if argv[1] == "both":
            sys.stdout.write("---\n")
            status = write(trace(text))
    else:
        sys.exit(__doc__)
    sys.stdout.flush()
    os._exit(status)  # not sys.exit: tasks that a program left pending say nothing


def write(result):
    sys.stdout.write("invalid\n" if result is None else result)
    return 3 if result is None else 0


if __name__ == "__main__":
    main(sys.argv)

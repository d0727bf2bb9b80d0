#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""asyncio's part in compare.py, on its own loop or on uvloop's.

  asyncio_peer.py asyncio|uvloop --list           the names of the work
  asyncio_peer.py asyncio|uvloop WORK COUNT       does it: names and values in a line
  asyncio_peer.py asyncio|uvloop --echo=streams   an echo server: prints its port; or protocols
"""

import asyncio
import random
import socket
import sys
import threading
import time

BATCH = 1000
MINUTE = 60.0


def now():
    return time.perf_counter_ns()


class Meter:
    def begin(self):
        self.began = now()

    def end(self, name, operations):
        self.print(name, (now() - self.began) / operations)

    def print(self, name, value):
        print("%s %.4f" % (name, value), end=" ")


async def post_chain(count, meter):
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def link(left):
        if left == 0:
            done.set_result(None)
        else:
            loop.call_soon(link, left - 1)

    meter.begin()
    loop.call_soon(link, count)
    await done
    meter.end("ns", count)


async def post_batch(count, meter):
    loop = asyncio.get_running_loop()
    sums = [0]

    def add(number):
        sums[0] += number

    meter.begin()
    for _ in range(count // BATCH):
        for i in range(BATCH):
            loop.call_soon(add, i)
        await asyncio.sleep(0)
    meter.end("ns", count // BATCH * BATCH)


def switch(tasks):
    async def run(count, meter):
        async def yield_times(times):
            for _ in range(times):
                await asyncio.sleep(0)

        steps = count // tasks
        all_tasks = [asyncio.create_task(yield_times(steps)) for _ in range(tasks)]
        meter.begin()
        await asyncio.gather(*all_tasks)
        meter.end("ns", steps * tasks)

    return run


async def spawn(count, meter):
    async def nothing():
        pass

    meter.begin()
    for _ in range(count // BATCH):
        tasks = [asyncio.create_task(nothing()) for _ in range(BATCH)]
        for task in tasks:
            await task
    meter.end("ns", count // BATCH * BATCH)


async def timers(count, meter):
    loop = asyncio.get_running_loop()
    generator = random.Random(1)
    delays = [MINUTE + generator.random() * MINUTE for _ in range(count)]
    order = list(range(count))
    generator.shuffle(order)
    fired = [0]

    def fire():
        fired[0] += 1

    base = loop.time()
    meter.begin()
    handles = [loop.call_at(base + delay, fire) for delay in delays]
    meter.end("insert", count)
    meter.begin()
    for i in order:
        handles[i].cancel()
    meter.end("cancel", count)
    del handles
    base = loop.time()
    handles = [loop.call_at(base + delay / 1e6, fire) for delay in delays]
    end = now() + 1_000_000
    while now() < end:
        pass
    meter.begin()
    while fired[0] < count:
        await asyncio.sleep(0)
    meter.end("fire", count)


async def lateness(count, meter):
    generator = random.Random(1)
    late = []
    for _ in range(count):
        wait = 0.0002 + generator.random() * 0.002
        due = time.monotonic() + wait
        await asyncio.sleep(wait)
        late.append(time.monotonic() - due)
    late.sort()
    meter.print("p50_us", late[(count - 1) // 2] * 1e6)
    meter.print("p99_us", late[(count - 1) * 99 // 100] * 1e6)
    meter.print("early", sum(each < 0 for each in late))


def posts(producers):
    async def run(count, meter):
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        each = count // producers
        left = [each * producers]

        def arrive():
            left[0] -= 1
            if left[0] == 0:
                done.set_result(None)

        def produce():
            for _ in range(each):
                loop.call_soon_threadsafe(arrive)

        threads = [threading.Thread(target=produce) for _ in range(producers)]
        meter.begin()
        for thread in threads:
            thread.start()
        await done
        meter.end("ns", each * producers)
        for thread in threads:
            thread.join()

    return run


async def ping_pong(count, meter):
    here = asyncio.get_running_loop()
    there = asyncio.new_event_loop()
    thread = threading.Thread(target=there.run_forever)
    thread.start()
    done = here.create_future()

    def ping(left):
        if left == 0:
            done.set_result(None)
        else:
            there.call_soon_threadsafe(here.call_soon_threadsafe, ping, left - 1)

    meter.begin()
    here.call_soon(ping, count)
    await done
    meter.end("ns", count)
    there.call_soon_threadsafe(there.stop)
    thread.join()
    there.close()


async def start_stop(count, meter):
    def measure():
        meter.begin()
        for _ in range(count):
            asyncio.new_event_loop().close()
        meter.end("ns", count)

    await asyncio.to_thread(measure)


WORK = {
    "post_chain": post_chain,
    "post_batch": post_batch,
    "switch_2": switch(2),
    "switch_1000": switch(1000),
    "spawn": spawn,
    "timers": timers,
    "lateness": lateness,
    "posts_1": posts(1),
    "posts_4": posts(4),
    "ping_pong": ping_pong,
    "start_stop": start_stop,
}


class Echo(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.transport.write(data)


async def echo(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def serve(by):
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    if by == "streams":
        server = await asyncio.start_server(echo, sock=listener, backlog=4096)
    else:
        server = await asyncio.get_running_loop().create_server(Echo, sock=listener, backlog=4096)
    print(listener.getsockname()[1], "opt", flush=True)
    await server.serve_forever()


def main():
    loop, what = sys.argv[1:3]
    if loop == "uvloop":
        try:
            import uvloop
        except ImportError as error:
            sys.exit(str(error))
        uvloop.install()
    if what == "--list":
        print("\n".join(WORK))
    elif what.startswith("--echo="):
        asyncio.run(serve(what[len("--echo=") :]))
    else:
        print("opt 1", end=" ")
        asyncio.run(WORK[what](int(sys.argv[3]), Meter()))
        print()


if __name__ == "__main__":
    main()

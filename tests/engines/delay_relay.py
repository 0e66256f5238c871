"""Joins two network namespaces by a line with a delay.

    delay_relay.py NAMESPACE_A NAMESPACE_B DEVICE MILLISECONDS

Makes a TAP device of that name in each and carries frames between them, each way after the delay.
Prints "ready" once both are there; ends with SIGTERM.
"""

import collections
import ctypes
import fcntl
import os
import select
import struct
import sys
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000


def tap_in(namespace, device):
    handle = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(handle, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), f"setns({namespace})")
    os.close(handle)
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22s", device.encode(), IFF_TAP | IFF_NO_PI, b""))
    return tap


def main():
    namespace_a, namespace_b, device, milliseconds = sys.argv[1:]
    delay = float(milliseconds) / 1e3
    taps = [tap_in(namespace_a, device), tap_in(namespace_b, device)]
    print("ready", flush=True)
    waiting = collections.deque()  # (when, tap, frame): the delay is one, so it is sorted
    while True:
        pause = max(waiting[0][0] - time.monotonic(), 0) if waiting else None
        readable, _, _ = select.select(taps, [], [], pause)
        for tap in readable:
            try:
                while True:
                    frame = os.read(tap, 65536)
                    other = taps[1 - taps.index(tap)]
                    waiting.append((time.monotonic() + delay, other, frame))
            except BlockingIOError:
                pass
        while waiting and waiting[0][0] <= time.monotonic():
            _, tap, frame = waiting.popleft()
            try:
                os.write(tap, frame)
            except (BlockingIOError, OSError):
                pass  # a full or absent line loses frames


main()

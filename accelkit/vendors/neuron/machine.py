"""The simulated Neuron machine: its files and neuron-ls. Not here: what can happen to it."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import ClassVar

from accelkit import Finished
from accelkit.testing.machines import Entry, File, Line, Link, Live, Machine, Node, Part, State
from accelkit.testing.pasted import Output
from accelkit.testing.sysfs import pci_function
from accelkit.vendors.neuron import facts, pasted, states
from accelkit.vendors.neuron.board import PRODUCTS, Board

DRIVER_VERSION = "2.24.7.0"
_MAJOR = 239
"""Given at run time (alloc_chrdev_region)."""
_LNC = re.compile(rf"{facts.LNC_VARIABLE}=([12])\n?")
_MEMORY = ("total", "present", "peak")
_RUBBISH = b"\xff\xfe\0rubbish"


class NeuronMachine(Machine):
    """Chips with cores, linked as a torus or a ring, with the files of the driver."""

    vendor = "neuron"
    products: ClassVar[tuple[str, ...]] = tuple(PRODUCTS)
    verbs: ClassVar[Mapping[str, str]] = {verb: usage for verb, (usage, _) in states.VERBS.items()}
    history = frozenset({"boots"})
    options: ClassVar[Mapping[str, str]] = {
        "driver": "version of the driver",
        "links": "chain: the first and the last chip of a ring are not linked",
        "ultraserver": "serial number of the four hosts that this one is one of",
        "tools": "no: neuron-ls is not installed",
    }
    outputs = (Output(name=pasted.NAME, is_it=pasted.is_it, read=pasted.read),)
    looks = pasted.LOOKS
    drivers = ("neuron.aws.com",)

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.board = Board(part)

    def units(self) -> tuple[str, ...]:
        return tuple(f"neuron-{self.part.first + i}" for i in range(self.part.count))

    def tree(self, state: State) -> Iterable[Entry]:
        for position, unit in enumerate(self.units()):
            if not states.of(state, unit).get("removed"):
                yield from pci_function(
                    self.board.place(position),
                    vendor=facts.PCI_VENDOR,
                    device=self.board.family.pci[0],
                    pci_class=facts.PCI_CLASS << 8,
                    driver=states.driver(state, unit),
                )
        if self._has_tool:
            yield File(path=facts.TOOL, content="#!/bin/sh\n", mode=0o755)
        if self.board.family.lnc and not states.of(state, self.vendor).get("no-lnc-file"):
            value = states.lnc(self, state)
            yield File(path=facts.LNC_FILE, content=f"{facts.LNC_VARIABLE}={value}\n")
        if states.loaded(state):
            yield from self._loaded(state)

    @property
    def _has_tool(self) -> bool:
        return self.part.options.get("tools") != "no"

    def _loaded(self, state: State) -> Iterator[Entry]:
        version = self.part.options.get("driver", DRIVER_VERSION)
        yield File(path=facts.VERSION, content=f"{version}\n")
        yield Line(path="/proc/devices", text=f"{_MAJOR} neuron")
        yield Line(path="/proc/modules", text="neuron 1 0 - Live 0x0")
        yield from self._class_files()
        for number, position in sorted(self.numbers(state).items()):
            yield from self._chip(states.of(state, self.units()[position]), number, position)

    def numbers(self, state: State) -> dict[int, int]:
        """Positions of the chips that the driver serves, by number."""
        boots = states.number(states.of(state, self.vendor), "boots")
        return {
            self.board.number(position, boots): position
            for position, unit in enumerate(self.units())
            if not states.of(state, unit).get("removed")
            and states.driver(state, unit) == facts.DRIVER
        }

    def _class_files(self) -> Iterator[Entry]:
        if not self.board.family.lnc:
            return
        serial = self.part.options.get("ultraserver")
        told = {
            "ultraserver_mode": "1,4" if serial else "4",
            "server_id_4": serial or "0" * 16,
            "node_id_4": "0" if serial else "-1",
            "server_id_2": "0" * 16,
            "node_id_2": "-1",
        }
        for name, text in told.items():
            yield File(path=f"{facts.CLASS}/{name}", content=f"{text}\n", mode=0o444)

    def _chip(self, own: states.Fields, number: int, position: int) -> Iterator[Entry]:
        word = f"neuron{number}"
        there = f"{facts.CHIPS}/{word}"
        family = self.board.family
        yield Link(path=f"{facts.CLASS}/{word}", target=there)
        if not own.get("no-node"):
            yield Node(path=f"/dev/{word}", major=_MAJOR, minor=number)
            yield from _holders(own, word)
        serial = (
            "" if own.get("lost") else self.board.serial(position, states.number(own, "replaced"))
        )
        reset = 2 if own.get("lost") else states.number(own, "reset", states.READY)
        beside = ", ".join(map(str, self.board.beside(number)))
        yield File(path=f"{there}/core_count", content=str(family.cores), mode=0o400)
        yield File(path=f"{there}/connected_devices", content=f"{beside}\n", mode=0o400)
        yield File(path=f"{there}/reset", content=f"{reset}\n", mode=0o600)
        text = _RUBBISH if own.get("rubbish") else f"{serial}\n"
        yield File(path=f"{there}/info/serial_number", content=text)
        yield File(path=f"{there}/info/notify_delay", content="-1\n")
        names = {
            "arch_type": family.arch[0],
            "device_name": family.name,
            "instance_type": family.instance,
        }
        for name, value in names.items():
            yield File(path=f"{there}/info/architecture/{name}", content=f"{value}\n")
        counts = states.numbers(own, "ecc")
        for what, name in states.ECC.items():
            yield File(path=f"{there}/stats/hardware/{name}", content=f"{counts.get(what, 0)}\n")
        power = "POWER_STATUS_VALID,1767225600,0.86,25.00,18.86\n"
        yield File(path=f"{there}/stats/power/utilization", content=power)
        for core in range(family.cores):
            yield from self._core(own, f"{there}/neuron_core{core}", core)

    def _core(self, own: states.Fields, there: str, core: int) -> Iterator[Entry]:
        arch = self.board.family.arch[1]
        yield File(path=f"{there}/info/architecture/arch_type", content=f"{arch}\n")
        errors = states.numbers(own, "errors")
        for name in states.ERRORS:
            count = errors.get(f"{core}/{name}", 0)
            yield File(path=f"{there}/stats/status/{name}/total", content=f"{count}\n")
        used = states.numbers(own, "used").get(str(core), 0)
        for name in _MEMORY:
            path = f"{there}/stats/memory_usage/device_mem/{name}"
            yield File(path=path, content=f"{used}\n")

    def commands(self) -> Mapping[str, Callable[[Live, tuple[str, ...]], Finished]]:
        return {facts.TOOL: partial(_neuron_ls, self)} if self._has_tool else {}

    def written(self, state: State, path: str, text: str) -> State | None:
        found = _LNC.fullmatch(text) if path == facts.LNC_FILE else None
        if found is None or not self.board.family.lnc:
            return None
        return states.changed(state, self.vendor, lnc=int(found[1]))

    def verb(self, state: State, verb: str, args: tuple[str, ...]) -> State:
        return states.VERBS[verb][1](self, state, args)

    def says(self, state: State, verb: str, args: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """What the runtime writes to the kernel's log of errors that a chip counts.

        Source:
            Neuron documentation, Neuron Runtime troubleshooting.
        """
        error = states.error_told(verb, args)
        if error is None or not states.loaded(state):
            return
        unit, core = args[0], args[1] if verb == "fail" else "0"
        position = self.units().index(unit)
        serial = self.board.serial(position, states.number(states.of(state, unit), "replaced"))
        for number, at in self.numbers(state).items():
            if at == position:
                chip = f"nd-id={number} nc-id={core} serial-num={serial}"
                text = f"instance-id=i-0 hostname=localhost {chip} action=TERMINATE_INSTANCE"
                yield ("kernel", f"NEURON_HW_ERR={error} {text}")

    def booted(self, state: State) -> State:
        return states.booted(self, state)


def _holders(own: states.Fields, word: str) -> Iterator[Entry]:
    """What /proc shows of the processes that have a chip open."""
    pids = own.get("pids")
    for pid in pids if isinstance(pids, list) else ():
        yield File(path=f"/proc/{pid}/comm", content="python3\n")
        yield Link(path=f"/proc/{pid}/fd/{word.removeprefix('neuron')}", target=f"/dev/{word}")


def _neuron_ls(machine: NeuronMachine, live: Live, argv: tuple[str, ...]) -> Finished:
    state = live.state()
    if not states.loaded(state):
        return Finished(code=1, out="", err="neuron-ls: no Neuron driver is loaded\n")
    if argv[1:] != ("-j",):
        return Finished(code=2, out="", err="usage: neuron-ls -j\n")
    listing = machine.board.listing(machine.numbers(state), states.lnc(machine, state))
    return Finished(code=0, out=f"{listing}\n", err="")

"""What drivers show of one simulated GPU, as files of its PCI function. Not here: device files."""

import attrs

from accelkit.vendors.intel import facts, states
from accelkit.vendors.intel.products import Product

_MHZ = {"act": 1200, "max": 2050}
_CELSIUS = 48
_FLAGS = 0x14220C
"""Memory of 64 bits that can be fetched in advance (Linux, include/linux/ioport.h)."""


@attrs.frozen(kw_only=True)
class Shown:
    """One GPU, and what its driver does with it."""

    product: Product
    driver: str | None
    backport: str
    own: states.Fields
    """Its state."""
    vfs: int
    autoprobe: bool

    @property
    def serves(self) -> bool:
        """Whether the driver makes device files."""
        return self.driver in facts.DRIVERS and not self.own.get("survival", False)

    def files(self, card: str) -> dict[str, str | bytes]:
        """Texts by name; *card* is the folder of the card."""
        found: dict[str, str | bytes] = {
            "resource": self._resource(),
            "config": self._config(),
            "power/runtime_status": "suspended\n" if self.own.get("asleep") else "active\n",
        }
        if self.product.vfs:
            found |= {
                "sriov_totalvfs": f"{self.product.vfs}\n",
                "sriov_numvfs": f"{self.vfs}\n",
                "sriov_drivers_autoprobe": f"{int(self.autoprobe)}\n",
            }
        if self.driver in facts.DRIVERS and self.own.get("survival"):
            found["survivability_mode"] = "Boot\n"
        if self.own.get("dump"):
            found["devcoredump/data"] = "**** Device Coredump ****\n"
        if self.serves:
            found |= self._xe() if self.driver == facts.XE else self._i915(card)
        return found

    def _resource(self) -> str:
        """Registers, and the window to all of the memory, as large as a power of two can be."""
        window = 1 << (self.product.memory - 1).bit_length()
        bars = [
            (0x9F000000, 0x9FFFFFFF, _FLAGS),
            (0, 0, 0),
            (1 << 40, (1 << 40) + window - 1, _FLAGS),
            *[(0, 0, 0)] * 4,
        ]
        return "".join(
            f"0x{start:016x} 0x{end:016x} 0x{flags:016x}\n" for start, end, flags in bars
        )

    def _config(self) -> bytes:
        if self.own.get("fallen"):
            return b"\xff" * 64
        ids = facts.PCI_VENDOR.to_bytes(2, "little") + self.product.device.to_bytes(2, "little")
        return ids + bytes(60)

    @property
    def _celsius(self) -> int:
        return states.number(self.own, "celsius", _CELSIUS)

    def _reasons(self) -> dict[str, int]:
        active = states.names(self.own, "throttle")
        return {"status": int(bool(active)), **{r: int(r in active) for r in states.REASONS}}

    def _quota(self) -> int:
        return self.product.memory // max(self.vfs, 1)

    def _xe(self) -> dict[str, str | bytes]:
        hwmon = "hwmon/hwmon3"
        found: dict[str, str | bytes] = {
            f"{hwmon}/name": "xe\n",
            f"{hwmon}/energy1_input": "123456789\n",
            f"{hwmon}/energy2_input": "100000000\n",
            f"{hwmon}/power1_max": "190000000\n",
            f"{hwmon}/temp2_input": f"{self._celsius * 1000}\n",
            f"{hwmon}/temp3_input": f"{self._celsius * 1000 + 2000}\n",
            f"{hwmon}/fan1_input": "900\n",
        }
        for tile in range(self.product.tiles):
            for gt in (2 * tile, 2 * tile + 1):
                folder = f"tile{tile}/gt{gt}/freq0"
                found |= {f"{folder}/{name}_freq": f"{mhz}\n" for name, mhz in _MHZ.items()}
                for reason, active in self._reasons().items():
                    name = "status" if reason == "status" else f"reason_{reason}"
                    found[f"{folder}/throttle/{name}"] = f"{active}\n"
        if self.product.tells_health:
            found["gpu_health"] = f"{self.own.get('health', 'ok')}\n"
        if self.product.vfs:
            found["sriov_admin/pf/profile/exec_quantum_ms"] = "0\n"
        for vf in range(1, self.vfs + 1):
            found[f"sriov_admin/vf{vf}/profile/vram_quota"] = f"{self._quota()}\n"
        return found

    def _i915(self, card: str) -> dict[str, str | bytes]:
        found: dict[str, str | bytes] = {
            "hwmon/hwmon3/name": "i915\n",
            "hwmon/hwmon3/energy1_input": "123456789\n",
            "hwmon/hwmon3/power1_max": "150000000\n",
            "hwmon/hwmon3/in0_input": "800\n",
            "hwmon/hwmon3/temp1_input": f"{self._celsius * 1000}\n",
            f"{card}/error": "No error state collected\n",
        }
        for gt in range(self.product.tiles):
            folder = f"{card}/gt/gt{gt}"
            found |= {f"{folder}/rps_{n}_freq_mhz": f"{mhz}\n" for n, mhz in _MHZ.items()}
            for reason, active in self._reasons().items():
                found[f"{folder}/throttle_reason_{reason}"] = f"{active}\n"
        if self.backport:
            found |= self._prelim(card)
        return found

    def _prelim(self, card: str) -> dict[str, str | bytes]:
        found: dict[str, str | bytes] = {
            f"{card}/lmem_total_bytes": f"{self.product.memory}\n",
            f"{card}/prelim_uapi_version": "2.0\n",
        }
        for vf in range(1, self.vfs + 1):
            for gt in range(self.product.tiles):
                path = f"{card}/prelim_iov/vf{vf}/gt{gt}/lmem_quota"
                found[path] = f"{self._quota() // self.product.tiles}\n"
        return found

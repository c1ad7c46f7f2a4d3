"""For each check of a plugin one that breaks its rule, and is otherwise the simulated one."""

from collections.abc import Mapping

from accelkit.conformance.subjects import Cut, PluginSubject
from accelkit.vendors.sim.vendor import Sim
from tests.conformance import (
    bad_calls,
    bad_facts,
    bad_health,
    bad_manners,
    bad_partitions,
    bad_topology,
)

SPLIT = Cut(product="split")
BAD: Mapping[str, type[Sim]] = {
    "B01": bad_calls.Generous,
    "B02": bad_calls.FirstOnly,
    "B05": bad_calls.Dividing,
    "B06": bad_calls.Ascii,
    "B07": bad_calls.Trusting,
    "B08": bad_calls.Crashing,
    "B09": bad_calls.Closed,
    "C03": bad_calls.Torn,
    "C04": bad_health.Locked,
    "C05": bad_health.Locked,
    "D01": bad_facts.Fickle,
    "D02": bad_facts.Listed,
    "D03": bad_facts.Writing,
    "D04": bad_facts.AllOrNothing,
    "D05": bad_facts.Silent,
    "D06": bad_facts.Nodeless,
    "D07": bad_facts.Remembering,
    "D08": bad_facts.Remembering,
    "D09": bad_facts.Counting,
    "D10": bad_facts.SixtyFour,
    "D11": bad_facts.Bracketed,
    "D12": bad_facts.Undeclared,
    "D13": bad_facts.Reserved,
    "D14": bad_facts.Nameless,
    "H01": bad_health.Hopeful,
    "H02": bad_health.EdgeTriggered,
    "H03": bad_health.OneWay,
    "H05": bad_health.Contagious,
    "H06": bad_health.Alarmed,
    "H07": bad_health.Strict,
    "H10": bad_health.Dropping,
    "H11": bad_health.Repeating,
    "H12": bad_health.Ringing,
    "I01": bad_facts.Twins,
    "I02": bad_facts.Underscored,
    "I03": bad_facts.Hashed,
    "I04": bad_facts.BootBound,
    "I05": bad_facts.ByPlace,
    "I06": bad_facts.FreelyNamed,
    "L06": bad_calls.Leaky,
    "L11": bad_calls.SetWise,
    "P01": bad_partitions.Boastful,
    "P02": bad_partitions.Phantom,
    "P03": bad_partitions.Orphaning,
    "P04": bad_partitions.Lax,
    "P05": bad_partitions.Early,
    "P06": bad_partitions.Leaving,
    "P07": bad_partitions.Sweeping,
    "P08": bad_partitions.Pushy,
    "P09": bad_partitions.Hollow,
    "P10": bad_partitions.Forcing,
    "P13": bad_partitions.Shrinking,
    "P14": bad_partitions.Numbering,
    "T01": bad_topology.BothWays,
    "T02": bad_topology.Selfish,
    "T03": bad_topology.Ghostly,
    "T04": bad_topology.FarAway,
    "T05": bad_topology.Misspelt,
    "T06": bad_topology.Homeless,
    "T07": bad_topology.Laneless,
    "T08": bad_topology.Forgetful,
    "T09": bad_topology.TwiceUsable,
    "T12": bad_topology.Scattered,
    "T13": bad_topology.Guessing,
}
"""Who breaks the rule of each check."""

MORE: tuple[tuple[str, type[Sim]], ...] = (
    ("B02", bad_manners.Accusing),
    ("B02", bad_manners.Curious),
    ("B02", bad_manners.Helpless),
    ("D03", bad_manners.Noting),
    ("H02", bad_manners.Numbering),
    ("L06", bad_manners.Final),
    ("L06", bad_manners.Importing),
    ("L06", bad_manners.Loud),
    ("L06", bad_manners.Parental),
    ("L11", bad_manners.Generous),
    ("P01", bad_partitions.Greedy),
    ("P02", bad_partitions.Crowded),
    ("P05", bad_partitions.Astray),
    ("P05", bad_partitions.Impatient),
    ("P05", bad_partitions.Stubborn),
    ("P07", bad_partitions.Careless),
    ("P08", bad_partitions.Vague),
    ("P09", bad_partitions.Nowhere),
    ("P10", bad_partitions.Nodding),
)
"""Who breaks it in another way."""


def subject(vendor: type[Sim], ident: str = "") -> PluginSubject:
    """*vendor* on a machine that has what the check *ident* is about."""
    family = ident.rstrip("0123456789")
    product = {"P09": "basic"}.get(ident) or {"P": "carve"}.get(family, "fabric")
    return PluginSubject(vendor=vendor, product=product, cut=SPLIT)

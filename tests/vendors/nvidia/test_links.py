from accelkit import Link, LinkKind
from tests.vendors.nvidia.bench import Make

GB = 10**9


def kinds(links: list[Link]) -> list[tuple[LinkKind, int, bool]]:
    return sorted((link.kind, link.count, link.up) for link in links)


def test_hgx_board_is_linked_through_switches(bench: Make) -> None:
    """Seen elsewhere: links through NVSwitch were not recognised."""
    links = bench("h100", 4).links()

    assert {pair: [k for k in found if k.kind is LinkKind.FABRIC] for pair, found in links.items()}
    assert kinds(links[0, 1]) == [(LinkKind.FABRIC, 18, True), (LinkKind.SWITCH, 1, True)]
    assert kinds(links[0, 2]) == [(LinkKind.FABRIC, 18, True)]
    assert kinds(links[2, 3]) == [(LinkKind.FABRIC, 18, True), (LinkKind.SWITCH, 1, True)]
    assert {k.bandwidth for k in links[0, 1] if k.kind is LinkKind.FABRIC} == {450 * GB}


def test_dgx1_board_is_a_mesh_of_one_or_two_links(bench: Make) -> None:
    links = bench("dgx1", 8).links()
    direct = {p: [k.count for k in f if k.kind is LinkKind.DIRECT] for p, f in links.items()}

    assert direct[0, 1] == [1]
    assert direct[0, 3] == [2]
    assert direct[0, 5] == []
    assert sum(sum(counts) for counts in direct.values()) == 8 * 6 // 2


def test_gpus_without_nvlink_are_told_by_their_bus(bench: Make) -> None:
    links = bench("l4", 4).links()

    assert kinds(links[0, 1]) == [(LinkKind.SWITCH, 1, True)]
    assert links[0, 2] == []


def test_lower_count_is_believed_where_two_gpus_differ(bench: Make) -> None:
    """Seen elsewhere: links that were not the same in both directions ended the plugin."""
    made = bench("h100", 2)
    made.do("dark gpu-0 5")

    assert (LinkKind.FABRIC, 13, True) in kinds(made.links()[0, 1])


def test_direct_links_that_do_not_work_are_down(bench: Make) -> None:
    made = bench("dgx1", 2)
    made.do("dark gpu-0 6", "dark gpu-1 6")

    assert (LinkKind.DIRECT, 1, False) in kinds(made.links()[0, 1])


def test_fabric_that_has_not_come_up_is_down(bench: Make) -> None:
    made = bench("h200", 2)
    made.do("fabric gpu-0 2")

    assert (LinkKind.FABRIC, 18, False) in kinds(made.links()[0, 1])


def test_lost_gpu_has_no_links_and_the_others_keep_theirs(bench: Make) -> None:
    made = bench("h100", 3)
    devices = made.devices()
    made.do("lose gpu-0")
    links = made.links(devices)

    assert (links[0, 1], links[0, 2]) == ([], [])
    assert kinds(links[1, 2]) == [(LinkKind.FABRIC, 18, True)]


def test_partitions_have_no_links_of_their_own(bench: Make) -> None:
    made = bench("h100", 1)
    made.do("mig gpu-0 on", "create-mig gpu-0 1g.10gb 0")

    assert list(made.vendor.links(made.host, made.devices())) == []


def test_driver_without_remote_types_still_tells_direct_links(bench: Make) -> None:
    made = bench("dgx1", 2)
    made.fail("nvmlDeviceGetNvLinkRemoteDeviceType", "error 13")

    assert (LinkKind.DIRECT, 1, True) in kinds(made.links()[0, 1])

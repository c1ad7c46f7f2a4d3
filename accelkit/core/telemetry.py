"""The metrics that accelkit writes, as data. Not here: who counts, and how they are written."""

from enum import StrEnum

import attrs

from accelkit.core.values import freeze

BUCKETS_S = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
)
"""Upper bounds of latency buckets, in seconds: one device call takes 1 ms, the slowest a minute."""


class MetricType(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    INFO = "info"
    """Written as a gauge that is always 1: the text format knows no other way."""
    HISTOGRAM = "histogram"


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Metric:
    """One metric: its name says what and in which unit."""

    name: str
    type: MetricType
    unit: str = ""
    """Base unit; empty: a count or a state."""
    labels: tuple[str, ...] = ()
    """Label sets are bounded by hardware and policy, never by what users name."""
    help: str


def _metric(name: str, kind: MetricType, labels: str, text: str, unit: str = "") -> Metric:
    return Metric(name=name, type=kind, unit=unit, labels=tuple(labels.split()), help=text)


_C, _G, _I, _H = MetricType.COUNTER, MetricType.GAUGE, MetricType.INFO, MetricType.HISTOGRAM

METRICS: tuple[Metric, ...] = (
    _metric("accelkit_build_info", _I, "version python", "What is running."),
    _metric("accelkit_policy_info", _I, "revision", "The policy in force."),
    _metric("accelkit_up", _G, "backend", "1: the backend is registered and published."),
    _metric("accelkit_ready", _G, "", "1: the agent is ready."),
    _metric("accelkit_node_ready", _G, "", "1: the agent is ready, with all devices expected."),
    _metric("accelkit_leader", _G, "", "1: this instance leads on its node."),
    _metric("accelkit_devices", _G, "vendor kind offer health standing", "Devices."),
    _metric(
        "accelkit_device_info",
        _I,
        "device vendor kind product parent profile offer numa pci",
        "What a device is.",
    ),
    _metric("accelkit_device_health", _G, "device health", "1: this is the device's health."),
    _metric(
        "accelkit_device_condition", _G, "device code severity", "1: the condition is observed."
    ),
    _metric("accelkit_device_events_total", _C, "device code", "Events heard of a device."),
    _metric(
        "accelkit_device_holder",
        _G,
        "device share namespace pod container claim through",
        "1: this is who holds the device.",
    ),
    _metric("accelkit_problems", _G, "vendor code", "What keeps accelkit from knowing or doing."),
    _metric("accelkit_read_seconds", _H, "vendor", "Reading all of a vendor's devices.", "seconds"),
    _metric(
        "accelkit_vendor_call_seconds", _H, "vendor call outcome", "Calls of vendors.", "seconds"
    ),
    _metric("accelkit_lane_stuck", _G, "vendor", "Calls of the vendor that overran and go on."),
    _metric(
        "accelkit_worker_restarts_total",
        _C,
        "vendor reason",
        "Processes of vendors that were started again.",
    ),
    _metric("accelkit_plugin_load_failures", _G, "plugin", "1: the plugin could not be loaded."),
    _metric("accelkit_prepare_seconds", _H, "vendor outcome", "Preparations of claims.", "seconds"),
    _metric("accelkit_prepare_step_seconds", _H, "vendor step", "Steps of them.", "seconds"),
    _metric("accelkit_release_seconds", _H, "vendor outcome", "Releases of claims.", "seconds"),
    _metric("accelkit_claims", _G, "driver state", "Claims of this boot."),
    _metric(
        "accelkit_oldest_claim_seconds",
        _G,
        "driver state",
        "How long the claim has been in its state that has been in it longest.",
        "seconds",
    ),
    _metric("accelkit_api_requests_total", _C, "verb resource code", "Requests to the API server."),
    _metric("accelkit_allocate_seconds", _H, "resource outcome", "Allocate calls.", "seconds"),
    _metric(
        "accelkit_preferred_seconds", _H, "resource outcome", "GetPreferredAllocation.", "seconds"
    ),
    _metric("accelkit_slice_writes_total", _C, "driver verb", "Slices that were written."),
    _metric(
        "accelkit_slice_drops_total", _C, "driver field", "Fields that the API server did not keep."
    ),
    _metric("accelkit_registrations_total", _C, "backend outcome", "Registrations."),
    _metric("accelkit_streams", _G, "resource", "Open streams of device lists."),
    _metric("accelkit_config_reloads_total", _C, "outcome", "Policies read while running."),
    _metric("accelkit_backend_restarts_total", _C, "backend", "Backends that were started again."),
    _metric(
        "accelkit_telemetry_age_seconds", _G, "vendor", "Since the vendor was measured.", "seconds"
    ),
)

DEVICE_LABELS = ("device", "vendor", "product", "profile")
"""Of everything that is measured; its own labels come after them, empty where they say nothing."""


def _measure(name: str, kind: MetricType, labels: str, text: str, unit: str = "") -> Metric:
    return _metric(name, kind, " ".join((*DEVICE_LABELS, *labels.split())), text, unit)


MEASURES: tuple[Metric, ...] = (
    _measure("hw_gpu_utilization_ratio", _G, "task", "Part of the time in use.", "ratio"),
    _measure("hw_memory_usage_bytes", _G, "", "Memory that is in use.", "bytes"),
    _measure("hw_memory_size_bytes", _G, "", "Memory that there is.", "bytes"),
    _measure("hw_temperature_celsius", _G, "sensor", "Temperature.", "celsius"),
    _measure("hw_power_watts", _G, "", "Power that it takes.", "watts"),
    _measure("hw_power_limit_watts", _G, "", "Power that it may take.", "watts"),
    _measure("hw_energy_joules_total", _C, "", "Energy since its driver was loaded.", "joules"),
    _measure("hw_frequency_hertz", _G, "domain", "Frequency of a clock.", "hertz"),
    _measure("hw_gpu_io_bytes_total", _C, "link direction", "Bytes over its links.", "bytes"),
    _measure("hw_errors_total", _C, "type", "Errors since its driver was loaded."),
)
"""What vendors may measure of a device.

Source: OpenTelemetry semantic conventions for hardware, hw.* metrics, in Prometheus' spelling.
"""

BY_NAME = {metric.name: metric for metric in (*METRICS, *MEASURES)}

"""`accelkit metrics`: what the agent counts. Not here: who counts it."""

import click

from accelkit.cli.options import form_option
from accelkit.cli.showing import NONE, Form, document, show_table, show_tree


@click.command("metrics", epilog="Example: accelkit metrics -o json")
@form_option
def command(*, form: Form) -> int:
    """List the metrics that the agent writes at /metrics.

    Those that begin with DCGM are only there with $.telemetry.names: [dcgm].
    """
    from accelkit.core.dcgm import DCGM  # noqa: PLC0415 - help does without
    from accelkit.core.telemetry import MEASURES, METRICS  # noqa: PLC0415 - help does without

    metrics = (*METRICS, *MEASURES, *DCGM)

    if form is not Form.TABLE:
        from accelkit.core.serde import to_tree  # noqa: PLC0415 - loads cattrs

        show_tree(document("MetricList", items=to_tree(metrics)), form)
        return 0
    show_table(
        ("NAME", "TYPE", "UNIT", "LABELS", "HELP"),
        (
            (m.name, m.type.value, m.unit or NONE, ",".join(m.labels) or NONE, m.help)
            for m in metrics
        ),
    )
    return 0

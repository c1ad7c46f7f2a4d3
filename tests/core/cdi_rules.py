"""Rules for documents of the Container Device Interface, as a strict reader has them."""

import jsonschema

from accelkit.core.cdi import HOOKS

# The rules of the published schema (CDI specification 1.1.0, schema/schema.json and defs.json) for
# the keys that we write; unknown keys are refused, as the strict reader of the Go library does.
TEXT = {"type": "string", "minLength": 1}
TEXTS = {"type": "array", "items": {"type": "string"}}
VARIABLES = {"type": "array", "items": {"type": "string", "pattern": "^[^=]+="}}


def strict(required: list[str], **properties: object) -> dict[str, object]:
    return {
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": False,
    }


SCHEMA = strict(
    ["cdiVersion", "kind", "devices"],
    cdiVersion={"pattern": r"^\d+\.\d+\.\d+$"},
    kind={
        "pattern": "^[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]/[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$"
    },
    devices={
        "type": "array",
        "minItems": 1,
        "items": strict(
            ["name", "containerEdits"],
            name={"pattern": "^[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?$"},
            containerEdits={
                "minProperties": 1,
                **strict(
                    [],
                    env=VARIABLES,
                    deviceNodes={
                        "type": "array",
                        "items": strict(
                            ["path"],
                            path=TEXT,
                            hostPath=TEXT,
                            permissions={"pattern": "^[rwm]{1,3}$"},
                        ),
                    },
                    mounts={
                        "type": "array",
                        "items": strict(
                            ["hostPath", "containerPath"],
                            hostPath=TEXT,
                            containerPath=TEXT,
                            options=TEXTS,
                            type=TEXT,
                        ),
                    },
                    hooks={
                        "type": "array",
                        "items": strict(
                            ["hookName", "path"],
                            hookName={"enum": sorted(HOOKS)},
                            path=TEXT,
                            args=TEXTS,
                            env=VARIABLES,
                            timeout={"type": "integer"},
                        ),
                    },
                    additionalGids={
                        "type": "array",
                        "items": {"type": "integer", "minimum": 1, "maximum": 2**32 - 1},
                    },
                ),
            },
        ),
    },
)

CHECKED = jsonschema.Draft202012Validator(SCHEMA)

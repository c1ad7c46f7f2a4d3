"""Values to plain trees and back: what JSON and YAML hold. Not here: their text.

A tree is what ``json.loads`` gives. Keys are lowerCamelCase, unknowns are left out, times are
RFC 3339, durations and amounts are written as people write them.
"""

from accelkit.core.serde.keys import key_of
from accelkit.core.serde.reading import from_tree
from accelkit.core.serde.schema import schema_of
from accelkit.core.serde.writing import Tree, to_tree

__all__ = ["Tree", "from_tree", "key_of", "schema_of", "to_tree"]

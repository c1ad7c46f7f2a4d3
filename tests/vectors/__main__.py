"""``python -m tests.vectors FILE...`` checks files of vectors against the product."""

import sys

from tests.vectors.runner import main

sys.exit(main(sys.argv[1:]))

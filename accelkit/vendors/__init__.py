"""Hardware, one folder a maker. Vendors import `accelkit` only, like strangers do."""

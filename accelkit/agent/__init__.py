"""The node agent: vendor calls in lanes, one loop, the newest view. It knows no vendor and no backend."""

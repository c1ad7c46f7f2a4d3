"""The node agent: lanes, one loop, the newest view. It knows neither vendors nor backends."""

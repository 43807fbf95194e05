"""The tape: what is recorded, and the walk over it. Knows neither Tensor nor ops."""

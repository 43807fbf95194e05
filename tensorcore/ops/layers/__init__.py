"""What layers compute: activations, convolutions, pools, norms, attention, recurrence and losses."""

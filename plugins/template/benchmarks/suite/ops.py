"""Ops on the device, beside the same on the CPU: run with ``asv run`` in the folder above."""

import tensorcore as tc


class Ops:
    params = (["mine", "cpu"], [8, 1000, 1000000])
    param_names = ("device", "elements")

    def setup(self, device, elements):
        self.device = tc.device(device)
        self.x = tc.ones(elements, device=self.device)

    def time_add(self, device, elements):
        self.x + self.x
        self.device.synchronize()

    def time_sum(self, device, elements):
        self.x.sum()
        self.device.synchronize()

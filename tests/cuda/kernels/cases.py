"""All cases."""

from tests.cuda.kernels import cases_elementwise, cases_places, cases_products, cases_rows
from tests.cuda.kernels.case import CASES, Case

__all__ = ["CASES", "Case", "cases_elementwise", "cases_places", "cases_products", "cases_rows"]

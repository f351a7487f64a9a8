"""What a run costs: machines by the hour, traffic by the gigabyte, disk by the gigabyte and month."""

from dragoman.plan.setting import Prices
from dragoman.run.promise import Cost

HOURS_PER_MONTH = 730.0
GB = 1e9


def cost_of(prices: Prices, seconds: float, sent_bytes: float, disk_bytes: float) -> Cost:
    """Of `seconds` of all machines; `sent_bytes` and `disk_bytes` are those of all hosts together."""
    hours = seconds / 3600
    return Cost(
        machines=None if prices.per_hour is None else prices.per_hour * hours,
        traffic=None if prices.per_gb is None else prices.per_gb * sent_bytes / GB,
        storage=None
        if prices.per_gb_month is None
        else prices.per_gb_month * disk_bytes / GB * hours / HOURS_PER_MONTH,
        currency=prices.currency,
    )

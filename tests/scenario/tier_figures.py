"""What a tier shows of itself while a scenario runs: single metrics by HTTP, and percentiles of what was measured."""
import re


def metric(member, name, **labels):
    """The value of one series of `member`'s /metrics; None if it is not there."""
    wanted = {f'{key}="{value}"' for key, value in labels.items()}
    for line in member.get("/metrics")[1].splitlines():
        found = re.match(rf"moetier_{name}(?:\{{(.*)\}})? (\S+)$", line)
        if found and wanted <= set((found[1] or "").split(",")):
            return float(found[2])
    return None


def percentile(values, share):
    """The smallest value that `share` of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * share // 100) - 1)]


def milliseconds(values):
    """p50, p99 and max of seconds, in whole milliseconds."""
    return {"p50": round(1e3 * percentile(values, 50)), "p99": round(1e3 * percentile(values, 99)),
            "max": round(1e3 * max(values))}

"""The bench's rows beside the peers' as one table. Pure: documents in, text out."""


def key(row):
    return row["shape"], row["format"], row["T"], row["routing"]


def best_peer(peers, row):
    """(us, "name mode") of the fastest peer with this row, or None."""
    found = [
        (p["t_us"]["median"], f"{p['peer']} {p['mode']}")
        for p in peers
        if key(p) == key(row) and p.get("t_us")
    ]
    return min(found) if found else None


def target_us(row):
    target = row.get("target") or {}
    if target.get("us"):
        return target["us"]
    if target.get("of_probe") and row.get("probe_us"):
        return target["of_probe"] * row["probe_us"]
    return None


def table(bench, peers):
    """Lines of text. `bench` and `peers` are lists of rows; a row that one side lacks is shown with "-"."""
    rows = list(bench)
    ours = {key(r) for r in rows}
    rows += [dict(p, t_us=None) for p in first_of_each(peers) if key(p) not in ours]
    lines = [
        f"{'shape':9} {'format':9} {'T':>6} {'routing':7} {'ours':>9} {'best peer':>9} {'ratio':>6} {'target':>8}  peer"
    ]
    for row in rows:
        us = (row.get("t_us") or {}).get("median")
        peer = best_peer(peers, row)
        target = target_us(row)
        lines.append(
            f"{row['shape']:9} {row['format']:9} {row['T']:>6} {row['routing']:7} {number(us):>9} "
            f"{number(peer and peer[0]):>9} {number(us and peer and us / peer[0], 3):>6} "
            f"{number(target):>8}  {peer[1] if peer else ''}".rstrip()
        )
    return lines


MARKDOWN_HEAD = """| layer, format | tokens, routing | us | after a rest | sort apart | of the floor \
| of the read probe | target | best peer, us | ours / peer |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"""


def markdown(bench, peers):
    """README's table, one row a measured row of the bench: medians in us."""
    lines = [MARKDOWN_HEAD]
    for row in bench:
        us = (row.get("t_us") or {}).get("median")
        target, peer = target_us(row), best_peer(peers, row)
        missed = "" if not target or (us and us <= target) else " (missed)"
        cells = [
            f"{row['shape']} {row['format']}",
            f"{row['T']} {row['routing']}",
            number(us),
            number(row.get("rested_us")),
            number(row.get("sort_us")),
            number(row.get("of_floor"), 2),
            number(row.get("of_probe"), 3),
            number(target, 0) + missed,
            f"{number(peer[0])} {peer[1].split()[0]}" if peer else "-",
            number(us and peer and us / peer[0], 2),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def first_of_each(rows):
    seen = {}
    for row in rows:
        seen.setdefault(key(row), row)
    return list(seen.values())


def number(value, digits=1):
    return f"{value:.{digits}f}" if value else "-"

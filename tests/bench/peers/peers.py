"""Peers of `moetier bench kernels --part device`, on the same shapes, routings and kind of data, on this
machine's GPU: bf16 rows in, row quantisation, FC1, SwiGLU, FC2, weighted sum; routing metadata is made before
the clock starts. Needs torch with CUDA and Triton; Humming (PyPI humming-kernels 0.1.20) where installed.

    moetier bench kernels --part device -o json > bench.json
    python3 tests/bench/peers/peers.py --bench bench.json --out peers.json      # side by side
    python3 tests/bench/peers/peers.py --shape qwen3 --rows 1,64                # peers alone
    python3 tests/bench/peers/peers.py --bench bench.json --with peers.json     # again, no GPU; --markdown: README's

A peer that is not installed, does not know a format or fails is named, with the reason. A figure of a peer
whose result differs from an f32 reference by more than 3 % is withheld. Ends with 1 if no peer ran.
"""

import argparse
import json
import sys
import traceback

import side_by_side

try:
    from bench_rows import DEFAULT_ROWS, SHAPES, layers, rotated, route, routings
except ModuleNotFoundError as missing:
    sys.exit(f"peers: {sys.executable}: {missing}")

ERROR_MAX = 0.03  # relative, against an f32 reference that quantises where the peer does (2.5 % seen)


def wanted_rows(options):
    if options.bench:
        return [(r["shape"], r["format"], r["T"], r["routing"]) for r in options.bench_rows]
    rows = [(s, f, t, "random") for s, f, counts in DEFAULT_ROWS for t in counts]
    chosen = {int(t) for t in options.rows.split(",")} if options.rows else None
    return [
        r
        for r in rows
        if (not options.shape or r[0] == options.shape)
        and (not options.format or r[1] == options.format)
        and (not chosen or r[2] in chosen)
    ]


def measure(peer, layer, shape, form, rows, kind, options):
    """One result a mode."""
    import torch

    import peer_kernels as pk
    from graph_timing import capture, time_graphs

    count = layers(shape, form, rows)
    routed = [route(shape, rows, kind, options.seed, q) for q in range(routings(rows))]
    x = torch.randn(rows, shape.hidden, dtype=torch.bfloat16, device="cuda")
    out = torch.empty_like(x)
    for mode in layer.modes:
        result = {
            "peer": peer.__name__.removesuffix("_peer"),
            "version": peer.version(),
            "mode": mode,
            "shape": shape.name,
            "format": form,
            "T": rows,
            "R": rows * shape.k,
            "routing": kind,
        }
        try:
            # The steps hold the metadata that the graphs read.
            steps = [[layer.step(mode, x, *r, n, out) for n in range(count)] for r in routed]
            graphs = [capture(s) for s in steps]
            ids, weights = routed[-1]
            shown = rotated(ids, count - 1, shape.experts)
            sample = sorted({0, rows // 2, rows - 1})
            truth = pk.reference(x, torch.from_numpy(shown), weights, layer.expert, sample, peer.seen)
            graphs[-1].replay()
            result["error"] = pk.relative_error(out[sample], truth)
            if result["error"] <= ERROR_MAX:
                result["t_us"] = time_graphs(graphs, count, options.repeat)
            else:
                result["why"] = "wrong result: the figure is withheld"
        except Exception as error:  # a peer's failure is a result
            traceback.print_exc()
            result["why"] = f"{type(error).__name__}: {str(error)[:300]}"
        torch.cuda.synchronize()
        yield result


def run(options):
    try:
        import torch
    except ImportError:
        return None, ["torch is not installed: no peer can run"]
    if not torch.cuda.is_available():
        return None, ["torch sees no CUDA device: no peer can run"]
    import humming_peer
    import torch_peer
    from graph_timing import matmul_rate

    notes, peers = [], []
    for peer in (humming_peer, torch_peer):
        why = peer.missing()
        if why:
            notes.append(f"{peer.__name__.removesuffix('_peer')}: {why}")
        else:
            peers.append(peer)
    torch.manual_seed(options.seed)
    generator = torch.Generator(device="cuda").manual_seed(options.seed)
    document = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "bf16_tf": matmul_rate(),
        "rows": [],
    }
    by_layer = {}
    for name, form, rows, kind in wanted_rows(options):
        by_layer.setdefault((name, form), []).append((rows, kind))
    for (name, form), cases in by_layer.items():
        shape = SHAPES[name]
        for peer in peers:
            if form not in peer.FORMATS or shape.bias:
                continue
            layer = peer.Layer(shape, form, generator)
            layer.prepare([rows for rows, _ in cases])
            for rows, kind in cases:
                for result in measure(peer, layer, shape, form, rows, kind, options):
                    document["rows"].append(result)
                    us = result["t_us"]["median"] if "t_us" in result else None
                    print(
                        f"{name} {form} T {rows} {kind}: {result['peer']} {result['mode']} "
                        f"{f'{us:.1f} us' if us else result['why']} (error {result.get('error', -1):.4f})",
                        flush=True,
                    )
            del layer
            torch.cuda.empty_cache()
    document["bf16_tf_after"] = matmul_rate()
    return document, notes


def joined(names):
    """The first document with the rows of all."""
    documents = []
    for name in names:
        with open(name, encoding="utf-8") as file:
            documents.append(json.load(file))
    return dict(documents[0], rows=[row for d in documents for row in d["rows"]])


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bench", help="JSON of moetier bench kernels --part device: its rows are measured")
    parser.add_argument("--with", dest="peers", nargs="+", help="earlier --out files instead of a measurement")
    parser.add_argument("--markdown", action="store_true", help="the table as README shows it")
    parser.add_argument("--out", help="where the peers' JSON goes")
    parser.add_argument("--shape", choices=sorted(SHAPES))
    parser.add_argument("--format", choices=("fp8_block", "bf16"))
    parser.add_argument("--rows", help="comma-separated")
    parser.add_argument("--repeat", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    options.bench_rows = []
    if options.bench:
        with open(options.bench, encoding="utf-8") as file:
            document = json.load(file)
        options.bench_rows = document["parts"]["device"]
        options.seed = document["problem"]["seed"]
    if options.peers:
        document, notes = joined(options.peers), []
    else:
        document, notes = run(options)
    for note in notes:
        print(note)
    if document is None:
        return 1
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
    print(f"{document['device']}, bf16 {document['bf16_tf']:.0f} TF before, {document['bf16_tf_after']:.0f} after")
    shown = side_by_side.markdown if options.markdown else side_by_side.table
    print("\n".join(shown(options.bench_rows, document["rows"])))
    return 0 if any("t_us" in row for row in document["rows"]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

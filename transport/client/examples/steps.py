"""Decodes with two micro-batches under way, runs a step again when a call of it failed, and tells events:
steps.py ADDRESS [COUNT]; steps.py --actions prints what to do for each failure."""
import sys
import time

import numpy as np

import moetier

# [example: action]
REPLAY = (moetier.Skipped, moetier.Timeout, moetier.StaleGeneration, moetier.Corrupt)
WAIT_AND_REPLAY = (moetier.Unavailable, moetier.Overloaded)
FIX_CALL = (moetier.Invalid, moetier.BadState)
REOPEN = (moetier.Cancelled, moetier.SessionLost)
# All others end the service: Unsupported, VersionMismatch, ModelMismatch, Denied, DeviceError, NoMemory, InternalError.
# [end]


# [example: micro_batches]
def all_layers(step, layers, batches):
    """While one micro-batch is on the tier, the attention of the other would be computed here."""
    for layer in layers:
        tickets = [step.submit(layer, x, logits, micro_batch=u) for u, (x, logits, _) in enumerate(batches)]
        for ticket, (_, _, y) in zip(tickets, batches):
            step.collect(ticket, out=y)
# [end]


# [example: replay]
def run_step(session, layers, batches, attempts=50):
    """One step, again as long as that may help. Sample from its rows only when this returns; keys and values of a
    position are written once more by each attempt, to the same place."""
    begun = False
    for attempt in range(attempts):
        step = session.step(replay=begun)
        try:
            with step:
                begun = True
                all_layers(step, layers, batches)
            return step.report
        except REPLAY + WAIT_AND_REPLAY as failure:
            if attempt + 1 == attempts:
                raise
            print(f"attempt {attempt + 1}: {failure}", file=sys.stderr)
            if isinstance(failure, WAIT_AND_REPLAY):
                time.sleep(failure.retry_after or 0.1)
# [end]


# [example: events]
def tell_events(session):
    """What happened meanwhile, without waiting; session.fileno() is readable while events wait."""
    while (event := session.next_event()) is not None:
        print(f"event {event.kind}, generation {event.generation}, {event.workers_live} workers live")
# [end]


def print_actions():
    names = {"replay step": REPLAY, "wait and replay": WAIT_AND_REPLAY, "fix call": FIX_CALL, "reopen": REOPEN}
    for kind in moetier.Error.__subclasses__():
        action = next((name for name, kinds in names.items() if kind in kinds), "stop")
        print(kind.status, kind.code, action, kind.__name__, sep="\t")


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with moetier.connect(sys.argv[1]) as tier, tier.session(max_tokens=4, micro_batches=2) as session:
        model = tier.model
        x = np.sin(0.37 * np.arange(4 * model.hidden_size)).astype(np.float32).reshape(4, -1)
        logits = np.cos(1.7 * np.arange(4 * model.router_columns)).astype(np.float32).reshape(4, -1)
        batches = [(x, logits, np.empty_like(x)) for _ in range(2)]
        for _ in range(count):
            report = run_step(session, model.moe_layers, batches)
            print(f"step {report.step}: {report.calls} calls, attempt {report.attempts}, {report.status}", flush=True)
            tell_events(session)


if __name__ == "__main__":
    print_actions() if sys.argv[1] == "--actions" else main()

@0xa8ea7b4e5b489e26;
# What clients say to the coordinator, over Cap'n Proto RPC (standard stream framing, two parties, level 1).
#
# The story. A client connects, asks `info` for the protocol and the model, and opens a session: a lease on the tier.
# - A *direct* session has its own source half: the client tells its shape and data plane address by `attach`, the
#   coordinator makes every worker attach it, and from then on no row of it passes here. The client keeps the lease by
#   `renew` (every quarter of leaseNs) and learns of new routing snapshots by `watch`.
# - A *thin* session is served by the gateway, the coordinator's own source half: the client sends rows by `forward`.
# When a connection is lost, a thin session is closed at once (a new one is as good: it holds no state); a direct one
# lives on until its lease lapses and is claimed by `resumeSession` over another connection, also from a coordinator
# that was restarted meanwhile. While the coordinator is away, leases stand still.
#
# Rules that hold for every method.
# - Each has a `Call` first and a `Status` first in its answer; the other fields of an answer count only if status.code
#   is 0. Exceptions of the RPC layer mean transport faults, nothing else: a refusal is always a Status.
# - `Call.protocol` is checked before anything else (status VERSION), then the deadline (0 is INVALID), then the rest.
# - Every call is answered by its deadline plus 100 ms.
# - A message has at most 16 segments and 8 MiB, both ways; larger work is cut by the client. A frame that breaks this,
#   or is none, closes its connection. A connection holds at most 256 calls that were not finished; more close it.
# - All byte counts and shapes are checked in 64 bits before anything is allocated or sent on.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("moetier::rpc");

const protocol :UInt16 = 1;   # the version this file describes; a server serves it and the one before it

struct Call {
  protocol @0 :UInt16;        # version the client speaks; 0 is no version
  clientId @1 :UInt64;        # 64 random bits of the client process
  requestId @2 :UInt64;       # rising per client, from 1; comes back in the status. A `forward` repeated with the same
                              # (clientId, requestId) gets the same answer while it is the session's newest; 0: never
  deadlineNs @3 :UInt64;      # nanoseconds the caller still waits; 1 .. 600 s, larger is taken as 600 s
}

struct Status {
  code @0 :UInt8;             # moetier::status: 0 OK, 10 INVALID, 20 TIMEOUT, ...
  reason @1 :Text;            # name out of the closed list of reasons, "none" if OK
  message @2 :Text;           # one sentence; numbers, glossary ids and the caller's own values only
  retryable @3 :Bool;         # whether the same call may succeed later
  retryAfterNs @4 :UInt64;    # nanoseconds; 0 = no hint
  requestId @5 :UInt64;       # of the call
}

struct Revision {             # names a routing snapshot; compared field by field in this order
  generation @0 :UInt64;      # committed plan; 0 = older than any
  sharesEpoch @1 :UInt64;
  sharesCounter @2 :UInt32;
}

interface Tier {              # the bootstrap capability
  ping @0 (call :Call) -> (status :Status);
  # Answered by the RPC thread alone: says that it turns.

  info @1 (call :Call) -> (status :Status, info :Info);

  snapshot @2 (call :Call) -> (status :Status, snapshot :Data);
  # The newest routing snapshot in the encoding of snapshot.capnp; UNAVAILABLE (not_ready) before the first.

  openSession @3 (call :Call, wish :Wish) -> (status :Status, grant :Grant, session :Session);

  resumeSession @4 (call :Call, session :UInt32, incarnation :UInt64)
      -> (status :Status, grant :Grant, session :Session);
  # Claims a direct session that this client still holds. SESSION_LOST: open a new one. UNAVAILABLE: ask again.

  admin @5 (call :Call) -> (status :Status, admin :Admin);

  router @6 (call :Call, layer :UInt16, firstRow :UInt32) -> (status :Status, rows :RouterRows);
  # A layer's router, for source halves that compute logits: as many rows as a message takes, from firstRow.

  struct RouterRows {
    columns @0 :UInt32;        # rows of the whole matrix: router columns
    width @1 :UInt32;
    dtype @2 :UInt8;           # 0 f32, 1 f16, 2 bf16
    rows @3 :Data;             # [n, width] from firstRow, n >= 1
    bias @4 :List(Float32);    # [columns] on the logits, or empty; with firstRow 0 only
  }

  struct Info {
    protocolMin @0 :UInt16;
    protocolMax @1 :UInt16;
    epoch @2 :UInt64;
    ready @3 :Bool;            # every expert has a live replica
    modelType @4 :Text;        # the model's fields are empty before the first commit
    fingerprint @5 :UInt64;
    hiddenSize @6 :UInt32;     # H
    experts @7 :UInt32;        # E per layer
    topK @8 :UInt32;           # k
    moeLayers @9 :List(UInt16);
    routerColumns @10 :UInt32; # of logits: E, and identity experts where the model has them; 0 = of a server before it
  }

  struct Wish {
    tenant @0 :Text = "default";    # printable ASCII, 1..64 bytes
    incarnation @1 :UInt64;         # of the source half, 64 random bits; ignored for a thin session
    tokensMax @2 :UInt32;           # per micro-batch; 0 = the tier's limit
    microBatches @3 :UInt32 = 1;    # 1..4
    topK @4 :UInt32;                # 0 = the model's
    returnMode @5 :UInt8;           # 0 partial (one fp32 sum per token and worker), 1 exact (bits of no placement)
    returnDtype @6 :UInt8;          # 0 f32, 1 f16, 2 bf16: what workers send back
    thin @7 :Bool;                  # the gateway serves it
    modelFingerprint @8 :UInt64;    # 0 = any; else MODEL_MISMATCH unless equal
    gate @9 :UInt8;                 # 0 the client brings logits or ids, 1 the tier may compute logits
    sharedExperts @10 :UInt8;       # 0 the client's matter, 1 the tier computes and adds them
    badRows @11 :UInt8;             # 0 a bad row of logits fails its call, 1 it is flagged
    deadlineClass @12 :UInt8;       # 0 the tenant's highest, 1 decode, 2 prefill, 3 batch; above its highest: DENIED
  }

  struct Grant {
    session @0 :UInt32;             # never 0, never reused
    source @1 :UInt16;              # place in the workers' attach tables
    tokensMax @2 :UInt32;
    microBatches @3 :UInt32;
    topK @4 :UInt32;
    leaseNs @5 :UInt64;             # nanoseconds after a renewal until the session lapses
    callDeadlineNs @6 :UInt64;      # for calls that name none
    snapshot @7 :Data;              # the newest; encoding of snapshot.capnp
    deadlineClass @8 :UInt8;        # 1 decode, 2 prefill, 3 batch
    stepDeadlineNs @9 :UInt64;      # for steps that name none; 0 = none
    tokensPerSecond @10 :UInt64;    # this session's part of its tenant's rate now; 0 = no limit
  }
}

interface Session {
  attach @0 (call :Call, shape :Shape, address :Data) -> (status :Status);
  # Direct sessions only. OK means that every live worker has room for the source. Repeats change nothing.
  # address: opaque bytes of the carrier, 1..4096.

  forward @1 (call :Call, rows :Rows) -> (status :Status, sums :Sums);
  # Thin sessions only: one layer's MoE output for the rows. One call at a time is served, a few wait, more are
  # OVERLOADED. deadlineNs is the call's own deadline. Of repeats of one call two wait for its answer, more are
  # OVERLOADED.

  renew @2 (call :Call, calls :UInt64, tokenLayers :UInt64, generation :UInt64)
      -> (status :Status, tokensPerSecond :UInt64);
  # What a direct session's source half did so far, for people: calls that ended, their tokens summed over all layers,
  # the plan it serves by. The gateway counts for thin sessions. Not trusted, bounds nothing.
  # tokensPerSecond: as in the grant, as of now. A session that took more begins its next step later.

  watch @3 (call :Call, seen :Revision, seenSuspicion :UInt64)
      -> (status :Status, snapshot :Data, suspicion :Suspicion);
  # Long poll: answers when a snapshot newer than `seen` exists, when the coordinator suspects other workers than under
  # the number `seenSuspicion`, when the session ends (its reason as status), or at the deadline (OK and no bytes).
  # A session has one: a newer watch ends the older in OVERLOADED.

  close @4 (call :Call) -> (status :Status);
  # Ends the session; calls that are outstanding end in CANCELLED. Repeats change nothing.

  reportLate @5 (call :Call, worker :UInt16, incarnation :UInt64) -> (status :Status);
  # A call ended in TIMEOUT because this worker had not answered. The coordinator probes the worker; a report alone
  # changes no membership. A worker that is not in service is ignored.

  struct Suspicion {            # a hint: whom to avoid where another replica is there. Membership is the snapshot's matter
    number @0 :UInt64;          # names the set; 0: nobody was ever suspected
    workers @1 :List(Suspect);  # at most 64
  }

  struct Suspect {
    worker @0 :UInt16;
    incarnation @1 :UInt64;
  }

  struct Shape {                # what source and workers agree on; bytes and rows per exchange
    rowsMax @0 :UInt32;
    hiddenStride @1 :UInt32;
    topK @2 :UInt32;
    returnStride @3 :UInt32;
    returnRowsMax @4 :UInt32;
    banks @5 :UInt32;
  }

  struct Rows {
    layer @0 :UInt16;           # a MoE layer of the model
    tokens @1 :UInt32;          # T, 0..tokensMax
    hiddenDtype @2 :UInt8;      # 0 f32, 1 f16, 2 bf16
    hidden @3 :Data;            # [T, H] dense, little endian
    logitsDtype @4 :UInt8;      # as hiddenDtype
    logits @5 :Data;            # [T, Info.routerColumns] dense, or empty with ids and weights
    ids @6 :List(Int32);        # [T, k], -1 = no expert; empty with logits
    weights @7 :List(Float32);  # [T, k]
    tokenIds @8 :List(Int32);   # [T], where the layer chooses experts by token id; or empty
    adapterIds @9 :List(Int32); # [T], -1 none; or empty
  }

  struct Sums {
    output @0 :Data;            # f32 [T, H] dense, little endian
    ids @1 :List(Int32);        # [T, k] as routed
    weights @2 :List(Float32);  # [T, k] as used
    generation @3 :UInt64;      # all experts of all rows came from this plan
    epoch @4 :UInt64;
    badRows @5 :Data;           # [T] bytes, 1 = not routed; empty unless the session flags them
  }
}

interface Admin {               # documents are JSON text with a `schema` field
  status @0 (call :Call) -> (status :Status, document :Text);     # moetier.status/1
  placement @1 (call :Call) -> (status :Status, document :Text);  # moetier.placement/1
  resolution @2 (call :Call) -> (status :Status, document :Text); # moetier.resolution/1
  adapters @3 (call :Call) -> (status :Status, document :Text);   # moetier.adapters/1

  loadAdapter @4 (call :Call, name :Text, path :Text) -> (status :Status, document :Text);
  # OK means that every live worker has it and that sources may name it; the document is the list with it. path: a
  # directory in PEFT form that every worker can read, absolute. A name that is loaded from the same path changes
  # nothing. When one worker cannot load it, none keeps it.

  dropAdapter @5 (call :Call, name :Text) -> (status :Status, document :Text);

  experts @6 (call :Call) -> (status :Status, document :Text);    # moetier.experts/1

  setLogLevel @7 (call :Call, level :Text) -> (status :Status);
  # "configured", "debug", "info", "warn", "error" or "off": of the coordinator at once, of every worker with its next
  # beat, and of workers that come later; until the coordinator ends.
}

@0xb1f3a2c4d95e8071;
# Control messages between the coordinator and its workers: what an actor carries.
#
# The story. A worker opens a link and says Hello: who it is, what it can do and what it still
# holds. The coordinator answers Welcome (its place and its slots) or Refused. A plan reaches the
# worker as Prepare; it loads every slot, checks the bytes and answers Prepared with a checksum per
# slot. Once the decision is durable comes Commit, answered Committed; before it, AbortPlan undoes a
# Prepare. Release frees what older plans alone name, answered Released. Sources come and go by
# AttachSource / SourceAttached and DetachSource. Heartbeat and HeartbeatAnswer run all the time, Probe asks for a beat at once;
# LoadReport carries counts; Leaving announces a worker's orderly end. In a tier that runs adapters they come and go by
# LoadAdapter and DropAdapter; AdapterState tells how a load ended.
#
# Every command carries the coordinator's epoch: a worker keeps the highest it has seen and refuses
# lower ones. Commands about plans also carry the incarnation they are meant for, and answers the
# incarnation they come from; what does not match is dropped and counted. Repeats change nothing.
#
# On the link a message is one or more envelopes of at most 64 KiB. An envelope is 32 bytes, little
# endian, then at most 60 KiB of the message:
#   0 u32 magic "MTCE"   4 u16 version, 1   6 u16 kind (the number behind each struct below)
#   8 u16 fragment, 0..count-1   10 u16 count, 1..1093   12 u32 bytes that follow in this envelope
#   16 u32 bytes of the whole message, a multiple of 8, at most 64 MiB
#   20 u32 CRC32C of the whole message   24 u32 CRC32C of this envelope with this field as 0
#   28 u32 zero
# Every fragment but the last is full. The fragments together are one Cap'n Proto segment without a
# segment table, whose root is the struct of that kind. There is no float in any message.
#
# Names are 1 to 64 printable ASCII bytes, free text at most 1024 bytes, addresses at most 4096.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("moetier::messages");

enum GenerationState {
  preparing @0;  # bytes are on their way
  prepared @1;   # all bytes are verified, not in service
  serving @2;    # in service
  draining @3;   # an older one, still answered for
}

struct HeldGeneration {
  generation @0 :UInt64;      # 1 and up
  planHash @1 :UInt64;        # first 64 bits of the SHA-256 of the plan
  state @2 :GenerationState;
}

struct SourceAttachment {
  # A source as the workers' attach tables know it. Sizes are those of the source's exchanges.
  source @0 :UInt16;          # place in the attach tables, 0..sources.max-1
  session @1 :UInt32;         # never 0
  incarnation @2 :UInt64;     # 64 random bits of the source's process
  rowsMax @3 :UInt32;         # rows per exchange
  hiddenStride @4 :UInt32;    # bytes of a hidden row
  topK @5 :UInt32;            # positions of a row record, 1..256
  returnStride @6 :UInt32;    # bytes of a returned row
  returnRowsMax @7 :UInt32;   # returned rows per exchange
  banks @8 :UInt32;           # exchanges open at once with one worker, 2..4
  tenant @9 :Text;            # for tables and metrics
  address @10 :Data;          # of the source's data plane, opaque here
  weight @11 :UInt32 = 1;     # of its tenant among others, 1..1000
  deadlineClass @12 :UInt8;   # of its calls: 0 decode, 1 prefill, 2 batch
  # What its session was granted: a restarted coordinator learns it from here.
  tokensMax @13 :UInt32;      # tokens of a call, 1 and up; an exchange may carry fewer
  microBatches @14 :UInt8;    # calls open at once, 1..4
  sessionTopK @15 :UInt16;    # routed experts of a token, 1..256
  sharedExperts @16 :Bool;    # the tier computes and adds them
}

struct HeldAdapter {
  # A low-rank adapter of routed experts as workers know it.
  adapter @0 :UInt32;         # id that rows name, below 2^31
  name @1 :Text;              # for people
  path @2 :Text;              # directory every worker reads it from, absolute, 1..1024 printable ASCII bytes
}

struct Hello {                # kind 1, worker -> coordinator, first on every link
  protocol @0 :UInt32;        # 5
  name @1 :Text;              # configured; how a restarted worker finds its place again
  incarnation @2 :UInt64;     # 64 random bits per start
  node @3 :UInt64;            # identity of the actor node; one equal to the coordinator's is refused
  highestEpoch @4 :UInt64;    # the highest this process has obeyed, 0 = none
  modelFingerprint @5 :UInt64;
  checkpointDigest @6 :UInt64;
  slots @7 :UInt32;           # per layer, 0 = whatever the partition gives
  environment @8 :Data;       # JSON document moetier.environment/1, at most 32 KiB: what its machine can do
  resolution @9 :UInt64;      # id of what its serving generation was built by, 0 = none
  carrier @10 :Text;
  address @11 :Data;          # data plane
  heartbeatInterval @12 :UInt64;  # ns; must equal the coordinator's
  heartbeatTimeout @13 :UInt64;   # ns; must equal the coordinator's
  held @14 :List(HeldGeneration); # at most 4
  heldChecksums @15 :List(UInt64);  # of the serving generation, as in Prepared
  sources @16 :List(SourceAttachment);  # attached here, at most 1024
  adapters @17 :List(HeldAdapter);      # loaded here, at most 64
  heldSharedDigest @18 :UInt64;         # of the serving generation, as in Prepared
}

struct Welcome {              # kind 2, coordinator -> worker
  worker @0 :UInt16;
  incarnation @1 :UInt64;     # whom this is for
  epoch @2 :UInt64;
  firstSlot @3 :UInt32;       # global number of this worker's first slot
  slots @4 :UInt32;           # per layer, 0 = not placed yet
}

struct Refused {              # kind 3, either way
  enum Cause {
    staleEpoch @0;            # the command's epoch is lower than `epoch`
    busy @1;                  # no empty pages
    mismatch @2;              # plan hash, layout or slots
    unknownGeneration @3;     # commit of something not prepared
    join @4;                  # coordinator -> worker: this process cannot be a member
    loadFailed @5;            # weights missing or corrupt
    prepareFailed @6;         # the resolved backend cannot be made here or fails its self-test
  }
  cause @0 :Cause;
  epoch @1 :UInt64;           # the refuser's highest
  generation @2 :UInt64;      # the one refused, 0 = none
  incarnation @3 :UInt64;     # of the worker concerned
  text @4 :Text;              # for the log and the operator, never for a client
}

struct Prepare {              # kind 4, coordinator -> worker
  epoch @0 :UInt64;
  generation @1 :UInt64;
  planHash @2 :UInt64;
  incarnation @3 :UInt64;     # of the worker it is for
  placement @4 :Data;         # canonical bytes of the placement
  resolution @5 :Data;        # JSON document moetier.resolution/1, at most 256 KiB: what every worker runs
  sharedExperts @6 :UInt32;   # pseudo-experts to hold beside the slots of every layer
}

struct Prepared {             # kind 5, worker -> coordinator
  epoch @0 :UInt64;           # of the Prepare
  generation @1 :UInt64;
  planHash @2 :UInt64;
  incarnation @3 :UInt64;
  checksums @4 :List(UInt64); # XXH3-64 by (layer index, local slot), 0 = empty slot
  sharedDigest @5 :UInt64;    # XXH3-64 of the shared experts' checksums, layer after layer; 0 = none held
}

struct AbortPlan {            # kind 6, coordinator -> worker, before the decision only
  epoch @0 :UInt64;
  generation @1 :UInt64;
  planHash @2 :UInt64;
  incarnation @3 :UInt64;
}

struct Commit {               # kind 7, coordinator -> worker, after the durable decision
  epoch @0 :UInt64;
  generation @1 :UInt64;
  planHash @2 :UInt64;
  incarnation @3 :UInt64;
}

struct Committed {            # kind 8, worker -> coordinator
  epoch @0 :UInt64;
  generation @1 :UInt64;
  planHash @2 :UInt64;
  incarnation @3 :UInt64;
}

struct Release {              # kind 9, coordinator -> worker
  epoch @0 :UInt64;
  generation @1 :UInt64;      # everything older than this goes
  incarnation @2 :UInt64;
}

struct Released {             # kind 10, worker -> coordinator
  epoch @0 :UInt64;
  generation @1 :UInt64;
  incarnation @2 :UInt64;
}

struct AttachSource {         # kind 11, coordinator -> worker
  epoch @0 :UInt64;
  source @1 :SourceAttachment;
}

struct SourceAttached {       # kind 12, worker -> coordinator
  workerIncarnation @0 :UInt64;
  source @1 :UInt16;
  incarnation @2 :UInt64;     # of the source
  accepted @3 :Bool;
  text @4 :Text;              # why not
  gone @5 :Bool;              # for good: this session was detached here, and its rows dropped
}

struct DetachSource {         # kind 13, coordinator -> worker
  epoch @0 :UInt64;
  source @1 :UInt16;
  incarnation @2 :UInt64;     # of the source; another one at this place stays
}

struct Heartbeat {            # kind 14, worker -> coordinator
  incarnation @0 :UInt64;
  sequence @1 :UInt64;        # rises with every beat of a process
  epoch @2 :UInt64;           # highest seen
  generation @3 :UInt64;      # serving, 0 = none
  engineTick @4 :UInt64;      # rises while the engine turns; standing still counts as no beat
  ticketsEnded @5 :UInt64;
  oldestBatch @6 :UInt64;     # ns, age of the oldest call in the engine, 0 = idle
  device @7 :UInt8;           # 0 the processor computes, 1 sound, 2 lost: its process is about to end
}

struct HeartbeatAnswer {      # kind 15, coordinator -> worker
  sequence @0 :UInt64;        # of the beat
  epoch @1 :UInt64;
  generation @2 :UInt64;      # newest committed
  log @3 :UInt8;              # least severe line that is written: 0 as configured, 1 debug .. 4 error, 5 none
}

struct LoadReport {           # kind 16, worker -> coordinator, once a second while anything changed
  incarnation @0 :UInt64;
  generation @1 :UInt64;      # the one that was counted
  planHash @2 :UInt64;
  rowsTotal @3 :UInt64;       # since the process began
  callsTotal @4 :UInt64;
  counts @5 :List(UInt64);    # selections by (layer index, local slot) since the generation began here
}

struct Leaving {              # kind 17, worker -> coordinator: it finishes what is in flight and ends
  incarnation @0 :UInt64;
}

struct LoadAdapter {          # kind 18, coordinator -> worker
  epoch @0 :UInt64;
  adapter @1 :HeldAdapter;
}

struct DropAdapter {          # kind 19, coordinator -> worker
  epoch @0 :UInt64;
  adapter @1 :UInt32;
}

struct AdapterState {         # kind 20, worker -> coordinator: how a load ended
  incarnation @0 :UInt64;
  adapter @1 :UInt32;
  loaded @2 :Bool;
  text @3 :Text;              # why not
}

struct Probe {                # kind 21, coordinator -> worker: a source found it late; it beats at once
  epoch @0 :UInt64;
  incarnation @1 :UInt64;     # whom this is for
}

@0xd17a1c1b7d3be7a1;
# The data plane's header, as a Cap'n Proto struct of integers. Nothing on the data plane is encoded
# by this schema: it documents the 128 bytes in front of every message between a source and a
# worker, and a test asserts that the data section of WireHeader is that image, byte for byte.
#
# The story. A source sends the rows of one chunk of one call to one worker (kind dispatch) and the
# worker answers with sums (kind give back), also for zero rows, also when it refuses. Such a pair of
# messages is an exchange; the pair numbers its exchanges with a rising stamp, of which at most
# `banks` are open at once. A message is header, extension (extensionBytes of them), then payload by
# payload, each of `rows` rows at its padded stride. A return repeats the key fields of its dispatch.
#
# All integers are little endian. Offsets are fixed for ever; a minor version may add flags and
# extensions, nothing else. No field has a default: Cap'n Proto would XOR it into the image.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("moetier::messages");

struct WireHeader {
  # -- 0: frame. A message that fails one of these, or `check`, is dropped, counted, never answered.
  magic @0 :UInt32;           # 0x54454f4d, the letters M O E T in this order
  major @1 :UInt8;            # 1; another major cannot be read at all
  minor @2 :UInt8;            # any; unknown minors are read as ours
  headerBytes @3 :UInt16;     # bytes; 128 + extensionBytes
  check @4 :UInt64;           # CRC32C of header and extension with this field as 0, widened

  # -- 16: who speaks to whom
  kind @5 :UInt8;             # 1 dispatch, 2 give back, 3 credit, 4 probe, 5 abort (stamp 0: the sender is
                              # going away, what the pair has open ends; else the source waits no more for
                              # the exchange of that stamp)
  flags @6 :UInt8;            # dispatch: bit 0 = warm-up rows, bit 1 = another worker of the call decides whether
                              # there is time for it; give back: the worker's status, 0..39
  returnMode @7 :UInt8;       # 0 partial (one row back per row), 1 exact (one per row and position)
  attempt @8 :UInt8;          # 0..255, counts replays of one step
  source @9 :UInt16;          # place in the workers' attach table
  worker @10 :UInt16;         # place in the tier

  # -- 24: what both must hold
  epoch @11 :UInt64;          # epoch the source saw last; carried, not compared with rows
  generation @12 :UInt64;     # dispatch: generation of the slots; give back: `detail` of the status
                              # (stale: newest generation the worker holds), else as dispatched
  resolutionId @13 :UInt64;   # agreed choice of backend, carrier and modes
  planHash @14 :UInt64;       # first 64 bits of the SHA-256 of the generation's plan

  # -- 56: which exchange
  step @15 :UInt64;           # step of the session
  session @16 :UInt32;        # lease of the attention service; never 0
  senderIncarnation @17 :UInt32;  # low half of the sender's 64 random bits
  layer @18 :UInt16;          # model layer, dense layers counted
  microBatch @19 :UInt16;     # 0..3
  chunk @20 :UInt16;          # 0..chunkCount-1
  chunkCount @21 :UInt16;     # 1 and up
  repeatIdx @22 :UInt16;      # 0..repeatCount-1
  repeatCount @23 :UInt16;    # 1..16
  stamp @24 :UInt32;          # the pair's exchange number, rising, never 0

  # -- 88: what follows
  rows @25 :UInt32;           # 0..rows_max of the source (return: 0..return_rows_max)
  rowBytes @26 :UInt32;       # bytes; sum of all payload strides
  payloadBytes @27 :UInt64;   # bytes; rows * rowBytes
  payloadCheck @28 :UInt32;   # CRC32C of all payload bytes; 0 = not computed
  budgetUs @29 :UInt32;       # microseconds left until the source's deadline when it was sent; a return: nanoseconds
                              # that the worker held its rows, saturating
  extensionBytes @30 :UInt32; # bytes, 0..4096
  extensionTag @31 :UInt32;   # 0 none, 1 trace and span id, 2 model data; top bit = must be understood
  zero @32 :UInt64;           # 0
}

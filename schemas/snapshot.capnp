@0xd4a1b64c2f0e9a53;
# The routing snapshot: everything a source half needs to serve calls, one immutable value per (generation, shares
# revision). The coordinator makes it after every commit and every change of shares; it travels over the client RPC, is
# copied out once, checked whole and never changed. A source adopts a newer generation at its next step, a newer shares
# revision of the same generation at any call.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("moetier::schema");

struct Snapshot {
  epoch @0 :UInt64;                # committed set of workers that these addresses belong to
  generation @1 :UInt64;           # committed plan, from 1
  planHash @2 :UInt64;             # first 64 bits of SHA-256 over the plan's canonical bytes
  resolutionId @3 :UInt64;         # which backend and carrier were resolved; rows carry it
  sharesEpoch @4 :UInt64;          # revision of the shares: (epoch, counter), rising
  sharesCounter @5 :UInt32;
  model @6 :Model;
  placement @7 :Data;              # canonical bytes: workers' slot ranges and the expert of every slot
  shares @8 :List(LayerShares);    # one per layer of the placement
  workers @9 :List(Worker);        # one per worker of the placement, same order
  exactAllowed @10 :Bool;          # exact return mode is offered: every backend is row invariant
  carrier @11 :Text;               # "ucx", "in_process"
  backend @12 :Text;               # identity of the resolved backend, for reports
  tables @13 :List(LayerRouting);  # one per layer of the placement
  sharedExperts @14 :UInt32;       # pseudo-experts that every worker holds beside its slots; 0 = none
  lora @15 :Bool;                  # the tier runs adapters
  adapters @16 :List(UInt32);      # ids that rows may name, rising, at most 64; empty unless lora

  struct Model {
    modelType @0 :Text;            # config.json's model_type
    hiddenSize @1 :UInt32;         # H
    intermediateSize @2 :UInt32;   # I of one expert
    experts @3 :UInt32;            # E per layer
    topK @4 :UInt32;               # k
    layersTotal @5 :UInt32;        # decoder layers, dense ones too
    moeLayers @6 :List(UInt16);    # ascending
    routing @7 :UInt8;             # public number of the routing method
    activation @8 :UInt8;          # number in the activation vocabulary
    stored @9 :UInt8;              # dtype of the expert tensors where quant is 0
    fingerprint @10 :UInt64;       # of all other fields of Model
    renormalise @11 :Bool;         # parameters of the routing method, see model/routing_rule.hpp
    scaling @12 :Float32;
    epsilon @13 :Float32;
    power @14 :Float32;
    groups @15 :UInt32;
    groupsKept @16 :UInt32;
    identityExperts @17 :UInt32;   # router columns behind E whose expert is the identity
    alpha @18 :Float32;            # constants of the activation; 0 = none
    beta @19 :Float32;
    limit @20 :Float32;
    limits @21 :List(Float32);     # the clamp by MoE layer, or empty
    sharedLimits @22 :List(Float32);
    quant @23 :UInt8;              # number of the weight format
    expertBias @24 :Bool;
    weightAt @25 :UInt8;           # 0 the router weight multiplies the expert's output, 1 its input
    sharedSize @26 :UInt32;        # intermediate size of all shared experts together, 0 = none
    sharedCount @27 :UInt32;       # pseudo-experts that hold them
    sharedGated @28 :Bool;
    routerWidth @29 :UInt32;       # columns of the router's input
    routerReadsHidden @30 :Bool;
  }
  struct LayerRouting {
    # What a layer's router has beside its matrix; an empty list = it has none.
    bias @0 :List(Float32);          # [columns] selection bias
    expertScale @1 :List(Float32);   # [E]
    table @2 :List(UInt16);          # [tableRows, k] experts by token id
    tableRows @3 :UInt32;
    tableWeights @4 :List(Float32);  # [tableRows, k]
    sharedGate @5 :List(Float32);    # [H]
  }
  struct LayerShares {
    units @0 :List(UInt32);        # by slot, 1/65536; an expert's sum to 65536, or to 0 if no replica lives
  }
  struct Worker {
    worker @0 :UInt16;
    incarnation @1 :UInt64;        # of the process in service
    live @2 :Bool;                 # false: keeps its place, gets no rows
    address @3 :Data;              # opaque to all but the carrier, at most 4096 bytes
  }
}

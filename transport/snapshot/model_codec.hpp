#pragma once
// The model and the routing tables inside a routing snapshot, as Cap'n Proto and back. What
// read_*() return satisfies the invariants of their values: numbers are in range, lists have the
// lengths that the model gives them. reason::frame_malformed names the field. Private to
// transport/snapshot. Thread: any.

#include "schemas/base/error.hpp"
#include "schemas/model/model_description.hpp"
#include "schemas/model/routing_tables.hpp"
#include "schemas/snapshot.capnp.h"

namespace moetier::transport {

void write_model(schema::Snapshot::Model::Builder out, const model_description& model);
expected<model_description> read_model(schema::Snapshot::Model::Reader in);

void write_tables(capnp::List<schema::Snapshot::LayerRouting>::Builder out,
                  const routing_tables& tables);
expected<routing_tables_ptr> read_tables(capnp::List<schema::Snapshot::LayerRouting>::Reader in,
                                         const model_description& model);

}  // namespace moetier::transport

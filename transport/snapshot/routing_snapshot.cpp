#include "transport/snapshot/routing_snapshot.hpp"

#include <cstring>
#include <tuple>

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/array.h>
#include <kj/exception.h>

#include "schemas/base/limits.hpp"
#include "schemas/snapshot.capnp.h"

namespace moetier::transport {
namespace {

constexpr std::size_t k_snapshot_words_max = 8u << 20;  // 64 MiB, the placement of the largest tier

kj::ArrayPtr<const capnp::byte> as_data(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const capnp::byte*>(bytes.data()), bytes.size()};
}

std::vector<std::byte> from_data(capnp::Data::Reader data) {
  const auto* first = reinterpret_cast<const std::byte*>(data.begin());
  return {first, first + data.size()};
}

unexpected_error refuse(const char* what) { return fail(reason::frame_malformed, what); }

void write_model(schema::Snapshot::Model::Builder out, const model_description& model) {
  out.setModelType(model.model_type);
  out.setHiddenSize(model.hidden_size);
  out.setIntermediateSize(model.intermediate_size);
  out.setExperts(model.experts);
  out.setTopK(model.top_k);
  out.setLayersTotal(model.layers_total);
  auto layers = out.initMoeLayers(static_cast<unsigned>(model.moe_layers.size()));
  for (unsigned i = 0; i < layers.size(); ++i) layers.set(i, model.moe_layers[i].value);
  out.setRouting(static_cast<std::uint8_t>(model.routing.method));
  out.setActivation(static_cast<std::uint8_t>(model.activation.kind));
  out.setStored(static_cast<std::uint8_t>(model.format.stored));
  out.setFingerprint(model.fingerprint);
}

expected<model_description> read_model(schema::Snapshot::Model::Reader in) {
  model_description model;
  model.model_type = in.getModelType().cStr();
  model.hidden_size = in.getHiddenSize();
  model.intermediate_size = in.getIntermediateSize();
  model.experts = in.getExperts();
  model.top_k = in.getTopK();
  model.layers_total = in.getLayersTotal();
  model.routing.method = static_cast<routing_method>(in.getRouting());
  model.activation.kind = static_cast<activation_kind>(in.getActivation());
  model.format.stored = static_cast<dtype>(in.getStored());
  model.fingerprint = in.getFingerprint();
  if (in.getMoeLayers().size() > k_layers_max) return refuse("snapshot: too many layers");
  for (const std::uint16_t l : in.getMoeLayers()) {
    if (!model.moe_layers.empty() && l <= model.moe_layers.back().value)
      return refuse("snapshot: layers must rise");
    model.moe_layers.push_back(layer_id{l});
  }
  if (model.hidden_size == 0 || model.hidden_size > k_hidden_max)
    return refuse("snapshot: hidden size");
  if (model.intermediate_size == 0 || model.intermediate_size > k_intermediate_max) {
    return refuse("snapshot: intermediate size");
  }
  if (in.getStored() > static_cast<std::uint8_t>(dtype::bf16))
    return refuse("snapshot: stored dtype");
  return model;
}

expected<routing_snapshot> read(schema::Snapshot::Reader in) {
  routing_snapshot s;
  s.epoch = epoch_number{in.getEpoch()};
  s.generation = generation_number{in.getGeneration()};
  s.plan = plan_hash{in.getPlanHash()};
  s.resolution_id = in.getResolutionId();
  s.exact_allowed = in.getExactAllowed();
  s.carrier = in.getCarrier().cStr();
  s.backend = in.getBackend().cStr();

  auto model = read_model(in.getModel());
  if (!model) return unexpected_error(model.error());
  s.model = std::move(*model);
  s.routing = {.rule = s.model.routing, .experts = s.model.experts, .top_k = s.model.top_k};
  if (auto ok = kernels::check_routing(s.routing); !ok) return unexpected_error(ok.error());

  const auto bytes = from_data(in.getPlacement());
  auto placed = eplb::placement::from_canonical(bytes);
  if (!placed) return unexpected_error(placed.error());
  s.placement = std::move(*placed);
  if (s.placement.experts() != s.model.experts)
    return refuse("snapshot: experts of placement and model differ");
  if (s.placement.layers().size() != s.model.moe_layers.size())
    return refuse("snapshot: layers of placement and model differ");
  for (std::size_t l = 0; l < s.model.moe_layers.size(); ++l) {
    if (s.placement.layers()[l].layer != s.model.moe_layers[l])
      return refuse("snapshot: layers of placement and model differ");
  }

  if (in.getShares().size() != s.placement.layers().size())
    return refuse("snapshot: layers of the shares");
  std::vector<std::vector<std::uint32_t>> units;
  for (const auto layer : in.getShares()) {
    const auto list = layer.getUnits();
    if (list.size() != s.placement.dense_slots()) return refuse("snapshot: slots of the shares");
    auto& row = units.emplace_back();
    for (const std::uint32_t share : list) row.push_back(share);
  }
  auto split = eplb::shares::from_units(s.placement, std::move(units),
                                        {epoch_number{in.getSharesEpoch()}, in.getSharesCounter()});
  if (!split) return unexpected_error(split.error());
  s.shares = std::move(*split);

  if (in.getWorkers().size() != s.placement.spans().size())
    return refuse("snapshot: number of workers");
  for (const auto w : in.getWorkers()) {
    if (w.getAddress().size() > k_address_bytes_max)
      return refuse("snapshot: a worker's address is too long");
    s.workers.push_back({.worker = worker_id{w.getWorker()},
                         .incarnation = incarnation_id{w.getIncarnation()},
                         .live = w.getLive(),
                         .address = from_data(w.getAddress())});
    if (s.workers.back().worker != s.placement.spans()[s.workers.size() - 1].worker) {
      return refuse("snapshot: workers of placement and addresses differ");
    }
  }
  return s;
}

}  // namespace

bool is_newer(const routing_snapshot& a, const routing_snapshot& b) noexcept {
  return std::tuple(a.generation, a.shares.revision()) >
         std::tuple(b.generation, b.shares.revision());
}

std::vector<std::byte> to_bytes(const routing_snapshot& s) {
  capnp::MallocMessageBuilder message;
  auto out = message.initRoot<schema::Snapshot>();
  out.setEpoch(s.epoch.value);
  out.setGeneration(s.generation.value);
  out.setPlanHash(s.plan.value);
  out.setResolutionId(s.resolution_id);
  out.setSharesEpoch(s.shares.revision().epoch.value);
  out.setSharesCounter(s.shares.revision().counter);
  write_model(out.initModel(), s.model);
  out.setPlacement(as_data(s.placement.canonical_bytes()));
  auto shares = out.initShares(static_cast<unsigned>(s.placement.layers().size()));
  for (unsigned l = 0; l < shares.size(); ++l) {
    const auto units = s.shares.units(l);
    shares[l].setUnits(kj::arrayPtr(units.data(), units.size()));
  }
  auto workers = out.initWorkers(static_cast<unsigned>(s.workers.size()));
  for (unsigned i = 0; i < workers.size(); ++i) {
    workers[i].setWorker(s.workers[i].worker.value);
    workers[i].setIncarnation(s.workers[i].incarnation.value);
    workers[i].setLive(s.workers[i].live);
    workers[i].setAddress(as_data(s.workers[i].address));
  }
  out.setExactAllowed(s.exact_allowed);
  out.setCarrier(s.carrier);
  out.setBackend(s.backend);
  const auto flat = capnp::messageToFlatArray(message);
  const auto chars = flat.asBytes();
  const auto* first = reinterpret_cast<const std::byte*>(chars.begin());
  return {first, first + chars.size()};
}

expected<routing_snapshot> snapshot_from_bytes(std::span<const std::byte> bytes) {
  if (bytes.size() < 16 || bytes.size() % sizeof(capnp::word) != 0 ||
      bytes.size() / sizeof(capnp::word) > k_snapshot_words_max) {
    return refuse("snapshot: length");
  }
  // The reader wants aligned words; the copy also makes sure nothing changes under it.
  auto words = kj::heapArray<capnp::word>(bytes.size() / sizeof(capnp::word));
  std::memcpy(words.begin(), bytes.data(), bytes.size());
  capnp::ReaderOptions limits;
  limits.traversalLimitInWords = 2 * words.size();
  limits.nestingLimit = 8;
  try {
    capnp::FlatArrayMessageReader message(words, limits);
    return read(message.getRoot<schema::Snapshot>());
  } catch (const kj::Exception&) {
    return refuse("snapshot: not a valid message");
  }
}

}  // namespace moetier::transport

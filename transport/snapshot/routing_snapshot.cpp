#include "transport/snapshot/routing_snapshot.hpp"

#include <cstring>
#include <tuple>

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/array.h>
#include <kj/exception.h>

#include "schemas/base/limits.hpp"
#include "schemas/snapshot.capnp.h"
#include "transport/snapshot/model_codec.hpp"

namespace moetier::transport {
namespace {

constexpr std::size_t k_snapshot_words_max = 8u << 20;  // 64 MiB, the placement of the largest tier
constexpr std::size_t k_adapters_listed_max = 64;
constexpr std::uint32_t k_adapter_max = (1u << 31) - 1;  // rows carry ids as i32

kj::ArrayPtr<const capnp::byte> as_data(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const capnp::byte*>(bytes.data()), bytes.size()};
}

std::vector<std::byte> from_data(capnp::Data::Reader data) {
  const auto* first = reinterpret_cast<const std::byte*>(data.begin());
  return {first, first + data.size()};
}

unexpected_error refuse(const char* what) { return fail(reason::frame_malformed, what); }

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
  auto tables = read_tables(in.getTables(), s.model);
  if (!tables) return unexpected_error(tables.error());
  s.tables = std::move(*tables);
  s.shared_experts = in.getSharedExperts();
  if (s.shared_experts != 0 && s.shared_experts != s.model.shared.count)
    return refuse("snapshot: shared experts");
  s.lora = in.getLora();
  if (in.getAdapters().size() > (s.lora ? k_adapters_listed_max : 0))
    return refuse("snapshot: adapters");
  for (const std::uint32_t adapter : in.getAdapters()) {
    if (adapter > k_adapter_max || (!s.adapters.empty() && adapter <= s.adapters.back()))
      return refuse("snapshot: adapters");
    s.adapters.push_back(adapter);
  }

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

bool routing_snapshot::operator==(const routing_snapshot& other) const {
  const auto all_but_tables = [](const routing_snapshot& s) {
    return std::tie(s.epoch, s.generation, s.plan, s.resolution_id, s.model, s.routing, s.placement,
                    s.shares, s.workers, s.exact_allowed, s.carrier, s.backend, s.shared_experts,
                    s.lora, s.adapters);
  };
  return all_but_tables(*this) == all_but_tables(other) && *tables == *other.tables;
}

routing_tables_ptr plain_tables(const model_description& model) {
  auto tables = std::make_shared<routing_tables>();
  tables->layers.resize(model.moe_layers.size());
  return tables;
}

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
  write_tables(out.initTables(static_cast<unsigned>(s.tables->layers.size())), *s.tables);
  out.setSharedExperts(s.shared_experts);
  out.setLora(s.lora);
  out.setAdapters(kj::arrayPtr(s.adapters.data(), s.adapters.size()));
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

#include "schemas/control/message_body.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include <capnp/message.h>
#include <kj/exception.h>

#include "schemas/base/assert.hpp"
#include "schemas/base/limits.hpp"
#include "schemas/control/message_fields.hpp"

namespace moetier::control {
namespace {

constexpr std::size_t k_held_max = 4;
constexpr int k_nesting_max = 8;

// --- one pair of functions per message, in the order of the schema ---

void put(messages::Hello::Builder b, const hello& v) {
  b.setProtocol(v.protocol);
  b.setName(text_of(v.name));
  b.setIncarnation(v.incarnation.value);
  b.setNode(v.node);
  b.setHighestEpoch(v.highest_epoch.value);
  b.setModelFingerprint(v.model_fingerprint);
  b.setCheckpointDigest(v.checkpoint_digest);
  b.setSlots(v.slots);
  b.setEnvironment(data_of(v.environment));
  b.setResolution(v.resolution);
  b.setCarrier(text_of(v.carrier));
  b.setAddress(data_of(v.address));
  b.setHeartbeatInterval(v.heartbeat_interval_ns);
  b.setHeartbeatTimeout(v.heartbeat_timeout_ns);
  auto held = b.initHeld(static_cast<unsigned>(v.held.size()));
  for (unsigned i = 0; i < held.size(); ++i) {
    held[i].setGeneration(v.held[i].generation.value);
    held[i].setPlanHash(v.held[i].plan.value);
    held[i].setState(static_cast<messages::GenerationState>(v.held[i].state));
  }
  put_numbers(v.held_checksums, [&](unsigned n) { return b.initHeldChecksums(n); });
  b.setHeldSharedDigest(v.held_shared_digest);
  auto sources = b.initSources(static_cast<unsigned>(v.sources.size()));
  for (unsigned i = 0; i < sources.size(); ++i) put(sources[i], v.sources[i]);
  auto adapters = b.initAdapters(static_cast<unsigned>(v.adapters.size()));
  for (unsigned i = 0; i < adapters.size(); ++i) put(adapters[i], v.adapters[i]);
}

hello take(messages::Hello::Reader r, field_check& check) {
  hello v;
  v.protocol = r.getProtocol();
  v.name = take_text(r.getName(), k_worker_name_bytes_max, "hello.name", check);
  check.require(!v.name.empty(), "hello.name");
  v.incarnation = incarnation_id(r.getIncarnation());
  v.node = r.getNode();
  v.highest_epoch = epoch_number(r.getHighestEpoch());
  v.model_fingerprint = r.getModelFingerprint();
  v.checkpoint_digest = r.getCheckpointDigest();
  v.slots = r.getSlots();
  check.require(v.slots <= k_slots_per_worker_max, "hello.slots");
  v.environment =
      take_data(r.getEnvironment(), k_environment_bytes_max, "hello.environment", check);
  v.resolution = r.getResolution();
  v.carrier = take_text(r.getCarrier(), k_worker_name_bytes_max, "hello.carrier", check);
  v.address = take_data(r.getAddress(), k_address_bytes_max, "hello.address", check);
  v.heartbeat_interval_ns = r.getHeartbeatInterval();
  v.heartbeat_timeout_ns = r.getHeartbeatTimeout();
  const auto held = r.getHeld();
  if (check.require(held.size() <= k_held_max, "hello.held")) {
    for (const auto h : held) {
      const auto state = static_cast<std::uint16_t>(h.getState());
      check.require(state <= static_cast<std::uint16_t>(generation_state::draining),
                    "hello.held.state");
      v.held.push_back({generation_number(h.getGeneration()), plan_hash(h.getPlanHash()),
                        static_cast<generation_state>(state)});
    }
  }
  v.held_checksums = take_numbers(r.getHeldChecksums(), "hello.heldChecksums", check);
  v.held_shared_digest = r.getHeldSharedDigest();
  const auto sources = r.getSources();
  if (check.require(sources.size() <= k_sources_listed_max, "hello.sources")) {
    for (const auto s : sources) v.sources.push_back(take(s, check));
  }
  const auto adapters = r.getAdapters();
  if (check.require(adapters.size() <= k_adapters_max, "hello.adapters")) {
    for (const auto a : adapters) v.adapters.push_back(take(a, check));
  }
  return v;
}

void put(messages::Welcome::Builder b, const welcome& v) {
  b.setWorker(v.worker.value);
  b.setIncarnation(v.incarnation.value);
  b.setEpoch(v.epoch.value);
  b.setFirstSlot(v.first_slot);
  b.setSlots(v.slots);
}

welcome take(messages::Welcome::Reader r, field_check& check) {
  welcome v{worker_id(r.getWorker()), incarnation_id(r.getIncarnation()),
            epoch_number(r.getEpoch()), r.getFirstSlot(), r.getSlots()};
  check.require(v.slots <= k_slots_per_worker_max, "welcome.slots");
  return v;
}

void put(messages::Refused::Builder b, const refused& v) {
  b.setCause(static_cast<messages::Refused::Cause>(v.cause));
  b.setEpoch(v.epoch.value);
  b.setGeneration(v.generation.value);
  b.setIncarnation(v.incarnation.value);
  b.setText(text_of(free_text(v.text)));
}

refused take(messages::Refused::Reader r, field_check& check) {
  const auto cause = static_cast<std::uint16_t>(r.getCause());
  check.require(cause <= static_cast<std::uint16_t>(refused::why::prepare_failed), "refused.cause");
  return {static_cast<refused::why>(cause), epoch_number(r.getEpoch()),
          generation_number(r.getGeneration()), incarnation_id(r.getIncarnation()),
          take_text(r.getText(), k_text_bytes_max, "refused.text", check)};
}

void put(messages::Prepare::Builder b, const prepare& v) {
  put_plan(b, v);
  b.setPlacement(data_of(v.placement));
  b.setResolution(data_of(v.resolution));
  b.setSharedExperts(v.shared_experts);
}

prepare take(messages::Prepare::Reader r, field_check& check) {
  auto v = take_plan<prepare>(r);
  const auto bytes = r.getPlacement();
  v.placement = take_data(bytes, bytes.size(), "prepare.placement", check);
  v.resolution = take_data(r.getResolution(), k_resolution_bytes_max, "prepare.resolution", check);
  v.shared_experts = r.getSharedExperts();
  check.require(v.shared_experts <= k_top_k_max, "prepare.sharedExperts");
  return v;
}

void put(messages::Prepared::Builder b, const prepared& v) {
  put_plan(b, v);
  put_numbers(v.checksums, [&](unsigned n) { return b.initChecksums(n); });
  b.setSharedDigest(v.shared_digest);
}

prepared take(messages::Prepared::Reader r, field_check& check) {
  auto v = take_plan<prepared>(r);
  v.checksums = take_numbers(r.getChecksums(), "prepared.checksums", check);
  v.shared_digest = r.getSharedDigest();
  return v;
}

void put(messages::AbortPlan::Builder b, const abort_plan& v) { put_plan(b, v); }
abort_plan take(messages::AbortPlan::Reader r, field_check&) { return take_plan<abort_plan>(r); }

void put(messages::Commit::Builder b, const commit& v) { put_plan(b, v); }
commit take(messages::Commit::Reader r, field_check&) { return take_plan<commit>(r); }

void put(messages::Committed::Builder b, const committed& v) { put_plan(b, v); }
committed take(messages::Committed::Reader r, field_check&) { return take_plan<committed>(r); }

template <class Builder, class Value>
void put_release(Builder b, const Value& v) {
  b.setEpoch(v.epoch.value);
  b.setGeneration(v.generation.value);
  b.setIncarnation(v.incarnation.value);
}

template <class Value, class Reader>
Value take_release(Reader r) {
  return {epoch_number(r.getEpoch()), generation_number(r.getGeneration()),
          incarnation_id(r.getIncarnation())};
}

void put(messages::Release::Builder b, const release& v) { put_release(b, v); }
release take(messages::Release::Reader r, field_check&) { return take_release<release>(r); }

void put(messages::Released::Builder b, const released& v) { put_release(b, v); }
released take(messages::Released::Reader r, field_check&) { return take_release<released>(r); }

void put(messages::AttachSource::Builder b, const attach_source& v) {
  b.setEpoch(v.epoch.value);
  put(b.initSource(), v.source);
}

attach_source take(messages::AttachSource::Reader r, field_check& check) {
  return {epoch_number(r.getEpoch()), take(r.getSource(), check)};
}

void put(messages::SourceAttached::Builder b, const source_attached& v) {
  b.setWorkerIncarnation(v.worker_incarnation.value);
  b.setSource(v.source.value);
  b.setIncarnation(v.incarnation.value);
  b.setAccepted(v.accepted);
  b.setText(text_of(free_text(v.text)));
  b.setGone(v.gone);
}

source_attached take(messages::SourceAttached::Reader r, field_check& check) {
  return {incarnation_id(r.getWorkerIncarnation()),
          source_id(r.getSource()),
          incarnation_id(r.getIncarnation()),
          r.getAccepted(),
          take_text(r.getText(), k_text_bytes_max, "sourceAttached.text", check),
          r.getGone()};
}

void put(messages::DetachSource::Builder b, const detach_source& v) {
  b.setEpoch(v.epoch.value);
  b.setSource(v.source.value);
  b.setIncarnation(v.incarnation.value);
}

detach_source take(messages::DetachSource::Reader r, field_check&) {
  return {epoch_number(r.getEpoch()), source_id(r.getSource()), incarnation_id(r.getIncarnation())};
}

void put(messages::Heartbeat::Builder b, const heartbeat& v) {
  b.setIncarnation(v.incarnation.value);
  b.setSequence(v.sequence);
  b.setEpoch(v.epoch.value);
  b.setGeneration(v.generation.value);
  b.setEngineTick(v.engine_tick);
  b.setTicketsEnded(v.tickets_ended);
  b.setOldestBatch(v.oldest_batch_ns);
  b.setDevice(static_cast<std::uint8_t>(v.device));
}

heartbeat take(messages::Heartbeat::Reader r, field_check& check) {
  heartbeat v;
  v.incarnation = incarnation_id(r.getIncarnation());
  v.sequence = r.getSequence();
  v.epoch = epoch_number(r.getEpoch());
  v.generation = generation_number(r.getGeneration());
  v.engine_tick = r.getEngineTick();
  v.tickets_ended = r.getTicketsEnded();
  v.oldest_batch_ns = r.getOldestBatch();
  check.require(r.getDevice() <= static_cast<std::uint8_t>(device_state::lost), "heartbeat.device");
  v.device = static_cast<device_state>(r.getDevice());
  return v;
}

void put(messages::HeartbeatAnswer::Builder b, const heartbeat_answer& v) {
  b.setSequence(v.sequence);
  b.setEpoch(v.epoch.value);
  b.setGeneration(v.generation.value);
  b.setLog(static_cast<std::uint8_t>(v.log));
}

heartbeat_answer take(messages::HeartbeatAnswer::Reader r, field_check& check) {
  check.require(r.getLog() <= static_cast<std::uint8_t>(log_threshold::off), "heartbeatAnswer.log");
  return {r.getSequence(), epoch_number(r.getEpoch()), generation_number(r.getGeneration()),
          static_cast<log_threshold>(r.getLog())};
}

void put(messages::LoadReport::Builder b, const load_report& v) {
  b.setIncarnation(v.incarnation.value);
  b.setGeneration(v.generation.value);
  b.setPlanHash(v.plan.value);
  b.setRowsTotal(v.rows_total);
  b.setCallsTotal(v.calls_total);
  put_numbers(v.counts, [&](unsigned n) { return b.initCounts(n); });
}

load_report take(messages::LoadReport::Reader r, field_check& check) {
  load_report v;
  v.incarnation = incarnation_id(r.getIncarnation());
  v.generation = generation_number(r.getGeneration());
  v.plan = plan_hash(r.getPlanHash());
  v.rows_total = r.getRowsTotal();
  v.calls_total = r.getCallsTotal();
  v.counts = take_numbers(r.getCounts(), "loadReport.counts", check);
  return v;
}

void put(messages::Leaving::Builder b, const leaving& v) { b.setIncarnation(v.incarnation.value); }
leaving take(messages::Leaving::Reader r, field_check&) {
  return {incarnation_id(r.getIncarnation())};
}

void put(messages::LoadAdapter::Builder b, const load_adapter& v) {
  b.setEpoch(v.epoch.value);
  put(b.initAdapter(), v.adapter);
}
load_adapter take(messages::LoadAdapter::Reader r, field_check& check) {
  return {epoch_number(r.getEpoch()), take(r.getAdapter(), check)};
}

void put(messages::DropAdapter::Builder b, const drop_adapter& v) {
  b.setEpoch(v.epoch.value);
  b.setAdapter(v.adapter);
}
drop_adapter take(messages::DropAdapter::Reader r, field_check&) {
  return {epoch_number(r.getEpoch()), r.getAdapter()};
}

void put(messages::AdapterState::Builder b, const adapter_state& v) {
  b.setIncarnation(v.incarnation.value);
  b.setAdapter(v.adapter);
  b.setLoaded(v.loaded);
  b.setText(text_of(free_text(v.text)));
}
adapter_state take(messages::AdapterState::Reader r, field_check& check) {
  return {incarnation_id(r.getIncarnation()), r.getAdapter(), r.getLoaded(),
          take_text(r.getText(), k_text_bytes_max, "adapterState.text", check)};
}

void put(messages::Probe::Builder b, const probe& v) {
  b.setEpoch(v.epoch.value);
  b.setIncarnation(v.incarnation.value);
}
probe take(messages::Probe::Reader r, field_check&) {
  return {epoch_number(r.getEpoch()), incarnation_id(r.getIncarnation())};
}

// --- kinds: a message's place in the variant is its kind less one ---

template <class Value>
struct schema_of;
#define MOETIER_MESSAGE(value, schema) \
  template <>                          \
  struct schema_of<value> {            \
    using type = messages::schema;     \
  }
MOETIER_MESSAGE(hello, Hello);
MOETIER_MESSAGE(welcome, Welcome);
MOETIER_MESSAGE(refused, Refused);
MOETIER_MESSAGE(prepare, Prepare);
MOETIER_MESSAGE(prepared, Prepared);
MOETIER_MESSAGE(abort_plan, AbortPlan);
MOETIER_MESSAGE(commit, Commit);
MOETIER_MESSAGE(committed, Committed);
MOETIER_MESSAGE(release, Release);
MOETIER_MESSAGE(released, Released);
MOETIER_MESSAGE(attach_source, AttachSource);
MOETIER_MESSAGE(source_attached, SourceAttached);
MOETIER_MESSAGE(detach_source, DetachSource);
MOETIER_MESSAGE(heartbeat, Heartbeat);
MOETIER_MESSAGE(heartbeat_answer, HeartbeatAnswer);
MOETIER_MESSAGE(load_report, LoadReport);
MOETIER_MESSAGE(leaving, Leaving);
MOETIER_MESSAGE(load_adapter, LoadAdapter);
MOETIER_MESSAGE(drop_adapter, DropAdapter);
MOETIER_MESSAGE(adapter_state, AdapterState);
MOETIER_MESSAGE(probe, Probe);
#undef MOETIER_MESSAGE

using take_function = message (*)(capnp::MessageReader&, field_check&);

template <class Value>
message take_root(capnp::MessageReader& reader, field_check& check) {
  return take(reader.getRoot<typename schema_of<Value>::type>(), check);
}

template <class... Values>
take_function taker_of(std::uint16_t kind, const std::variant<Values...>*) {
  static constexpr take_function k_takers[] = {&take_root<Values>...};
  return kind >= 1 && kind <= sizeof...(Values) ? k_takers[kind - 1] : nullptr;
}

std::vector<std::uint8_t> bytes_of(kj::ArrayPtr<const capnp::word> segment) {
  const auto bytes = segment.asBytes();
  return {bytes.begin(), bytes.end()};
}

}  // namespace

std::vector<std::uint8_t> to_segment(const message& m) {
  capnp::MallocMessageBuilder builder;
  std::visit(
      [&](const auto& v) {
        using schema = typename schema_of<std::decay_t<decltype(v)>>::type;
        put(builder.initRoot<schema>(), v);
      },
      m);
  const auto segments = builder.getSegmentsForOutput();
  if (segments.size() == 1) return bytes_of(segments[0]);
  // The builder grew by further segments: one more copy, into one of the right size.
  std::size_t words = 1;
  for (const auto& segment : segments) words += segment.size();
  capnp::MallocMessageBuilder flat(static_cast<unsigned>(words),
                                   capnp::AllocationStrategy::FIXED_SIZE);
  flat.setRoot(builder.getRoot<capnp::AnyPointer>().asReader());
  const auto flat_segments = flat.getSegmentsForOutput();
  MOETIER_ASSERT(flat_segments.size() == 1);
  return bytes_of(flat_segments[0]);
}

expected<message> from_segment(std::uint16_t kind, std::span<const std::uint8_t> segment) {
  const take_function take_message = taker_of(kind, static_cast<const message*>(nullptr));
  if (take_message == nullptr) return fail(reason::frame_malformed, "unknown kind");
  if (segment.empty() || segment.size() % sizeof(capnp::word) != 0) {
    return fail(reason::frame_malformed, "length");
  }
  const kj::ArrayPtr<const capnp::word> words(reinterpret_cast<const capnp::word*>(segment.data()),
                                              segment.size() / sizeof(capnp::word));
  const kj::ArrayPtr<const capnp::word> segments[] = {words};
  capnp::ReaderOptions limits;
  limits.traversalLimitInWords = words.size() + 1;  // an honest message is walked once
  limits.nestingLimit = k_nesting_max;
  try {
    capnp::SegmentArrayMessageReader reader(kj::arrayPtr(segments, 1), limits);
    field_check check;
    message m = take_message(reader, check);
    if (check.broken() != nullptr) return fail(reason::frame_malformed, check.broken());
    return m;
  } catch (const kj::Exception&) {
    return fail(reason::frame_malformed, "encoding");  // KJ's text stays inside
  }
}

}  // namespace moetier::control

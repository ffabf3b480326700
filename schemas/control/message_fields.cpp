#include "schemas/control/message_fields.hpp"

#include <algorithm>
#include <string_view>

#include "schemas/base/limits.hpp"

namespace moetier::control {
namespace {

constexpr std::size_t k_slots_listed_max = std::size_t{k_layers_max} * k_slots_per_worker_max;

bool printable(std::string_view s) {
  return std::all_of(s.begin(), s.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

std::string free_text(std::string s) {
  s.resize(std::min(s.size(), k_text_bytes_max));
  for (char& c : s) {
    if (c < ' ' || c > '~') c = '?';
  }
  return s;
}

std::string take_text(capnp::Text::Reader r, std::size_t bytes_max, const char* field,
                      field_check& check) {
  const std::string_view s(r.begin(), r.size());
  if (!check.require(s.size() <= bytes_max && printable(s), field)) return {};
  return std::string(s);
}

std::vector<std::uint8_t> take_data(capnp::Data::Reader r, std::size_t bytes_max, const char* field,
                                    field_check& check) {
  if (!check.require(r.size() <= bytes_max, field)) return {};
  return {r.begin(), r.end()};
}

std::vector<std::uint64_t> take_numbers(capnp::List<std::uint64_t>::Reader r, const char* field,
                                        field_check& check) {
  std::vector<std::uint64_t> v;
  if (!check.require(r.size() <= k_slots_listed_max, field)) return v;
  v.reserve(r.size());
  for (const std::uint64_t n : r) v.push_back(n);
  return v;
}

void put(messages::SourceAttachment::Builder b, const source_attachment& v) {
  b.setSource(v.source.value);
  b.setSession(v.session.value);
  b.setIncarnation(v.incarnation.value);
  b.setRowsMax(v.rows_max);
  b.setHiddenStride(v.hidden_stride);
  b.setTopK(v.top_k);
  b.setReturnStride(v.return_stride);
  b.setReturnRowsMax(v.return_rows_max);
  b.setBanks(v.banks);
  b.setWeight(v.weight);
  b.setDeadlineClass(static_cast<std::uint8_t>(v.urgency));
  b.setTokensMax(v.terms.tokens_max);
  b.setMicroBatches(static_cast<std::uint8_t>(v.terms.micro_batches));
  b.setSessionTopK(static_cast<std::uint16_t>(v.terms.top_k));
  b.setSharedExperts(v.terms.shared_experts);
  b.setTenant(text_of(v.tenant));
  b.setAddress(data_of(v.address));
}

source_attachment take(messages::SourceAttachment::Reader r, field_check& check) {
  source_attachment v;
  v.source = source_id(r.getSource());
  v.session = session_id(r.getSession());
  v.incarnation = incarnation_id(r.getIncarnation());
  v.rows_max = r.getRowsMax();
  v.hidden_stride = r.getHiddenStride();
  v.top_k = r.getTopK();
  v.return_stride = r.getReturnStride();
  v.return_rows_max = r.getReturnRowsMax();
  v.banks = r.getBanks();
  v.tenant = take_text(r.getTenant(), k_worker_name_bytes_max, "source.tenant", check);
  v.address = take_data(r.getAddress(), k_address_bytes_max, "source.address", check);
  v.weight = r.getWeight();
  check.require(v.weight >= 1 && v.weight <= k_tenant_weight_max, "source.weight");
  if (check.require(r.getDeadlineClass() < k_deadline_classes, "source.deadlineClass"))
    v.urgency = static_cast<deadline_class>(r.getDeadlineClass());
  v.terms = {.tokens_max = r.getTokensMax(),
             .micro_batches = r.getMicroBatches(),
             .top_k = r.getSessionTopK(),
             .shared_experts = r.getSharedExperts()};
  check.require(v.terms.tokens_max >= 1, "source.tokensMax");
  check.require(v.terms.micro_batches >= 1 && v.terms.micro_batches <= k_micro_batches_max,
                "source.microBatches");
  check.require(v.terms.top_k >= 1 && v.terms.top_k <= k_top_k_max, "source.sessionTopK");
  check.require(v.session.value != 0, "source.session");
  check.require(v.top_k <= k_top_k_max, "source.topK");
  return v;
}

void put(messages::HeldAdapter::Builder b, const held_adapter& v) {
  b.setAdapter(v.adapter);
  b.setName(text_of(v.name));
  b.setPath(text_of(v.path));
}

held_adapter take(messages::HeldAdapter::Reader r, field_check& check) {
  held_adapter v{r.getAdapter(),
                 take_text(r.getName(), k_worker_name_bytes_max, "adapter.name", check),
                 take_text(r.getPath(), k_adapter_path_bytes_max, "adapter.path", check)};
  check.require(v.adapter < k_adapter_ids_max, "adapter.adapter");
  check.require(!v.name.empty(), "adapter.name");
  check.require(v.path.starts_with('/'), "adapter.path");
  return v;
}

}  // namespace moetier::control

#pragma once
// Fields that many control messages share, as Cap'n Proto and back. Readers are hostile: a field
// that breaks a rule is noted by name and read as empty. For message_body.cpp alone.
// Thread: any; a field_check has one owner.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "schemas/control.capnp.h"
#include "schemas/control/messages.hpp"

namespace moetier::control {

inline constexpr std::size_t k_text_bytes_max = 1024;

// Remembers the first field that broke a rule; reading goes on with an empty value.
class field_check final {
 public:
  bool require(bool fact, const char* field) {
    if (!fact && broken_ == nullptr) broken_ = field;
    return fact;
  }
  const char* broken() const noexcept { return broken_; }

 private:
  const char* broken_ = nullptr;
};

inline capnp::Text::Reader text_of(const std::string& s) { return {s.c_str(), s.size()}; }
inline capnp::Data::Reader data_of(const std::vector<std::uint8_t>& v) {
  return {v.data(), v.size()};
}

// Free text is for people: what does not fit or print is cut or masked here, so that no sentence
// can make a message unreadable.
std::string free_text(std::string s);

std::string take_text(capnp::Text::Reader r, std::size_t bytes_max, const char* field,
                      field_check& check);
std::vector<std::uint8_t> take_data(capnp::Data::Reader r, std::size_t bytes_max, const char* field,
                                    field_check& check);

template <class InitList>
void put_numbers(const std::vector<std::uint64_t>& v, InitList init) {
  auto list = init(static_cast<unsigned>(v.size()));
  for (unsigned i = 0; i < list.size(); ++i) list.set(i, v[i]);
}
std::vector<std::uint64_t> take_numbers(capnp::List<std::uint64_t>::Reader r, const char* field,
                                        field_check& check);

// epoch, generation, plan hash and incarnation: what every message about a plan carries.
template <class Builder, class Value>
void put_plan(Builder b, const Value& v) {
  b.setEpoch(v.epoch.value);
  b.setGeneration(v.generation.value);
  b.setPlanHash(v.plan.value);
  b.setIncarnation(v.incarnation.value);
}

template <class Value, class Reader>
Value take_plan(Reader r) {
  Value v;
  v.epoch = epoch_number(r.getEpoch());
  v.generation = generation_number(r.getGeneration());
  v.plan = plan_hash(r.getPlanHash());
  v.incarnation = incarnation_id(r.getIncarnation());
  return v;
}

void put(messages::SourceAttachment::Builder b, const source_attachment& v);
source_attachment take(messages::SourceAttachment::Reader r, field_check& check);

void put(messages::HeldAdapter::Builder b, const held_adapter& v);
held_adapter take(messages::HeldAdapter::Reader r, field_check& check);

}  // namespace moetier::control

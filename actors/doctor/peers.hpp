#pragma once
// Other machines of the tier, by address: another `moetier doctor --answer`, with which rows are
// exchanged on the tier's carrier, or a running tier's RPC port, which is asked how it does.
// Thread: any (values, pure functions); probe and answerer: owner.

#include <functional>
#include <string>

#include "actors/config/endpoint.hpp"
#include "actors/doctor/carriers.hpp"
#include "actors/doctor/finding.hpp"
#include "actors/doctor/row_exchange.hpp"

namespace moetier::doctor {

struct peer_facts {
  std::string address;
  std::string refusal{};       // why nobody answers; empty = somebody does
  bool is_doctor = false;      // else a tier
  bool same_host = false;      // of doctors alone
  duration_ns words_p50 = 0;   // a small message there and back: TCP, or RPC to a tier
  std::string rows_refusal{};  // why rows do not cross
  row_figures rows{};
};

peer_facts probe_peer(const config::endpoint& at, const carrier_wish& carrier, duration_ns limit);
findings judge_peer(const peer_facts& f);

// Answers doctors, one after the other, until `stopping`; `listening` hears the address first.
expected<void> answer_peers(const config::endpoint& at, const carrier_wish& carrier,
                            const std::function<void(const config::endpoint&)>& listening,
                            const std::function<bool()>& stopping);

}  // namespace moetier::doctor

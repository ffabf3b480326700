// libmoetier on a tier inside the process, for tests of the Python package: "tier:1" is the tier,
// toy_worker_acts() tells a worker how to behave, toy_coordinator_away() the coordinator,
// toy_coordinator_lost() is an event of the link. One tier per process.

#include "tests/transport/client/toy_service.hpp"

namespace {

moetier::client::toy::toy_tier& the_tier() {
  static moetier::client::toy::toy_tier tier = [] {
    moetier::client::toy::toy_tier made;
    made.driver_library = MOETIER_FAKE_DRIVER;
    return made;
  }();
  return tier;
}

}  // namespace

extern "C" {

MOETIER_API void toy_worker_acts(std::uint16_t worker, std::uint32_t how) {
  the_tier().carrier->workers[worker].acts = static_cast<moetier::client::toy::behaviour>(how);
}

MOETIER_API void toy_coordinator_away(std::uint32_t away) {
  the_tier().refuse_close.reset();
  if (away != 0) {
    the_tier().refuse_close = moetier::make_error(moetier::reason::coordinator_unreached, "away");
  }
}

MOETIER_API void toy_coordinator_lost() {
  the_tier().sink(moetier::client::link_event::coordinator_lost, moetier::session_id{});
}

moetier_status moetier_service_open(const moetier_service_options* options,
                                    moetier_service** service) {
  return moetier::abi::guarded([&] {
    return moetier::abi::open_service(options, service, moetier::client::toy::world_of(the_tier()));
  });
}
}

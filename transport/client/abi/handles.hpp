#pragma once
// What is behind the opaque handles of moetier.h. Thread: any.

#include <memory>

#include "transport/client/abi/service.hpp"
#include "transport/client/abi/session.hpp"

struct moetier_service {
  std::unique_ptr<moetier::abi::service> made;
};

struct moetier_session {
  std::unique_ptr<moetier::abi::session> made;
};

namespace moetier::abi {

// moetier_service_open in a given world.
expected<void> open_service(const moetier_service_options* options, moetier_service** service,
                            service_world world);

}  // namespace moetier::abi

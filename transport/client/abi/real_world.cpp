#include "transport/client/abi/handles.hpp"
#include "transport/client/abi/last_error.hpp"

// moetier_service_open as the library has it: Cap'n Proto RPC, and carriers by name. In a file of
// its own, so that a program with another world need not link this one.

moetier_status moetier_service_open(const moetier_service_options* options,
                                    moetier_service** service) {
  using namespace moetier;
  return abi::guarded([&] {
    return abi::open_service(
        options, service,
        {.connect =
             [](std::string_view address, duration_ns limit,
                const std::optional<client::tls_wish>& tls) {
               return client::connect(address, limit,
                                      {.first = client::first_contact::patient, .tls = tls});
             },
         .open_carrier = [](std::string_view name) { return transport::open_carrier(name, {}); }});
  });
}

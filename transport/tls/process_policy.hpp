#pragma once
// What OpenSSL does by default in this whole process, for a library of ours that makes its contexts
// by itself and leaves no choice: TLS 1.3 and nothing older. Programs of ours call it before any
// thread is there; the client library never does, since its process is somebody else's.
// Thread: main, before others.

namespace moetier::tls {

// From here on every context starts at TLS 1.3, whatever OpenSSL's configuration file says, which
// is not read any more. False: OpenSSL did not take it.
bool demand_tls_1_3() noexcept;

}  // namespace moetier::tls

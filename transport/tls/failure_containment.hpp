#pragma once
// Keeps one broken TLS connection from breaking others in a library that shares threads among them
// and does not clear OpenSSL's error queue: the queue is a thread's, and what a stranger's failed
// handshake leaves in it makes the next healthy connection of that thread look broken. CAF's module
// is such a library: without this, anybody who reaches the actor link's port could cut workers off.
// Programs of ours alone; our own sessions clear the queue themselves. Thread: main, before others.

namespace moetier::tls {

// For every connection that is made from here on.
void contain_failures() noexcept;

}  // namespace moetier::tls

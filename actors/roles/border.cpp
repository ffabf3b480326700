#include "actors/roles/border.hpp"

#include "actors/config/word_list.hpp"

namespace moetier::roles {
namespace {

using coordinator::rpc_notice;

// Whole sentences stay here: the client may have read less, under the same request.
void write(event_log& log, const rpc_notice& notice) {
  if (notice.what == rpc_notice::kind::handshake_refused) {
    log.warn("handshake_refused", {{"peer", notice.peer}, {"why", notice.handshake}});
    return;
  }
  // A watch of a session that its client closed: the usual end of both.
  if (notice.call == std::string_view("watch") && notice.why.why == reason::session_closed) return;
  log.info("call_refused", {{"call", notice.call},
                            {"request", notice.request},
                            {"peer", notice.peer},
                            {"reason", reason_name(notice.why.why)},
                            {"why", notice.why.text}});
}

}  // namespace

expected<coordinator::rpc_options> rpc_options_from(const config::settings& s,
                                                    const link_security& security, event_log& log) {
  auto socket = admin_socket_path(s, log);
  if (!socket) return tl::unexpected(socket.error());
  return coordinator::rpc_options{
      .credential = security.rpc,
      .insecure = config::has_word(s.security.insecure, "rpc"),
      .administrators = config::words_of(s.security.administrators),
      .admin_socket = std::move(*socket),
      .notice = [&log](const rpc_notice& notice) { write(log, notice); }};
}

http::border_figures border_figures_of(const coordinator::rpc_counters& c,
                                       const link_security& security) {
  http::border_figures f;
  f.connections = c.connections_open;
  for (std::size_t i = 1; i < tls::k_refusals; ++i) {
    f.handshakes_refused.emplace_back(tls::name_of(static_cast<tls::refusal>(i)),
                                      c.handshakes_refused[i]);
  }
  f.connections_ended = {{"no_room", c.connections_refused}, {"yielded", c.connections_yielded},
                         {"late", c.connections_late},       {"silent", c.connections_silent},
                         {"malformed", c.frames_malformed},  {"overrun", c.connections_overrun}};
  f.calls = c.calls_total;
  f.calls_refused = c.calls_refused;
  f.calls_denied = c.calls_denied;
  const auto left = [](const tls::credential& own) {
    return static_cast<double>(own.not_after_s() - tls::unix_now_s());
  };
  if (security.rpc != nullptr) f.certificates_left_s.emplace_back("rpc", left(*security.rpc));
  if (security.control != nullptr) {
    f.certificates_left_s.emplace_back("control", left(*security.control));
  }
  return f;
}

}  // namespace moetier::roles

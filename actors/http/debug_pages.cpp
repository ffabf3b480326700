#include "actors/http/debug_pages.hpp"

#include <fmt/core.h>

namespace moetier::http {

page debug_page(std::string_view name, std::function<expected<std::string>()> document) {
  return {.path = fmt::format("/debug/{}", name),
          .answer = [document = std::move(document)]() -> response {
            auto text = document();
            if (!text) return {503, "text/plain; charset=utf-8", text.error().text + "\n"};
            return {200, "application/json", std::move(*text)};
          },
          .private_to_host = true};
}

}  // namespace moetier::http

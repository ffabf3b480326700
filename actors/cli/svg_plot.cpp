#include "actors/cli/svg_plot.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

namespace moetier::cli {
namespace {

constexpr const char* k_colours[] = {"#b2182b", "#2166ac", "#1b7837", "#762a83", "#b35806"};
constexpr double k_left = 70, k_top = 50, k_wide = 520, k_high = 260, k_legend = 180;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string label(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)", x, y, anchor,
                     escaped(text)) +
         '\n';
}

std::string head(double width, double height, const std::string& title) {
  return fmt::format(
             R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}" font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>)",
             width, height) +
         '\n' + label(k_left, 24, "start", title);
}

// The largest of 1, 2 and 5 times a power of ten that divides the span into 3 steps or more.
double step_of(double span) {
  const double ten = std::pow(10, std::floor(std::log10(span)));
  for (const double s : {5.0, 2.0, 1.0, 0.5, 0.2})
    if (span / (ten * s) >= 3) return ten * s;
  return ten / 10;
}

std::string heat_colour(double v) {
  const auto mixed = [](double from, double to, double part) {
    return static_cast<int>(std::lround(from + (to - from) * std::clamp(part, 0.0, 1.0)));
  };
  const double up = v - 1;
  if (up <= 0)
    return fmt::format("#{:02x}{:02x}{:02x}", mixed(255, 146, v), mixed(255, 197, v),
                       mixed(255, 222, v));
  return fmt::format("#{:02x}{:02x}{:02x}", mixed(146, 178, up), mixed(197, 24, up),
                     mixed(222, 43, up));
}

}  // namespace

std::string svg_lines(const std::string& title, const std::string& x, const std::string& y,
                      const std::vector<plot_line>& lines) {
  double low = lines[0].values[0];
  double high = low;
  for (const plot_line& l : lines) {
    low = std::min(low, *std::min_element(l.values.begin(), l.values.end()));
    high = std::max(high, *std::max_element(l.values.begin(), l.values.end()));
  }
  if (high - low < 1e-9) high = low + 1;
  const double step = step_of(high - low);
  low = std::floor(low / step) * step;
  high = std::ceil(high / step) * step;
  const std::size_t count = lines[0].values.size();
  const auto px = [&](std::size_t i) {
    return k_left + k_wide * static_cast<double>(i) /
                        static_cast<double>(std::max<std::size_t>(count - 1, 1));
  };
  const auto py = [&](double v) { return k_top + k_high * (high - v) / (high - low); };
  std::string out = head(k_left + k_wide + k_legend, k_top + k_high + 60, title);
  for (double v = low; v <= high + step / 2; v += step) {
    out +=
        fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="#dddddd"/>)",
                    k_left, py(v), k_left + k_wide, py(v)) +
        '\n' + label(k_left - 6, py(v) + 4, "end", fmt::format("{:.4g}", v));
  }
  for (std::size_t i = 0; i < count; i += std::max<std::size_t>(1, count / 12))
    out += label(px(i), k_top + k_high + 18, "middle", std::to_string(i));
  out += label(k_left + k_wide / 2, k_top + k_high + 40, "middle", x) +
         label(k_left, k_top - 10, "start", y);
  for (std::size_t n = 0; n < lines.size(); ++n) {
    const char* colour = k_colours[n % std::size(k_colours)];
    std::string points;
    for (std::size_t i = 0; i < count; ++i)
      points += fmt::format("{:.1f},{:.1f} ", px(i), py(lines[n].values[i]));
    out += fmt::format(R"(<polyline fill="none" stroke="{}" stroke-width="2" points="{}"/>)",
                       colour, points) +
           '\n';
    const double ly = k_top + 18 * static_cast<double>(n);
    out +=
        fmt::format(
            R"(<line x1="{0:.0f}" y1="{1:.1f}" x2="{2:.0f}" y2="{1:.1f}" stroke="{3}" stroke-width="2"/>)",
            k_left + k_wide + 12, ly, k_left + k_wide + 30, colour) +
        '\n' + label(k_left + k_wide + 36, ly + 4, "start", lines[n].name);
  }
  return out + "</svg>\n";
}

std::string svg_heat(const std::string& title, const std::string& x, const std::string& y,
                     const std::vector<heat_panel>& panels) {
  constexpr double k_cell = 14;
  double width = k_left;
  std::size_t rows = 0;
  for (const heat_panel& p : panels) {
    width += k_cell * static_cast<double>(p.rows[0].size()) + 30;
    rows = std::max(rows, p.rows.size());
  }
  const double bottom = k_top + 20 + k_cell * static_cast<double>(rows);
  std::string out = head(std::max(width, 400.0), bottom + 70, title);
  double left = k_left;
  for (const heat_panel& p : panels) {
    out += label(left, k_top + 12, "start", p.name);
    for (std::size_t r = 0; r < p.rows.size(); ++r) {
      for (std::size_t c = 0; c < p.rows[r].size(); ++c) {
        out +=
            fmt::format(
                R"(<rect x="{:.1f}" y="{:.1f}" width="{}" height="{}" fill="{}"><title>{:.3f}</title></rect>)",
                left + k_cell * static_cast<double>(c),
                k_top + 20 + k_cell * static_cast<double>(r), k_cell, k_cell,
                heat_colour(p.rows[r][c]), p.rows[r][c]) +
            '\n';
      }
    }
    left += k_cell * static_cast<double>(p.rows[0].size()) + 30;
  }
  for (std::size_t r = 0; r < rows; ++r)
    out +=
        label(k_left - 6, k_top + 31 + k_cell * static_cast<double>(r), "end", std::to_string(r));
  out += label(k_left, bottom + 18, "start", x) + label(10, k_top + 12, "start", y);
  for (int i = 0; i <= 8; ++i) {  // the scale
    const double v = i / 4.0;
    out += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="24" height="12" fill="{}"/>)",
                       k_left + 24.0 * i, bottom + 30, heat_colour(v)) +
           '\n';
    if (i % 4 == 0)
      out += label(k_left + 24.0 * i + 12, bottom + 56, "middle", fmt::format("{:.0f}", v));
  }
  return out + "</svg>\n";
}

}  // namespace moetier::cli

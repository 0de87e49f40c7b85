// A bounded list of names for a message, because a peer may have chosen thousands, and each failing call sends the message.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>

namespace rove {

inline constexpr std::size_t kNamesQuoted = 8;

template <typename Names>
std::string quoted(const Names& names, std::size_t most = kNamesQuoted) {
    std::string list;
    std::size_t number = 0;
    for (const auto& name : names) {
        if (number++ == most) return list + fmt::format(" and {} more", names.size() - most);
        list += fmt::format("{}'{}'", list.empty() ? "" : ", ", name);
    }
    return list;
}

}  // namespace rove

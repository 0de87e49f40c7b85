// The search. The demo edits the line of `score` in a copy of this file, builds that, and sends it to the same nodes.
#include "search.hpp"

#include <algorithm>
#include <limits>

#include "shard.hpp"

namespace archive_walk {
namespace {

// How a stanza matches the pattern.
struct Match {
    int errors;             // of what is nearest to the pattern in the package's name and description
    int description_bytes;  // the length of the description's first line
    int installed_mib;
};

// Says which match is better than another. No index knows that beforehand, and so it has to run where the text is.
constexpr auto score = [](const Match& match) { return 1000 - 100 * match.errors - match.description_bytes; };

// Finds a pattern anywhere in a line, with errors: the bit-parallel method of G. Myers (Journal of the ACM 46, 1999).
class FuzzyMatcher {
public:
    explicit FuzzyMatcher(const Pattern& pattern) : size_(static_cast<int>(pattern.size)) {
        for (std::size_t i = 0; i < pattern.size; ++i) {
            const char c = pattern.text[i];
            places_[static_cast<unsigned char>(c)] |= std::uint64_t{1} << i;
            if (c >= 'a' && c <= 'z') places_[static_cast<unsigned char>(c - 'a' + 'A')] |= std::uint64_t{1} << i;
        }
    }
    [[nodiscard]] int fewest_errors(std::string_view line) const {
        if (size_ == 0) return 0;
        const std::uint64_t last = std::uint64_t{1} << static_cast<unsigned>(size_ - 1);
        std::uint64_t up = ~std::uint64_t{0};  // where a column of the table of distances grows, and where it shrinks
        std::uint64_t down = 0;
        int errors = size_;
        int fewest = size_;
        for (const char c : line) {
            const std::uint64_t equal = places_[static_cast<unsigned char>(c)];
            const std::uint64_t diagonal = (((equal & up) + up) ^ up) | equal | down;
            const std::uint64_t right = down | ~(diagonal | up);
            const std::uint64_t left = up & diagonal;
            errors += static_cast<int>((right & last) != 0) - static_cast<int>((left & last) != 0);
            fewest = std::min(fewest, errors);
            up = left << 1U | ~(diagonal | right << 1U);
            down = right << 1U & diagonal;
        }
        return fewest;
    }

private:
    int size_;
    std::array<std::uint64_t, 256> places_{};  // of each character in the pattern
};

void add(TopTen& top, const Hit& hit) {
    if (hit.score <= top.back().score) return;
    const auto place =
        std::upper_bound(top.begin(), top.end(), hit, [](const Hit& a, const Hit& b) { return a.score > b.score; });
    std::move_backward(place, top.end() - 1, top.end());
    *place = hit;
}

int number_of(std::string_view digits) {
    int number = 0;
    for (const char c : digits)
        if (c >= '0' && c <= '9' && number < 100'000'000) number = 10 * number + (c - '0');
    return number;
}

template <typename Score>
TopTen search(const Part& part, const Pattern& pattern, const Score& score_of) {
    TopTen top;
    top.fill({std::numeric_limits<std::int32_t>::min(), 0, 0, 0, 0});
    const FuzzyMatcher matcher(pattern);
    const int none = static_cast<int>(pattern.size);
    Match match{none, 0, 0};
    std::size_t stanza = 0;  // where it begins
    for (std::size_t at = 0; at < part.text.size();) {
        const std::size_t end = std::min(part.text.find('\n', at), part.text.size());
        const std::string_view line = part.text.substr(at, end - at);
        const auto value_of = [line](std::string_view field) { return line.substr(field.size()); };
        if (line.starts_with("Package: ")) {
            match.errors = std::min(match.errors, matcher.fewest_errors(value_of("Package: ")));
        } else if (line.starts_with("Description: ")) {
            const std::string_view description = value_of("Description: ");
            match.errors = std::min(match.errors, matcher.fewest_errors(description));
            match.description_bytes = static_cast<int>(description.size());
        } else if (line.starts_with("Installed-Size: ")) {
            match.installed_mib = number_of(value_of("Installed-Size: ")) / 1024;
        }
        at = end + 1;
        if (!line.empty() && at < part.text.size()) continue;  // the stanza continues
        if (match.errors < none)
            add(top, {score_of(match), match.errors, part.node, static_cast<std::uint32_t>(stanza),
                      static_cast<std::uint32_t>(end - stanza)});
        match = {none, 0, 0};
        stanza = at;
    }
    return top;
}

}  // namespace

TopTen search_there(const rove::PeerGroup& peers, const Pattern& pattern) {
    // The lambda travels with the pattern and the score in it.
    const auto on_its_own_text = [pattern, score_of = score](rove::Here& here) {
        return search({here.node(), text_of_node()}, pattern, score_of);
    };
    return peers.reduce(on_its_own_text, merged).get();
}

TopTen search_here(const Part& part, const Pattern& pattern) {
    return search(part, pattern, score);
}

TopTen merged(const TopTen& a, const TopTen& b) {
    std::array<Hit, 20> both;
    std::merge(a.begin(), a.end(), b.begin(), b.end(), both.begin(),
               [](const Hit& x, const Hit& y) { return x.score > y.score; });
    TopTen top;
    std::copy_n(both.begin(), top.size(), top.begin());
    return top;
}

}  // namespace archive_walk

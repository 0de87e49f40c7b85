// The choices that a step of a model makes, all of them one after the other.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace rove::baton_model {

// Gives each sequence of choices that a step can make, one after the other.
class Choices {
public:
    unsigned choose(unsigned count) {
        if (at_ == made_.size()) made_.push_back({0, count});
        return made_[at_++].first;
    }
    bool next() {
        at_ = 0;
        while (!made_.empty() && made_.back().first + 1 >= made_.back().second) made_.pop_back();
        if (made_.empty()) return false;
        ++made_.back().first;
        return true;
    }

private:
    std::vector<std::pair<unsigned, unsigned>> made_;
    std::size_t at_ = 0;
};

}  // namespace rove::baton_model

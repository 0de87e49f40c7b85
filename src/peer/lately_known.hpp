// LatelyKnown: a table with a bound, which forgets what was set longest ago.
//
// Threads: as a std::unordered_map.
//
// Invariant: the last kMost / 2 keys that were set are there, and at most kMost are.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <utility>

namespace rove {

// In two halves. When the younger one is full the older one is dropped: no order is kept, and a key that is set again counts as new.
template <typename Key, typename Value, std::size_t kMost>
class LatelyKnown {
public:
    // Null: unknown, or forgotten. Stays until the table is changed.
    [[nodiscard]] const Value* find(const Key& key) const {
        for (const Half* half : {&young_, &old_})
            if (const auto found = half->find(key); found != half->end()) return &found->second;
        return nullptr;
    }
    void set(const Key& key, const Value& value) {
        if (young_.size() >= kMost / 2 && !young_.contains(key)) old_ = std::exchange(young_, {});
        young_.insert_or_assign(key, value);
    }
    void clear() {
        young_.clear();
        old_.clear();
    }
    // The older half has something only if the younger one has, unless memory ran out in set().
    [[nodiscard]] bool empty() const { return young_.empty(); }

private:
    using Half = std::unordered_map<Key, Value>;
    Half young_, old_;
};

}  // namespace rove

#include "services/objects.hpp"

#include "base/demangle.hpp"

namespace rove {
namespace {

// "Shop, 24, 8" of rove::detail::Shared<Shop, 24, 8> (rove/detail/shared_type.hpp); a type that a C program gave is unchanged.
std::string words_of(std::string_view type) {
    constexpr std::string_view kBegin = "rove::detail::Shared<";
    std::string name = demangled(std::string(type).c_str());
    if (!name.starts_with(kBegin)) return name;
    std::string words = name.substr(kBegin.size(), name.size() - kBegin.size() - 1);
    for (std::size_t at = 0; (at = words.find("ul", at)) != std::string::npos;)
        if (at > 0 && words[at - 1] >= '0' && words[at - 1] <= '9')
            words.erase(at, 2);
        else
            at += 2;
    return words;
}

}  // namespace

Status Objects::share(const std::string& name, void* object, std::string_view type) {
    if (name.empty() || name.find('\0') != std::string::npos)
        return fail(ErrorCode::invalid, "an object that {} shares needs a name without zeros, of 1 character or more",
                    node_());
    const MutexLock lock(mutex_);
    if (!objects_.try_emplace(name, Object{object, std::string(type)}).second)
        return fail(ErrorCode::invalid, "{} shares another object as '{}' already", node_(), name);
    return {};
}

void Objects::unshare(const std::string& name) {
    const MutexLock lock(mutex_);
    objects_.erase(name);
}

Result<void*> Objects::find(std::string_view name, std::string_view type) const {
    const MutexLock lock(mutex_);
    const auto found = objects_.find(name);
    if (found == objects_.end()) {
        std::string names;
        for (const auto& [each, object] : objects_) names += (names.empty() ? "" : ", ") + each;
        return fail(ErrorCode::invalid, "{} shares no object '{}'; {}{}", node_(), name,
                    names.empty() ? "it shares none" : "there are: ", names);
    }
    const Object& object = found->second;
    if (object.type != type)
        return fail(
            ErrorCode::invalid,
            "{} shares '{}' as another type than it is asked for: ({}) and not ({}), with its size and alignment "
            "in bytes; build both programs with one definition of it",
            node_(), name, words_of(object.type), words_of(type));
    return object.address;
}

}  // namespace rove

#include "engine/function_finder.hpp"

#include <algorithm>
#include <cstring>

#include "base/transient.hpp"
#include "peer/names.hpp"
#include "program/callables.hpp"
#include "program/residents.hpp"
#include "wire/kinds.hpp"

namespace rove {

using wire::Kind;

void FunctionFinder::bind(PeerState& peer, const FunctionId& named, const code::Function& function) {
    sender_.send_or_cut(peer, {.kind = Kind::bind, .handle = function.handle, .node = peer.id()}, named.raw(), {});
}

Error FunctionFinder::takes_no_code() const {
    return {ErrorCode::refused,
            name_() + " runs its own program's functions only, and takes no code; give it an address to listen on"};
}

code::Function* FunctionFinder::by_id(const FunctionId& function) {
    code::Function* const known = cache_->find(function);
    return known != nullptr ? known : own_shipped(function);
}

Result<code::Function*> FunctionFinder::in_line(PeerState& from, const wire::Frame& frame) {
    const FunctionId id = named_in(frame);
    const Bytes sent = wire::name_in(frame);
    SeenInline& seen = seen_inline_[std::to_integer<std::size_t>(id.raw()[0]) % seen_inline_.size()];
    if (seen.id == id && seen.bytes.size() == sent.size() &&
        std::memcmp(seen.bytes.data(), sent.data(), seen.bytes.size()) == 0) {
        // Not where it was forgotten or evicted: then the frame has what is lacking.
        code::Function* function = cache_->by_handle(seen.handle);
        if (function == seen.function && function->target.load(std::memory_order_relaxed) != nullptr) return function;
    }
    ByteBuffer bytes(sent.begin(), sent.end());  // the peer can change the mailbox
    const auto code = wire::copy_of<wire::InlineCode>(Bytes(bytes).subspan(sizeof id));
    const Bytes rest = Bytes(bytes).subspan(sizeof id + sizeof code);
    const auto wrong = [&from](const std::string& what) REQUIRES(lock_of<EngineLock>) {
        from.link()->break_with(Error(ErrorCode::invalid, fmt::format("{} sent inline code {}", who(from), what)));
        return nullptr;
    };
    if (std::size_t{code.manifest_bytes} + code.slice_bytes > rest.size()) return wrong("that was changed on its way");
    const Result<std::shared_ptr<PackageStore>> store = PackageStore::from_manifest(rest.first(code.manifest_bytes));
    if (!store) return wrong(store.error().message());
    const auto& ids = (*store)->function_ids();
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) return wrong("of another function than it names");
    if (const Status added = (*store)->add_slice(code.slice, rest.subspan(code.manifest_bytes, code.slice_bytes));
        !added)
        return wrong(added.error().message());
    const Result<std::shared_ptr<PackageStore>> kept = cache_->add(*store, false, from.back());
    if (!kept && is_transient(kept.error())) return prefixed(kept.error(), fmt::format("a function on {}", name_()));
    if (!kept) return wrong(kept.error().message());
    from.code.sent.insert((*kept)->digest());
    code::Function* function = cache_->find(id);
    if (function == nullptr) return nullptr;
    seen = {function, function->handle, id, std::move(bytes)};
    bind(from, id, *function);
    return function;
}

Result<code::Function*> FunctionFinder::by_either(const wire::Either& either) {
    code::Function* resident = cache_->find(either.resident);
    if (resident == nullptr) {
        if (const Resident* own = Residents::find(either.resident)) {
            ROVE_TRY(resident, cache_->add_resident(own->id, own->name, own->entry));
        }
    }
    if (resident != nullptr) {
        const Resident* own = Residents::find(either.resident);
        if (own != nullptr && own->schema == either.schema && !options_.listen.empty())
            detail::say_if_other_code(*own, either, name_());
        if (own == nullptr || own->schema == either.schema) return resident;
        if (either.shipped == FunctionId{})
            return fail(
                ErrorCode::invalid,
                "{} on {}: the types that it takes or gives are others there (schema {:08x}) than in the caller's "
                "program ({:08x}); build both from the same source",
                own->name, name_(), own->schema, either.schema);
    }
    if (either.shipped == FunctionId{})
        return fail(ErrorCode::unsupported, "it is not resident on {}, and the program that called it cannot send it",
                    name_());
    if (options_.listen.empty()) return tl::unexpected<Error>(takes_no_code());
    return cache_->find(either.shipped);
}

// A function of this very program, called by the id under which this program has sent it out.
code::Function* FunctionFinder::own_shipped(const FunctionId& function) {
    const std::shared_ptr<PackageStore> package = own_functions_.package_of(function);
    if (!package) return nullptr;
    const auto& ids = package->function_ids();
    const auto entry = static_cast<std::size_t>(std::find(ids.begin(), ids.end(), function) - ids.begin());
    const Resident* own = detail::resident_of_entry(package->manifest().entries[entry]);
    if (own == nullptr) return nullptr;
    const Result<code::Function*> added = cache_->add_resident(function, own->name, own->entry);
    return added ? *added : nullptr;
}

}  // namespace rove

// Code on its way: attached to a first call, asked for by a node that lacks it, passed on by those in the middle.

#include "node/core.hpp"
#include "node/log.hpp"

namespace rove {

using fabric::Traffic;
using wire::Form;
using wire::Kind;

namespace {

// A piece of a slice: the largest frame less header and extension.
constexpr std::size_t kChunkBytes = wire::kFrameBytesMax - wire::kHeaderBytes - sizeof(wire::CodeChunk);

template <typename Extension>
Bytes raw(const Extension& extension) {
    return std::as_bytes(std::span(&extension, 1));
}

template <typename Extension>
Extension read(const wire::Frame& frame) {  // its size was checked
    Extension extension;
    std::memcpy(&extension, frame.extra.data(), sizeof extension);
    return extension;
}

std::string_view text_of(const std::array<char, 32>& padded) {
    return {padded.data(), strnlen(padded.data(), padded.size())};
}

}  // namespace

bool NodeCore::may_send(Form form) const {
    return options_.forms == Forms::both || (options_.forms == Forms::image) == (form == Form::image);
}

// The package of a function, wherever this process has it from: its own program, or what it was sent.
std::shared_ptr<PackageStore> NodeCore::package_with(const FunctionId& function) const {
    if (const auto offered = own_functions_.find(function); offered != own_functions_.end()) return offered->second;
    const code::Function* known = cache_->find(function);
    return known != nullptr ? cache_->package_of(*known) : nullptr;
}

Result<bool> NodeCore::send_code(const CodeTarget& to, PackageStore& package, Form form, bool with_manifest,
                                 Traffic among) {
    const auto index = package.slice_index(to.triple, form);
    if (!may_send(form) || !index) return false;
    const std::shared_ptr<const ByteBuffer> slice = package.stored_slice(*index);
    if (!slice) return false;
    if (with_manifest) ROVE_CHECK(send_part(to, among, package.digest(), 0, package.manifest_bytes()));
    ROVE_CHECK(send_part(to, among, package.digest(), static_cast<std::uint32_t>(*index + 1), *slice));
    return true;
}

Status NodeCore::send_part(const CodeTarget& to, Traffic among, const Digest& package, std::uint32_t part,
                           Bytes bytes) {
    for (std::size_t offset = 0; offset < bytes.size();) {
        const Bytes piece = bytes.subspan(offset, std::min(kChunkBytes, bytes.size() - offset));
        const wire::CodeChunk chunk{.package = package,
                                    .part = part,
                                    .offset = static_cast<std::uint32_t>(offset),
                                    .total_bytes = static_cast<std::uint32_t>(bytes.size())};
        ROVE_CHECK(send(to.via, among, {.kind = Kind::code, .node = to.node}, raw(chunk), piece));
        to.via.counters.code_bytes_sent += piece.size();
        offset += piece.size();
    }
    return {};
}

void NodeCore::on_code(PeerState& from, const wire::Frame& frame) {
    if (frame.header.node != from.my_id && frame.header.node != id()) return route_frame(frame);
    const auto chunk = read<wire::CodeChunk>(frame);
    const auto wrong = [&from](std::string_view what) {
        from.link->break_with(Error(ErrorCode::invalid, fmt::format("peer {} sent a code chunk {}", from.id, what)));
    };
    const std::size_t most = chunk.part == 0 ? wire::kManifestBytesMax : wire::kSliceBytesMax;
    if (chunk.total_bytes == 0 || chunk.total_bytes > most) return wrong("of a part over the limit");
    if (chunk.offset + frame.payload.size() > chunk.total_bytes || frame.payload.empty())
        return wrong("that lies outside its part");
    Status added;
    if (frame.payload.size() == chunk.total_bytes) {
        added = part_arrived(from, chunk.package, chunk.part, frame.payload);
    } else {
        Assembly& assembly = from.assemblies[chunk.package][chunk.part];
        if (chunk.offset == 0) {  // begins, or begins again
            from.assembly_bytes = from.assembly_bytes - assembly.bytes.size() + chunk.total_bytes;
            if (from.assembly_bytes > kAssemblyBytesMax) return wrong("beyond what may arrive at once");
            assembly = {ByteBuffer(chunk.total_bytes), 0};
        }
        if (assembly.arrived != chunk.offset || assembly.bytes.size() != chunk.total_bytes)
            return wrong("out of its order");
        std::memcpy(assembly.bytes.data() + chunk.offset, frame.payload.data(), frame.payload.size());
        assembly.arrived += frame.payload.size();
        if (assembly.arrived < chunk.total_bytes) return;
        const ByteBuffer whole = std::move(assembly.bytes);
        from.assembly_bytes -= whole.size();
        auto& parts = from.assemblies[chunk.package];
        parts.erase(chunk.part);
        if (parts.empty()) from.assemblies.erase(chunk.package);
        added = part_arrived(from, chunk.package, chunk.part, whole);
    }
    if (!added && added.error().code() == ErrorCode::overloaded)
        give_up_parked(chunk.package, added.error());
    else if (!added)
        wrong(added.error().message());
}

Status NodeCore::part_arrived(PeerState& from, const Digest& package, std::uint32_t part, Bytes bytes) {
    if (part == 0) {
        ROVE_TRY(const std::shared_ptr<PackageStore> store, PackageStore::from_manifest(bytes));
        if (store->digest() != package) return fail(ErrorCode::invalid, "whose manifest is not that of its digest");
        ROVE_TRY(const std::shared_ptr<PackageStore> kept, cache_->add(store, false));
        from.code_sent.insert(package);  // it has the package, so it need not be sent it
        return {};
    }
    const std::shared_ptr<PackageStore> store = cache_->package(package);
    if (!store) return {};  // its manifest was refused, and those who wait have been told
    ROVE_CHECK(store->add_slice(part - 1, bytes));
    cache_->slices_added(package);
    return {};
}

void NodeCore::ask_for_code(PeerState* from, const Parked& parked, NodeId origin) {
    wire::NeedCode need{.function = parked.function, .asker = id(), .origin = origin, .handle = parked.handle};
    const std::string_view triple = code::host_triple();
    triple.copy(need.triple.data(), need.triple.size() - 1);
    // A frame of one's own names its function, so its origin is as good as any to ask.
    PeerState* whom = from != nullptr ? from : route(origin);
    const NodeId node = from != nullptr ? from->id : origin;
    if (whom == nullptr) return give_up(need, "nobody is left to ask for its code");
    send_or_cut(*whom, {.kind = Kind::need, .node = node}, raw(need), {});
}

void NodeCore::on_need(PeerState& from, const wire::Frame& frame) {
    if (frame.header.node != from.my_id && frame.header.node != id()) {
        if (route(frame.header.node) != nullptr) return route_frame(frame);
    }
    auto need = read<wire::NeedCode>(frame);
    PeerState* asker = is_client(from.my_id) ? &from : route(need.asker);
    if (asker == nullptr) return;  // it is gone
    if (need.function == FunctionId{}) {
        // It gave this handle and forgot it since: tell it what it meant, and name the function from now on.
        for (auto bound = from.bindings.begin(); bound != from.bindings.end(); ++bound) {
            if (bound->second != need.handle) continue;
            const FunctionId named = bound->first;
            // A resident function is not forgotten: what it gave a handle for had travelled.
            const auto shipped = shipped_as_.find(named);
            need.function = shipped != shipped_as_.end() ? shipped->second : named;
            from.forget_handle(named);
            send_or_cut(from, {.kind = Kind::bind, .flags = wire::kNamed, .handle = need.handle, .node = from.id},
                        need.function.raw(), {});
            break;
        }
    }
    const std::shared_ptr<PackageStore> package = package_with(need.function);
    const CodeTarget target{need.asker, *asker, text_of(need.triple)};
    if (package) {
        const Result<bool> image = send_code(target, *package, Form::image, true);
        const Result<bool> bitcode = send_code(target, *package, Form::bitcode, !(image && *image));
        if ((image && *image) || (bitcode && *bitcode)) return;
    }
    PeerState* origin = need.origin != from.my_id && need.origin != id() ? route(need.origin) : nullptr;
    if (origin != nullptr) return send_or_cut(*origin, {.kind = Kind::need, .node = need.origin}, raw(need), {});
    send_or_cut(*asker, {.kind = Kind::lack, .node = need.asker}, raw(need), {});
}

void NodeCore::on_lack(PeerState& from, const wire::Frame& frame) {
    if (frame.header.node != from.my_id && frame.header.node != id()) return route_frame(frame);
    give_up(read<wire::NeedCode>(frame),
            fmt::format("nobody on its way has a form of its code for {}", code::host_triple()));
}

// Those that wait for this code will be told that it does not come.
void NodeCore::give_up(const wire::NeedCode& need, std::string_view why) {
    const auto end = [&](std::optional<Parked>& parked) {
        if (!parked ||
            !(need.function == FunctionId{} ? parked->handle == need.handle
                                            : parked->function == need.function ||
                                                  (parked->function == FunctionId{} && parked->handle == need.handle)))
            return;
        parked->hopeless = Error(ErrorCode::unsupported, std::string(why));
    };
    end(local_parked_);
    for (const auto& peer : peers_) end(peer->parked);
}

void NodeCore::give_up_parked(const Digest& package, const Error& why) {
    const auto end = [&](std::optional<Parked>& parked) {
        const auto offered = parked ? package_with(parked->function) : nullptr;
        if (parked && (!offered || offered->digest() == package)) parked->hopeless = why;
    };
    end(local_parked_);
    for (const auto& peer : peers_) end(peer->parked);
}

}  // namespace rove

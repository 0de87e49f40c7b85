#include "code/new_code.hpp"

#include <new>
#include <utility>

namespace rove::code {

void NewCode::name_entry(const PackageCode& package, std::size_t function, void* address) {
    entries[function] = reinterpret_cast<EntryPoint>(address);
    by_address.emplace(entries[function], package.functions[function].get());
}

Result<wire::Image> read_image(const PackageStore& package, std::size_t slice) {
    ROVE_TRY(const ByteBuffer raw, package.raw_slice(slice));
    return wire::decode_image(raw, package.manifest().imports.size());
}

void NewCodes::take_image(PackageCode& package, const wire::Image& image, NewCode&& code) noexcept {
    package.image = std::move(code.image);
    package.image_lacks = std::move(code.lacks);
    if (!package.data && image.data_bytes > 0) {
        package.data = package.image->data();
        package.statics = std::move(code.statics);
        budgets_.keep_statics(package);
    }
    package.reserved = {};
    for (std::size_t i = 0; i < code.entries.size(); ++i) package.functions[i]->image = code.entries[i];
    package.exported = std::move(code.exported);
    known_.add_entries(code.by_address);
    go_on_with(package);
}

void NewCodes::take_module(PackageCode& package, NewCode&& code) noexcept {
    package.compile = PackageCode::Compile::done;
    package.module = std::move(code.module);
    package.module_lacks = std::move(code.lacks);
    package.reserved = {};
    for (std::size_t i = 0; i < code.entries.size(); ++i) package.functions[i]->compiled = code.entries[i];
    known_.add_entries(code.by_address);
    go_on_with(package);
}

// If there is no room, and no memory for the error that says so, the code is not kept.
void NewCodes::leave(PackageCode& package, NewCode&& code) noexcept try {
    const std::size_t bytes =
        (code.image ? code.image->code_bytes() : 0) + (code.module ? code.module->code_bytes() : 0);
    if (!package.pinned && !budgets_.check_pinned(package, bytes)) return;
    package.left_image = std::move(code.image);
    package.left_module = std::move(code.module);
    if (package.left_image && !package.data && package.left_image->data()) {
        package.data = package.left_image->data();
        package.statics = std::move(code.statics);
        budgets_.keep_statics(package);
    }
    package.reserved = {};
    budgets_.count(package);
} catch (const std::bad_alloc&) {  // treated like a lack of room
}

void NewCodes::go_on_with(PackageCode& package) noexcept {
    ++taken_;
    uses_.advance();  // newer than all earlier uses, and older than its own first call
    package.publish();
    budgets_.count(package);
}

}  // namespace rove::code

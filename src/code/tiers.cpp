#include "code/tiers.hpp"

#include "base/transient.hpp"

namespace rove::code {

std::string Tiers::why_no_form() const {
    if (options_.forms == Forms::both)
        return fmt::format("it is not built for {0}; build it with --target {0}", host_triple());
    const bool takes_images = options_.forms == Forms::image;
    return fmt::format(
        "it has no {0} for {1}, and the node takes {0} only (--forms {0}); {2}, or start the node with "
        "--forms both",
        takes_images ? "image" : "bitcode", host_triple(), takes_images ? "ship images" : "ship bitcode");
}

Error Tiers::why_incomplete(const PackageStore& package) const {
    const std::string& name = package.manifest().name;
    if (options_.forms == Forms::both)
        return Error(ErrorCode::unsupported, fmt::format("package {} has come to {} without a form of its code for {}",
                                                         name, options_.node, host_triple()));
    return Error(ErrorCode::unsupported,
                 fmt::format("package {0} has come without its {1}, and {2} takes {1} only (--forms {1}); let the "
                             "program that sends it send both (NodeOptions::forms), or start that node with --forms "
                             "both",
                             name, wire::to_string(options_.forms), options_.node));
}

Result<std::optional<Awaited>> Tiers::make_ready(PackageCode& package, NodeId asker) {
    if (package.error && package.lacks_names && package.names_seen != symbols_.generation()) {
        package.error.reset();  // the names may exist now
        package.compile = PackageCode::Compile::none;
    }
    if (package.error) return tl::unexpected<Error>(*package.error);
    if (package.constructing && Clock::now() - package.constructing_since > kConstructingAwaitedMax)
        return fail(
            ErrorCode::timed_out,
            "package {} has constructors that have run on {} for more than {} s and have not ended; call it when they "
            "have, or restart that node",
            package.store->manifest().name, options_.node, kConstructingAwaitedMax.count());
    if (package.loading) return Awaited::loading;
    if (const std::optional<Error> refusal = package.take_refusal()) return tl::unexpected<Error>(*refusal);
    if (package.loaded()) {
        package.publish();  // an eviction that found it running may have cleared the targets
        return std::nullopt;
    }
    // No image is loaded now, even if one has arrived: the compile began without statics, and would make a second set of them.
    if (package.is_to_be_compiled()) {
        add_asker(package, asker);
        return Awaited::loading;
    }
    package.compiled_for = asker;
    const bool image_fits =
        includes(options_.forms, Forms::image) && package.store->slice_index(host_triple(), Forms::image).has_value();
    const bool bitcode_fits = includes(options_.forms, Forms::bitcode) &&
                              package.store->slice_index(host_triple(), Forms::bitcode).has_value();
    if (!image_fits && !bitcode_fits)
        return fail(ErrorCode::unsupported, "package {} has no form that {} can run: {}",
                    package.store->manifest().name, options_.node, why_no_form());
    package.lacks_names = false;
    if (image_fits && package.has_stored(Forms::image)) {
        const std::size_t slice = *package.store->slice_index(host_triple(), Forms::image);
        const Result<bool> loaded = images_.load_if_quick(package, slice);
        if (!loaded) {
            if (!is_transient(loaded.error())) package.error = loaded.error();
            return tl::unexpected<Error>(loaded.error());
        }
        if (!*loaded) {
            ROVE_CHECK(images_.queue(package));
            return Awaited::loading;
        }
        if (options_.forms == Forms::both && package.has_stored(Forms::bitcode))
            (void)compiles_.queue(package);  // if there is no thread for it, the image keeps running
        return std::nullopt;
    }
    if (bitcode_fits && package.has_stored(Forms::bitcode)) {
        ROVE_CHECK(compiles_.queue(package));
        return Awaited::loading;
    }
    return Awaited::code;
}

}  // namespace rove::code

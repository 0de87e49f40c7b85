// rove inspect: what is in a package.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "base/result.hpp"
#include "commands.hpp"
#include "package/package.hpp"

namespace rove::tools {
namespace {

std::vector<std::string> weak_imports(const wire::Manifest& manifest) {
    std::vector<std::string> weak;
    for (std::size_t i = 0; i < manifest.imports.size(); ++i)
        if (!manifest.is_needed(i)) weak.push_back(manifest.imports[i]);
    return weak;
}

nlohmann::ordered_json as_json(const PackageStore& package) {
    const wire::Manifest& manifest = package.manifest();
    nlohmann::ordered_json json{{"name", manifest.name},
                                {"abi", manifest.abi},
                                {"digest", package.digest().hex()},
                                {"interface", manifest.interface},
                                {"pinned", manifest.pinned}};
    json["entries"] = nlohmann::json::array();
    for (std::size_t i = 0; i < manifest.entries.size(); ++i) {
        auto needs = nlohmann::json::array();
        for (std::size_t import = 0; import < manifest.imports.size(); ++import)
            if (manifest.whole_needs(import) || manifest.entry_needs(i, import))
                needs.push_back(manifest.imports[import]);
        json["entries"].push_back(
            {{"name", manifest.entries[i]}, {"id", package.function_ids()[i].hex()}, {"needs", std::move(needs)}});
    }
    json["targets"] = nlohmann::json::array();
    std::map<std::string, std::size_t> places;
    for (const wire::Slice& slice : manifest.slices) {
        if (!places.contains(slice.triple)) {
            places[slice.triple] = json["targets"].size();
            json["targets"].push_back({{"triple", slice.triple}, {"forms", nlohmann::json::array()}});
        }
        json["targets"][places[slice.triple]]["forms"].push_back(
            {{"form", wire::to_string(slice.form)}, {"bytes", slice.raw_bytes}});
    }
    json["exports"] = manifest.exports;
    json["imports"] = manifest.imports;
    json["weak_imports"] = weak_imports(manifest);
    json["dependencies"] = manifest.dependencies;
    return json;
}

void print_list(const char* what, const std::vector<std::string>& names) {
    if (names.empty()) return;
    std::printf("%-13s", what);
    for (const std::string& name : names) std::printf(" %s", name.c_str());
    std::printf("\n");
}

void print(const PackageStore& package) {
    const wire::Manifest& manifest = package.manifest();
    std::printf("%-13s %s%s\n", manifest.interface ? "interface" : "package", manifest.name.c_str(),
                manifest.pinned ? "  (pinned: stays loaded)" : "");
    std::printf("%-13s %u\n%-13s %s\n", "abi", manifest.abi, "digest", package.digest().hex().c_str());
    for (std::size_t i = 0; i < manifest.entries.size(); ++i)
        std::printf("%-13s %s  %s\n", i == 0 ? "entries" : "", package.function_ids()[i].hex().c_str(),
                    manifest.entries[i].c_str());
    for (std::size_t i = 0; i < manifest.slices.size(); ++i) {
        const wire::Slice& slice = manifest.slices[i];
        std::printf("%-13s %s  %-8s %u bytes", i == 0 ? "forms" : "", slice.triple.c_str(),
                    std::string(wire::to_string(slice.form)).c_str(), slice.raw_bytes);
        if (slice.compression == wire::Compression::zstd) std::printf(" (%u packed)", slice.stored_bytes);
        std::printf("\n");
    }
    print_list("exports", manifest.exports);
    std::vector<std::string> needed;
    for (std::size_t i = 0; i < manifest.imports.size(); ++i)
        if (manifest.is_needed(i)) needed.push_back(manifest.imports[i]);
    print_list("imports", needed);
    print_list("weak imports", weak_imports(manifest));
    print_list("dependencies", manifest.dependencies);
}

}  // namespace

void add_inspect(CLI::App& app) {
    auto path = std::make_shared<std::string>();
    auto json = std::make_shared<bool>(false);
    CLI::App* command = app.add_subcommand("inspect", "Show what is in a package, and check its form and its slices");
    command->add_option("PKG", *path, "a package file")->required();
    command->add_flag("--json", *json, "as JSON");
    command->callback([path, json] {
        const std::shared_ptr<PackageStore> package = value_or_throw(PackageStore::open(*path));
        if (*json)
            std::printf("%s\n", as_json(*package).dump(2).c_str());
        else
            print(*package);
    });
}

}  // namespace rove::tools

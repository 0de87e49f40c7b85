// A member that is made by hand, for tests of what nodes believe.
#pragma once

#include "raw_meeting.hpp"

namespace rove::test {

// A member made by hand: it has an id, a certificate and a link, and tells lies.
class Liar {
public:
    explicit Liar(std::string address = unix_address(),
                  std::shared_ptr<const KeyPair> keys = std::make_shared<KeyPair>())
        : keys_(std::move(keys)), address_(std::move(address)) {}
    void joins(const std::string& address) { meets(address, Role::join); }
    // Meets the node there; says nothing of functions, and opens a stream.
    void meets(const std::string& address, Role role) { EXPECT_EQ(asks(address, role), ""); }
    // The same. What it was told where it was not let in.
    [[nodiscard]] std::string asks(const std::string& address, Role role, bool replace = false) {
        control_.emplace_back(address);
        const Raw& socket = control_.back();
        Hello hello{.role = role};
        randombytes_buf(hello.nonce.bytes.data(), hello.nonce.bytes.size());
        socket.send(encode(hello));
        const auto challenge = decode<Challenge>(socket.receive());
        if (!challenge) return "it gave no challenge";
        const auto shown = statement("peer", challenge->nonce, hello.nonce, socket.bound_there());
        socket.send(encode(ProofGiven{}));
        socket.send(encode(Request{.replace = replace,
                                   .triple = "x86_64-linux-gnu",
                                   .address = address_,
                                   .key = keys_->key(),
                                   .signature = keys_->sign(shown),
                                   .certificate = certificate_,
                                   .offer = {}}));
        const ByteBuffer answer = socket.receive();
        const auto welcome = decode<Welcome>(answer);
        if (!welcome) return decode<Goodbye>(answer) ? decode<Goodbye>(answer)->text : "it hung up";
        cluster_ = welcome->cluster;
        lanes_.emplace_back(address);
        lanes_.back().send(encode(LaneHello{.ticket = welcome->ticket}));
        socket.send(encode(Connected{.lane = Lane::stream}));
        const auto settled = decode<Settled>(socket.receive());
        if (!settled) return "it did not settle";
        if (role == Role::join) certificate_ = settled->certificate;
        return "";
    }
    // From here on it says so.
    void says(const wire::control::Certificate& certificate) { certificate_ = certificate; }
    void says_that_it_is_at(const std::string& address) { address_ = address; }
    void leaves_all() {
        for (const Raw& each : control_) each.send(encode(Goodbye{}));
        dies();
    }
    [[nodiscard]] const wire::control::Certificate& certificate() const { return certificate_; }
    [[nodiscard]] const auto& cluster() const { return cluster_; }
    [[nodiscard]] const KeyPair& keys() const { return *keys_; }
    // To the node that it met last.
    void tells(const std::vector<wire::control::Member>& members) const {
        control_.back().send(encode(wire::control::Members{.members = members}));
    }
    // The node has read everything once this returns.
    [[nodiscard]] bool leaves() const {
        control_.back().send(encode(Goodbye{}));
        return control_.back().is_ended();
    }

    // As a process that dies.
    void dies() {
        control_.clear();
        lanes_.clear();
    }

private:
    std::shared_ptr<const KeyPair> keys_;
    std::string address_;
    decltype(Welcome::cluster) cluster_{};
    wire::control::Certificate certificate_;
    std::vector<Raw> control_, lanes_;
};

inline bool has_streams() {
    return options().fabric == FabricChoice::best || options().fabric == FabricChoice::tcp;
}

}  // namespace rove::test

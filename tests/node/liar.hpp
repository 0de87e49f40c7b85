// A member that is made by hand, for tests of what nodes believe.
#pragma once

#include "raw_meeting.hpp"

namespace rove::test {

// A member made by hand: it has an id, a certificate, its cluster's key and a link, and tells lies.
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
                                   .whom = role == Role::member ? key_of(address) : wire::control::PublicKey{},
                                   .offer = {}}));
        const ByteBuffer answer = socket.receive();
        const auto welcome = decode<Welcome>(answer);
        if (!welcome) return decode<Goodbye>(answer) ? decode<Goodbye>(answer)->text : "it hung up";
        lanes_.emplace_back(address);
        lanes_.back().send(encode(LaneHello{.ticket = welcome->ticket}));
        socket.send(encode(Connected{.by = ConnectedBy::ticket}));
        const auto settled = decode<Settled>(socket.receive());
        if (!settled) return "it did not settle";
        if (role != Role::join) return "";
        certificate_ = settled->certificate;
        cluster_ = std::make_unique<KeyPair>(settled->cluster);
        known_ = settled->members;
        return "";
    }
    // From here on it says so.
    void says(const wire::control::Certificate& certificate) { certificate_ = certificate; }
    void says_that_it_is_at(const std::string& address) { address_ = address; }
    [[nodiscard]] const wire::control::Certificate& certificate() const { return certificate_; }
    // That the cluster says so: whoever is a member can have it say anything.
    [[nodiscard]] wire::control::Member certify(wire::control::Member member) const {
        member.signature = cluster_->sign(statement(member));
        return member;
    }
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

    // The node that it met last has had enough of it.
    [[nodiscard]] bool is_cut_off() const {
        const auto said = control_.back().goodbye();
        return said && said->reason == Goodbye::Reason::cut;
    }

    // As a process that dies.
    void dies() {
        control_.clear();
        lanes_.clear();
    }

private:
    // Of the member at that address, once the node that let this one in has named it.
    wire::control::PublicKey key_of(const std::string& address) {
        for (;;) {
            for (const auto& each : known_)
                if (each.address == address) return each.key;
            const ByteBuffer said = control_.empty() ? ByteBuffer() : control_.front().receive();
            const auto members = decode<wire::control::Members>(said);
            if (!members) return {};
            known_.insert(known_.end(), members->members.begin(), members->members.end());
        }
    }

    std::shared_ptr<const KeyPair> keys_;
    std::string address_;
    wire::control::Certificate certificate_;
    std::unique_ptr<const KeyPair> cluster_;
    std::vector<wire::control::Member> known_;
    std::vector<Raw> control_, lanes_;
};

inline bool has_streams() {
    return options().fabric == FabricChoice::best || options().fabric == FabricChoice::tcp;
}

}  // namespace rove::test

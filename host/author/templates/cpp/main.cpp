// The tools of {{name}}.

#include "cofferdam.hpp"

struct greeting {
    std::string name;
    std::int64_t times = 1;

    static auto fields() {
        return cofferdam::fields(cofferdam::field("name", &greeting::name, "Whom to greet."),
                                 cofferdam::defaulted("times", &greeting::times, "How often; at most 10 times."));
    }
};

cofferdam::result<std::string> greet(const greeting &given) {
    if (given.times > 10) return cofferdam::fail(std::to_string(given.times) + " times is too often").suggest("pass 10 or less");
    std::string greetings;
    for (std::int64_t time = 0; time < given.times; time++) greetings += (time ? " Hello, " : "Hello, ") + given.name + "!";
    return greetings;
}

COFFERDAM_PLUGIN(
    cofferdam::tool<greet>("greet", "Greets somebody by name, as often as is wanted.").read_only().idempotent())

// The tools of {{name}}.

#include "cofferdam.hpp"

struct greeting {
    std::string name;
    std::int64_t times = 1;

    static auto fields() {
        return cofferdam::fields(cofferdam::field("name", &greeting::name, "Name of the person to greet."),
                                 cofferdam::defaulted("times", &greeting::times, "Number of greetings; at most 10."));
    }
};

cofferdam::result<std::string> greet(const greeting &given) {
    if (given.times > 10) return cofferdam::fail(std::to_string(given.times) + " times is too often").suggest("pass 10 or less");
    std::string greetings;
    for (std::int64_t time = 0; time < given.times; time++) greetings += (time ? " Hello, " : "Hello, ") + given.name + "!";
    return greetings;
}

COFFERDAM_PLUGIN(
    cofferdam::tool<greet>("greet", "Greets a person by name, once or several times.").read_only().idempotent())

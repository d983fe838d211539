// The tools of {{name}}.

#include "cofferdam.h"

COFFERDAM_TOOL(greet, "Greets a person by name, once or several times.",
               COFFERDAM_READ_ONLY,
               COFFERDAM_IDEMPOTENT,
               COFFERDAM_STRING(name, "Name of the person to greet."),
               COFFERDAM_INTEGER_OR(times, "Number of greetings; at most 10.", 1)) {
    if (arguments->times > 10)
        return cofferdam_suggest(cofferdam_fail("%lld times is too often", (long long)arguments->times), "pass 10 or less");
    cofferdam_string greetings = cofferdam_string_of("");
    for (int64_t time = 0; time < arguments->times; time++)
        greetings = cofferdam_format("%s%sHello, %s!", greetings.data, time ? " " : "", arguments->name.data);
    return cofferdam_text(greetings);
}

COFFERDAM_PLUGIN(greet)

"""The tools of {{name}}."""

from cofferdam import ToolFailure, tool


@tool(read_only=True, idempotent=True)
def greet(name: str, times: int = 1) -> str:
    """Greets a person by name, once or several times.

    Args:
        name: Name of the person to greet.
        times: Number of greetings; at most 10.
    """
    if times > 10:
        raise ToolFailure(f"{times} times is too often", suggestion="pass 10 or less")
    return " ".join([f"Hello, {name}!"] * times)

"""The tools of {{name}}."""

from cofferdam import ToolFailure, tool


@tool(read_only=True, idempotent=True)
def greet(name: str, times: int = 1) -> str:
    """Greets somebody by name, as often as is wanted.

    Args:
        name: Whom to greet.
        times: How often; at most 10 times.
    """
    if times > 10:
        raise ToolFailure(f"{times} times is too often", suggestion="pass 10 or less")
    return " ".join([f"Hello, {name}!"] * times)

"""The reference in Python: a tool that is a function, behind the official SDK, on standard input and output."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("echo", log_level="ERROR")


@server.tool()
def echo(message: str) -> dict[str, dict[str, str]]:
    """Gives back what it is given."""
    return {"echoed": {"message": message}}


server.run()

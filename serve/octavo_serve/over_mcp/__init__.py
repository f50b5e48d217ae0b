"""MCP, in both eras, over HTTP and over standard streams; the SDK is imported when a client first speaks it."""

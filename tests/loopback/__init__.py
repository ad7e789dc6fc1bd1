"""Stand-ins for other people's services: real HTTP servers on 127.0.0.1 for the real SDKs."""

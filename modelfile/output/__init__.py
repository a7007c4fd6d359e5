"""What models write, read: thinking and tool calls told apart from text, and grammars that force calls."""

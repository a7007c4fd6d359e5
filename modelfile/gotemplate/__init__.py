"""Go's text/template, interpreted on a tree: source -> lexer -> parser -> nodes -> evaluate; prompt makes prompts."""

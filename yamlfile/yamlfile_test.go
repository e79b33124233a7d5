package yamlfile_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/yamlfile"
)

type value struct {
	Name  string            `yaml:"name"`
	Count *int              `yaml:"count,omitempty"`
	Wait  time.Duration     `yaml:"wait"`
	On    bool              `yaml:"on"`
	Rate  float64           `yaml:"rate"`
	Items []item            `yaml:"items"`
	ByKey map[string]item   `yaml:"by_key"`
	Words map[string]string `yaml:"words"`
}

type item struct {
	A string   `yaml:"a"`
	L []string `yaml:"l"`
}

const text = `name: |
  two
  lines
count: 0x10
wait: 1h30m
on: true
items:
  - a: x
    l: [p,
      q]
  - {a: "1"}
by_key:
  a: {a: x}
  a.b: {a: x}
  "a[0]":
    a: x
  a.b.l[0]: {}
words: {}
`

func TestDecode(t *testing.T) {
	var v value
	if _, err := yamlfile.Decode("f", []byte(text), &v); err != nil {
		t.Fatal(err)
	}
	if v.Name != "two\nlines\n" || *v.Count != 16 || v.Wait != 90*time.Minute || !v.On || len(v.Items) != 2 || len(v.ByKey) != 4 {
		t.Errorf("%+v", v)
	}
}

func TestLocate(t *testing.T) {
	f, err := yamlfile.Decode("f", []byte(text), &value{})
	if err != nil {
		t.Fatal(err)
	}
	for field, line := range map[string]string{
		"name": "1", "wait": "5", "items": "7", "items[0]": "8", "items[0].l": "9", "items[0].l[1]": "10", "items[0].none": "8", "items[1].a": "11",
		"items[7].a": "7", "items[-1]": "7", "items[": "7", "by_key": "12", "by_key.a.a": "13", "by_key.a.b": "14", "by_key.a.b.a": "14", "by_key.a[0].a": "16",
		"by_key.a[0]": "15", "by_key.a.b.l[0]": "17", "by_key.c": "12", "none": "1", "": "1", "nam": "1", "by_key.": "12", "]": "1",
	} {
		err := f.Locate(sendgate.Errorf("x", field, "bad"))
		if !strings.HasPrefix(err.Error(), "f:"+line+": ") || !strings.HasSuffix(err.Error(), ": bad") {
			t.Errorf("%q: %v, want line %s", field, err, line)
		}
	}
	plain := errors.New("plain")
	if err := f.Locate(plain); !errors.Is(err, plain) || f.Locate(nil) != nil {
		t.Errorf("%v", err)
	}
}

func TestManyFaultsAreCutShort(t *testing.T) {
	f, err := yamlfile.Decode("f", []byte(text), &value{})
	if err != nil {
		t.Fatal(err)
	}
	var many sendgate.Errors
	for range 250 {
		many.Add(sendgate.Errorf("x", "wait", "bad"))
	}
	lines := strings.Split(f.Locate(many).Error(), "\n")
	if len(lines) != 101 || lines[100] != "f: and 150 more" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

func TestNumbers(t *testing.T) {
	for in, want := range map[string]float64{"0.001": 0.001, "1e-6": 1e-6, "0": 0, "1": 1, "-2": -2, "1.5E+3": 1500, ".5": 0.5, "0x10": 16, "-.inf": math.Inf(-1)} {
		var v value
		if _, err := yamlfile.Decode("f", []byte("rate: "+in+"\n"), &v); err != nil || v.Rate != want {
			t.Errorf("%s is read as %v, %v", in, v.Rate, err)
		}
	}
}

// A panic of the library is an error of the file.
func TestAPanicIsAnError(t *testing.T) {
	if _, err := yamlfile.Decode("f", []byte("name: x\n"), nil); err == nil || !strings.HasPrefix(err.Error(), "f: this is not understood") {
		t.Errorf("%v", err)
	}
}

func TestAValueIsNotBent(t *testing.T) {
	for in, want := range map[string]string{
		"count: 1.0\n": "f:1: count: must be a whole number", "count: .inf\n": "f:1: count: must be a whole number", "count: [1]\n": "f:1: count: must be a whole number",
		"rate: 1%\n": "f:1: rate: must be a number, such as 0.001", "rate: \"0.1\"\n": "f:1: rate: must be a number", "on: true\nrate: true\n": "f:2: rate: must be a number",
		"rate: [1]\n": "f:1: rate: must be a number", "rate: 0,001\n": "f:1: rate: must be a number", "rate: {}\n": "f:1: rate: must be a number", "rate: inf\n": "f:1: rate: must be a number",
		"rate: nan\n": "f:1: rate: must be a number", "rate: 1e999\n": "f:1: rate: must be a number", "rate: '1e-6'\n": "f:1: rate: must be a number",
		"on: 1\n": "f:1: on: must be true or false", "name: 010\n": "f:1: name: must be text; a number is put in quotes",
		"name: [a]\n": "f:1: name: must be text; a number is put in quotes", "wait: {}\n": "f:1: wait: must be a length of time",
		"words: {a: {b: c}}\n": "f:1: words.a: must be text", "by_key: {~: {}}\n": "f:1: by_key: a name must be text",
		"items:\n  - a: x\n    b: y\n": `f:3: items[0]: there is no member "b"`, "-: x\n": `f:1: the file: there is no member "-"`,
		"count: 99999999999999999999\n": "f:1: count: must be a whole number", "count: 9223372036854775808\n": "f:1: cannot unmarshal 9223372036854775808",
	} {
		if _, err := yamlfile.Decode("f", []byte(in), &value{}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}

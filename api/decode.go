package api

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sendgate/sendgate"
)

// member is a member of a body for which null is something of its own. The
// zero value was not given.
type member[T any] struct {
	given, null bool
	value       T
}

// UnmarshalJSONFrom reads the member. Given again, it is refused here where
// the decoder was told to let that pass.
func (m *member[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if m.given {
		return jsontext.ErrDuplicateName
	}
	m.given = true
	if d.PeekKind() == 'n' {
		m.null = true
		_, err := d.ReadToken()
		return err
	}
	return json.UnmarshalDecode(d, &m.value)
}

func (*member[T]) takesNull() {}

// require returns the value of a member that must be there, or notes that it
// is missing. null is nothing.
func (m *member[T]) require(field string, errs *sendgate.Errors) T {
	if !m.given || m.null {
		errs.Add(missing(field))
	}
	return m.value
}

func missing(field string) *sendgate.Error {
	return sendgate.Errorf(sendgate.CodeMissingField, field, "is required")
}

// optional is a member that may be left out, and is then nil. It cannot be
// null.
type optional[T any] struct{ value *T }

// UnmarshalJSONFrom reads the member, once.
func (o *optional[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if o.value != nil {
		return jsontext.ErrDuplicateName
	}
	o.value = new(T)
	return json.UnmarshalDecode(d, o.value)
}

// or is the value, or another where it was left out.
func (o *optional[T]) or(other T) T {
	if o.value == nil {
		return other
	}
	return *o.value
}

var (
	errNull     = errors.New("null is not legal here")
	errNoNumber = errors.New("has to be a number")
)

// strict makes the decoder refuse members that it does not know, and null
// wherever nothing says that it means something: by itself it would turn null
// into the empty value. Members are told apart by case, duplicates refused and
// UTF-8 demanded without being asked.
var strict = json.JoinOptions(json.RejectUnknownMembers(true), json.WithUnmarshalers(json.UnmarshalFromFunc(
	func(d *jsontext.Decoder, v any) error {
		if d.PeekKind() != 'n' {
			return errors.ErrUnsupported
		}
		if _, ok := v.(interface{ takesNull() }); ok {
			return errors.ErrUnsupported
		}
		return errNull
	})))

// decode reads one JSON text, all of it.
func decode(data []byte, into any, options ...json.Options) error {
	err := json.Unmarshal(data, into, append(options, strict)...)
	if err == nil {
		return nil
	}
	var own *sendgate.Error
	if errors.As(err, &own) {
		return own
	}
	return decodeFault(err)
}

// decodeFault turns what the decoder says into a refusal.
func decodeFault(err error) *sendgate.Error {
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	var at jsontext.Pointer
	switch {
	case errors.As(err, &syntactic):
		at = syntactic.JSONPointer
	case errors.As(err, &semantic):
		at = semantic.JSONPointer
	}
	field := fieldOf(at)
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return sendgate.Errorf(sendgate.CodeUnknownField, field, "no such member is known here")
	case errors.Is(err, jsontext.ErrDuplicateName):
		return sendgate.Errorf(sendgate.CodeDuplicateField, field, "the member is given twice")
	case syntactic != nil:
		return sendgate.Errorf(sendgate.CodeMalformedJSON, field, "not valid JSON at byte %d", syntactic.ByteOffset)
	case semantic != nil && (errors.Is(err, errNull) || errors.Is(err, errNoNumber)):
		return sendgate.Errorf(sendgate.CodeMalformedJSON, field, "%v", semantic.Err)
	case semantic != nil:
		return sendgate.Errorf(sendgate.CodeMalformedJSON, field, "has to be %s", kindOf(semantic.GoType))
	}
	return sendgate.Errorf(sendgate.CodeMalformedJSON, field, "not the JSON that is expected here")
}

// kindOf names what JSON a type is read from.
func kindOf(t reflect.Type) string {
	if t == nil {
		return "of another type"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "an array"
	case reflect.Map, reflect.Struct:
		return "an object"
	default:
		return "of another type"
	}
}

// arrays are the members whose elements are numbered in a field's path. A
// number below any other member is a name.
var arrays = []string{"checks", "preferences", "frequency_caps", "holds", "days", "by", "values", "limits"}

// maxFieldTokens bounds a path in an answer; no body that is legal goes deeper.
const maxFieldTokens = 8

// fieldOf writes a JSON pointer as callers know fields:
// `preferences[3].channel`.
func fieldOf(at jsontext.Pointer) string {
	var b strings.Builder
	last, tokens := "", 0
	for token := range at.Tokens() {
		if tokens++; tokens > maxFieldTokens {
			b.WriteString(".…")
			break
		}
		if _, err := strconv.ParseUint(token, 10, 32); err == nil && slices.Contains(arrays, last) {
			b.WriteString("[" + token + "]")
		} else {
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(sendgate.Clip(token))
		}
		last = token
	}
	return b.String()
}

package api

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"mime"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sendgate/sendgate"
)

const (
	maxBodyBytes  = 64 << 10
	maxBatchBytes = 2 << 20

	jsonType = "application/json"
)

// body reads the request's JSON text, at most limit bytes of it, into the
// call's room. It is there until the answer is written.
func (c *call) body(limit int64) ([]byte, error) {
	if err := c.checkMediaType(); err != nil {
		return nil, err
	}
	if c.r.ContentLength > limit {
		return nil, bodyTooLarge(limit)
	}
	var err error
	if n := int(c.r.ContentLength); n > 0 { // and net/http gives no byte more
		c.room = slices.Grow(c.room[:0], n)[:n]
		_, err = io.ReadFull(c.r.Body, c.room)
	} else {
		b := bytes.NewBuffer(c.room[:0])
		_, err = b.ReadFrom(http.MaxBytesReader(c.w, c.r.Body, limit))
		c.room = b.Bytes()
	}
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		return c.room, nil
	case errors.As(err, &tooLarge):
		return nil, bodyTooLarge(limit)
	}
	return nil, &sendgate.Error{Code: sendgate.CodeMalformedJSON, Detail: "the body did not arrive whole", Err: err}
}

// answer is room to write an answer in, once nothing of the body is needed any
// more.
func (c *call) answer() []byte { return c.room[:0] }

// encoded is an answer that was written there.
func (c *call) encoded(text []byte) reply {
	text = append(text, '\n')
	c.room = text
	return reply{text: text}
}

func bodyTooLarge(limit int64) error {
	return sendgate.Errorf(sendgate.CodeBodyTooLarge, "", "at most %d bytes are read here", limit)
}

// checkMediaType refuses what does not say that it is JSON: a form that a
// browser would send from any page, for one. Parameters mean nothing to JSON.
func (c *call) checkMediaType() error {
	given := c.r.Header["Content-Type"]
	if len(given) != 1 {
		return sendgate.Errorf(sendgate.CodeUnsupportedMediaType, "", "one header Content-Type is needed: application/json")
	}
	if given[0] != jsonType { // else there is nothing to parse
		if kind, _, err := mime.ParseMediaType(given[0]); err != nil || kind != jsonType {
			return sendgate.Errorf(sendgate.CodeUnsupportedMediaType, "", "the Content-Type has to be application/json")
		}
	}
	if e := c.r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return sendgate.Errorf(sendgate.CodeUnsupportedMediaType, "", "bodies are read as they are, without a Content-Encoding")
	}
	return nil
}

// write answers with the reply.
func (a reply) write(w http.ResponseWriter, r *http.Request) error {
	if a.etag != "" {
		w.Header().Set("ETag", a.etag)
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	switch text, isYAML := a.body.(yamlText); {
	case isYAML:
		return writeBytes(w, r, a.status, "application/yaml", text)
	case a.text != nil:
		return writeBytes(w, r, a.status, jsonType, a.text)
	case a.parts != nil:
		return writeParts(w, r, a.status, a.parts)
	}
	return writeJSON(w, r, a.status, jsonType, a.body)
}

// writeParts sends JSON part by part, each at once. A caller who is gone gets no
// more of them, so that none is made.
func writeParts(w http.ResponseWriter, r *http.Request, status int, parts iter.Seq2[[]byte, bool]) error {
	begun := false
	for part, last := range parts {
		switch {
		case begun:
		case last: // all there is
			return writeBytes(w, r, status, jsonType, part)
		default:
			w.Header().Set("Content-Type", jsonType)
			w.WriteHeader(status)
			begun = true
		}
		if _, err := w.Write(part); err != nil {
			return nil
		}
		if !last && !flushed(w) {
			return nil
		}
	}
	return nil
}

// flushed sends what was written, if that can be asked for, and tells whether
// anybody is there to read it. Echo's own Flush panics where it cannot be.
func flushed(w http.ResponseWriter) bool {
	if outer, ok := w.(interface{ Unwrap() http.ResponseWriter }); ok {
		w = outer.Unwrap()
	}
	err := http.NewResponseController(w).Flush()
	return err == nil || errors.Is(err, http.ErrNotSupported)
}

// yamlText is a body that is YAML already.
type yamlText []byte

// encodeOptions: bytes that are not UTF-8 can only come from where ids were
// not validated, which is a problem's detail; there they may be repaired.
var encodeOptions = json.JoinOptions(json.Deterministic(true), jsontext.AllowInvalidUTF8(true))

// writeJSON encodes the whole body first, so that what cannot be encoded is an
// error and never half an answer.
func writeJSON(w http.ResponseWriter, r *http.Request, status int, contentType string, body any) error {
	data, err := json.Marshal(body, encodeOptions)
	if err != nil {
		return err
	}
	return writeBytes(w, r, status, contentType, append(data, '\n'))
}

func writeBytes(w http.ResponseWriter, r *http.Request, status int, contentType string, data []byte) error {
	h := w.Header()
	h["Content-Type"] = []string{contentType}
	h["Content-Length"] = []string{strconv.Itoa(len(data))}
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return nil
	}
	_, _ = w.Write(data) // a caller who is gone does not read it
	return nil
}

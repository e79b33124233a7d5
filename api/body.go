package api

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
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

// body reads the request's JSON text, at most limit bytes of it.
func (c *call) body(limit int64) ([]byte, error) {
	if err := c.checkMediaType(); err != nil {
		return nil, err
	}
	if c.r.ContentLength > limit {
		return nil, bodyTooLarge(limit)
	}
	var b bytes.Buffer
	if c.r.ContentLength > 0 {
		b.Grow(int(c.r.ContentLength) + bytes.MinRead)
	}
	_, err := io.Copy(&b, http.MaxBytesReader(c.w, c.r.Body, limit))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, bodyTooLarge(limit)
	case err != nil:
		return nil, &sendgate.Error{Code: sendgate.CodeMalformedJSON, Detail: "the body did not arrive whole", Err: err}
	}
	return b.Bytes(), nil
}

func bodyTooLarge(limit int64) error {
	return sendgate.Errorf(sendgate.CodeBodyTooLarge, "", "at most %d bytes are read here", limit)
}

// checkMediaType refuses what does not say that it is JSON: a form that a
// browser would send from any page, for one. Parameters mean nothing to JSON.
func (c *call) checkMediaType() error {
	given := c.r.Header.Values("Content-Type")
	if len(given) != 1 {
		return sendgate.Errorf(sendgate.CodeUnsupportedMediaType, "", "one header Content-Type is needed: application/json")
	}
	if kind, _, err := mime.ParseMediaType(given[0]); err != nil || kind != jsonType {
		return sendgate.Errorf(sendgate.CodeUnsupportedMediaType, "", "the Content-Type has to be application/json")
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
	if text, ok := a.body.(yamlText); ok {
		return writeBytes(w, r, a.status, "application/yaml", text)
	}
	return writeJSON(w, r, a.status, jsonType, a.body)
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
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return nil
	}
	_, _ = w.Write(data) // a caller who is gone does not read it
	return nil
}

package api

import (
	_ "embed" // the description
	"net/http"
)

// PartState says how a part that the server leans on is.
type PartState uint8

// The states, from best to worst.
const (
	PartOK       PartState = iota
	PartDegraded           // the server answers without it, slower or less exactly
	PartMissing            // without it the server should not be sent requests
)

// String is the state's name in the interface.
func (s PartState) String() string { return [...]string{"ok", "degraded", "missing"}[s] }

// Part is one part that the server leans on.
type Part struct {
	Name   string
	State  PartState
	Detail string // for a person; may be empty
}

type readinessDoc struct {
	Status string    `json:"status"` // of the worst part
	Parts  []partDoc `json:"parts"`
}

type partDoc struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Detail string `json:"detail,omitempty"`
}

// readiness is 503 while a part is missing, with the same document: whoever
// asks wants to know which.
func (s *Server) readiness(*call) (reply, error) {
	worst := PartOK
	var doc readinessDoc
	parts := s.o.Ready()
	if s.ending.Load() {
		parts = append(parts, Part{"shutdown", PartMissing, "the gate is ending and takes no more requests soon"})
	}
	for _, p := range parts {
		worst = max(worst, p.State)
		doc.Parts = append(doc.Parts, partDoc{p.Name, p.State.String(), p.Detail})
	}
	doc.Status = worst.String()
	if worst == PartMissing {
		return reply{status: http.StatusServiceUnavailable, body: doc}, nil
	}
	return reply{body: doc}, nil
}

// health says that the process answers, and nothing of what it leans on.
func (s *Server) health(*call) (reply, error) {
	return reply{body: struct {
		Status string `json:"status"`
	}{"ok"}}, nil
}

func (s *Server) showCatalog(*call) (reply, error) {
	return reply{body: s.o.Gate.Catalog().Spec()}, nil
}

//go:embed openapi.yaml
var description yamlText

func (s *Server) showDescription(*call) (reply, error) { return reply{body: description}, nil }

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/sendgate/sendgate/internal/cli"
)

const (
	askLimit = 10 * time.Second
	mostRead = 1 << 20 // bytes of an answer
)

// asking is what check and explain have in common.
type asking struct {
	URL       string            `default:"http://127.0.0.1:8080" help:"The running gate."`
	ID        string            `help:"The notification's id; a new one if it is left out." placeholder:"ID"`
	User      string            `required:"" placeholder:"ID" help:"The user's id."`
	Topic     string            `required:"" placeholder:"NAME" help:"What the notification is about."`
	Channel   string            `required:"" placeholder:"NAME" help:"How it travels."`
	Campaign  string            `placeholder:"ID" help:"The campaign's id."`
	Sender    string            `placeholder:"ID" help:"The sender's id."`
	Creative  string            `placeholder:"ID" help:"The creative's id."`
	Household string            `placeholder:"ID" help:"The household's id."`
	Device    string            `placeholder:"ID" help:"The device's id."`
	Attribute map[string]string `help:"A named attribute." placeholder:"NAME=VALUE"`
	Priority  string            `placeholder:"WORD" help:"low, normal or high."`
	JSON      bool              `help:"Print the gate's answer as it is."`
}

type checkBody struct {
	NotificationID string            `json:"notification_id"`
	UserID         string            `json:"user_id"`
	Topic          string            `json:"topic"`
	Channel        string            `json:"channel"`
	CampaignID     string            `json:"campaign_id,omitempty"`
	SenderID       string            `json:"sender_id,omitempty"`
	CreativeID     string            `json:"creative_id,omitempty"`
	HouseholdID    string            `json:"household_id,omitempty"`
	DeviceID       string            `json:"device_id,omitempty"`
	Attributes     map[string]string `json:"attributes,omitempty"`
	Priority       string            `json:"priority,omitempty"`
	At             string            `json:"at,omitempty"`
}

func (a asking) body() checkBody {
	id := a.ID
	if id == "" {
		id = "cli_" + ulid.Make().String()
	}
	return checkBody{
		NotificationID: id, UserID: a.User, Topic: a.Topic, Channel: a.Channel, CampaignID: a.Campaign,
		SenderID: a.Sender, CreativeID: a.Creative, HouseholdID: a.Household, DeviceID: a.Device,
		Attributes: a.Attribute, Priority: a.Priority,
	}
}

type checkCmd struct{ asking }

func (c checkCmd) Run(ctx context.Context, s cli.Streams) error {
	return c.ask(ctx, s, "/v1/check", c.body())
}

type explainCmd struct {
	asking
	At string `help:"An instant to judge quiet hours at, such as 2026-12-01T23:00:00Z."`
}

func (c explainCmd) Run(ctx context.Context, s cli.Streams) error {
	body := c.body()
	body.At = c.At
	return c.ask(ctx, s, "/v1/explain", body)
}

// ask posts a body to a gate and prints the answer.
func (a asking) ask(ctx context.Context, s cli.Streams, path string, body checkBody) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if u, err := url.Parse(a.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("--url: must be http://host:port, such as http://127.0.0.1:8080, not %q", a.URL)
	}
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(a.URL, "/")+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("cannot reach a gate (--url says where one listens): %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, mostRead))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return refusal(response.Status, answer)
	}
	if a.JSON {
		_, err = fmt.Fprintln(s.Out, strings.TrimSpace(string(answer)))
		return err
	}
	return printDecision(s.Out, answer)
}

// refusal is a gate's problem document as an error.
func refusal(status string, answer []byte) error {
	var problem struct{ Code, Field, Detail string }
	if err := json.Unmarshal(answer, &problem); err != nil || problem.Code == "" {
		return fmt.Errorf("the gate answered %s", status)
	}
	if problem.Field != "" {
		return fmt.Errorf("%s: %s: %s", problem.Code, problem.Field, problem.Detail)
	}
	return errors.New(problem.Code + ": " + problem.Detail)
}

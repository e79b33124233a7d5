package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
)

// callLimit bounds a call whose caller set no limit: a server that accepts it
// and never answers must not hold up a scan for ever.
const callLimit = 30 * time.Second

// The server's names of what is told apart here.
const (
	codeConditionFailed = "ConditionalCheckFailedException"
	codeMissing         = "ResourceNotFoundException"
	codeInUse           = "ResourceInUseException"
)

// callError is a call that failed. It keeps nothing of the SDK's own error,
// which has the server's words in it.
type callError struct {
	text  string
	code  string // the server's name of it; empty if the server said nothing
	cause error  // the context's, if that has ended
}

func (e *callError) Error() string { return e.text }
func (e *callError) Unwrap() error { return e.cause }

// hasCode tells whether the server refused a call for this reason.
func hasCode(err error, code string) bool {
	var e *callError
	return errors.As(err, &e) && e.code == code
}

// call makes one call about one table.
func call[In, Out any](
	ctx context.Context, s *Store, name, table string, do func(context.Context, *In, ...func(*dynamodb.Options)) (*Out, error), in *In,
) (*Out, error) {
	if s.closed.Load() {
		return nil, ErrClosed
	}
	limited, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("dynamostore: %s was not sent: %w", name, err)
	}
	out, err := do(limited, in)
	if err == nil {
		return out, nil
	}
	e := &callError{}
	reason := e.explain(ctx, limited, err)
	e.text = fmt.Sprintf("dynamostore: %s on the table %q at %s: %s", name, table, s.where, reason)
	return nil, e
}

// explain says why a call failed, without a word that may be a user's id.
func (e *callError) explain(caller, limited context.Context, err error) string {
	var (
		refusal    smithy.APIError
		garbled    *smithy.DeserializationError
		unsendable *smithy.SerializationError
		notSent    *url.Error
		statusCode interface{ HTTPStatusCode() int }
	)
	switch {
	case errors.As(err, &refusal):
		e.code = refusal.ErrorCode()
		reason := e.code
		if errors.As(err, &statusCode) {
			reason = fmt.Sprintf("%s (status %d)", reason, statusCode.HTTPStatusCode())
		}
		if mayQuote(e.code) && refusal.ErrorMessage() != "" {
			reason += ": " + refusal.ErrorMessage()
		}
		return reason
	case caller.Err() != nil:
		e.cause = caller.Err()
		return "no answer before the caller's time was over: " + e.cause.Error()
	case limited.Err() != nil:
		e.cause = limited.Err()
		return fmt.Sprintf("no answer within %s", callLimit)
	case errors.Is(err, errEmptyAnswer):
		return errEmptyAnswer.Error()
	case errors.Is(err, errGarbledAnswer):
		return errGarbledAnswer.Error()
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "the connection ended before the answer did"
	case errors.As(err, &garbled):
		return "the answer is not one of DynamoDB's"
	case errors.As(err, &unsendable):
		return "the SDK cannot send it"
	case errors.As(err, &notSent):
		return notSent.Err.Error()
	}
	// What is left has not been sent: there are no credentials, or no legal
	// endpoint. The SDK's first words name the operation, which stands here
	// already.
	var operation *smithy.OperationError
	if errors.As(err, &operation) {
		err = operation.Err
	}
	return err.Error()
}

// mayQuote tells whether the server's message that goes with a code speaks only
// of tables, rates, permissions and signatures.
func mayQuote(code string) bool {
	switch code {
	case codeMissing, codeInUse, "LimitExceededException",
		"ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException",
		"AccessDeniedException", "UnrecognizedClientException", "ExpiredTokenException", "MissingAuthenticationTokenException",
		"InternalServerError", "ServiceUnavailable":
		return true
	}
	return false
}

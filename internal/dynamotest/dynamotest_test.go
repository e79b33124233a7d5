package dynamotest_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sendgate/sendgate/internal/dynamotest"
	"github.com/sendgate/sendgate/internal/redistest"
)

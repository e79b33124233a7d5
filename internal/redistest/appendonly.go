package redistest

import (
	"context"
	"strings"
)

// AppendOnly has the server keep an append-only file from now on. What it has
// answered is there again after a Kill and a Restart.
func (s *Server) AppendOnly() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	client := s.Client()
	if err := client.ConfigSet(ctx, "appendonly", "yes").Err(); err != nil {
		s.t.Fatalf("redis-server at %s keeps no append-only file: %v", s.Addr(), err)
	}
	// The file begins with a copy of what there is already, made beside.
	Until(s.t, "the append-only file is begun", func() bool {
		info, err := client.Info(ctx, "persistence").Result()
		return err == nil && strings.Contains(info, "aof_rewrite_in_progress:0") &&
			strings.Contains(info, "aof_rewrite_scheduled:0") && strings.Contains(info, "aof_last_bgrewrite_status:ok")
	})
	s.extra = append(s.extra, "--appendonly", "yes")
}

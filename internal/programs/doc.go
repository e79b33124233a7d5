// Package programs runs Sendgate's own programs as processes for tests: it builds
// them as the test itself is built, starts them, and ends them with their test,
// also when the test binary is killed.
package programs

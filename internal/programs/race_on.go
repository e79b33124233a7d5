//go:build race

package programs

// raceFlag builds the programs as the test is built.
const raceFlag = "-race=true"

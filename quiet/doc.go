// Package quiet owns wall-clock quiet hours: the windows in which a person is
// not to be disturbed, the time zones they are read in, and the question of
// when such hours end.
//
// Everything here is pure computation. The package never asks what time it is,
// reads no file and no environment variable, and imports the standard library
// only. The time zone database is part of the binary, so that two machines
// cannot give two answers.
//
// # The rule
//
// An instant is quiet when the local wall clock, read at that instant, lies in
// [start, end) of a window. A window whose start is later than its end runs
// past midnight. The days of a window are the days on which it starts: after
// midnight it is the local date before that is asked, by the calendar, even
// where that date was skipped in the zone. Hours end at the first later instant
// that is outside every window.
//
// All that is odd follows from reading the clock instead of computing with it.
// A wall-clock time that comes twice, on the day the clocks go back, is quiet
// twice. A window that lies wholly in the hour that is skipped never happens.
// An end that is skipped is passed at the instant of the change.
package quiet

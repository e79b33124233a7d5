package quiet

import "testing"

func BenchmarkNextOpen(b *testing.B) {
	night := []Window{mustWindow(b, "22:00", "07:00")}
	office := []Window{mustWindow(b, "09:00", "20:00", "mon", "tue", "wed", "thu", "fri")}
	for _, c := range []struct {
		name  string
		hours Hours
		at    string
	}{
		{"none", Hours{}, "2026-07-15T15:00:00Z"},
		{"open", Hours{Quiet: night}, "2026-07-15T15:00:00Z"},
		{"overnight", Hours{Quiet: night}, "2026-07-15T06:00:00Z"},
		{"days and allowed", Hours{night, office}, "2026-07-18T03:00:00Z"},
		{"over a change", Hours{Quiet: night}, "2026-03-08T04:00:00Z"},
		{"years ahead", Hours{Quiet: night}, "2056-03-12T04:00:00Z"},
		{"never", Hours{[]Window{mustWindow(b, "08:00", "21:00")}, office}, "2026-03-05T04:00:00Z"},
	} {
		b.Run(c.name, func(b *testing.B) {
			at, z := mustTime(b, c.at), mustZone(b, "America/New_York")
			b.ReportAllocs()
			for b.Loop() {
				c.hours.NextOpen(at, z)
			}
		})
	}
}

func BenchmarkLoadZone(b *testing.B) {
	mustZone(b, "Europe/Berlin")
	b.ReportAllocs()
	for b.Loop() {
		_, _ = LoadZone("Europe/Berlin")
	}
}

func BenchmarkCoverWeek(b *testing.B) {
	ws := []Window{mustWindow(b, "22:00", "10:00"), mustWindow(b, "10:00", "22:00")}
	b.ReportAllocs()
	for b.Loop() {
		CoverWeek(ws)
	}
}

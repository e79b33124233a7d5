package sendgate

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sendgate/sendgate/quiet"
)

// CodeInvalidCatalog marks a fault of the catalog. Field is the path of the
// member at fault, such as `categories.marketing.caps[0].window`.
const CodeInvalidCatalog Code = "invalid_catalog"

var catalogName = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,63}$`)

// presets are the settings that a category's class stands for. An essential
// category has none: nothing but a hard hold stops it.
var presets = map[string]Category{
	"essential":     {Essential: true, InQuietHours: QuietIgnore, OnUnverifiable: UnverifiableAllow},
	"transactional": {FilterHit: HitVerify, InQuietHours: QuietIgnore, OnCap: CapSuppress, OnUnverifiable: UnverifiableAllow},
	"marketing":     {FilterHit: HitReject, InQuietHours: QuietDefer, OnCap: CapSuppress, OnUnverifiable: UnverifiableSuppress},
}

// NewCatalog validates a catalog as a whole and compiles it. It returns every
// fault found, as *Error or Errors with CodeInvalidCatalog, or the catalog.
func NewCatalog(spec CatalogSpec) (*Catalog, error) {
	b := catalogBuilder{c: &Catalog{spec: spec, topics: map[string]*Topic{}, categories: map[string]*Category{}}}
	b.zone()
	b.channels()
	if len(spec.Categories) == 0 {
		b.fault("categories", "at least one category is needed")
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Categories)) {
		b.category(name, spec.Categories[name])
	}
	if len(spec.Topics) == 0 {
		b.fault("topics", "at least one topic is needed")
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Topics)) {
		b.topic(name, spec.Topics[name])
	}
	if err := b.errs.Err(); err != nil {
		return nil, err
	}
	return b.c, nil
}

type catalogBuilder struct {
	c    *Catalog
	errs Errors
}

func (b *catalogBuilder) fault(field, format string, args ...any) {
	b.errs.Add(Errorf(CodeInvalidCatalog, field, format, args...))
}

func (b *catalogBuilder) name(field, kind, name string) {
	if !catalogName.MatchString(name) {
		b.fault(field, "the name of a %s is 1 to 64 of a-z, 0-9, _, . and -, and starts with a letter or digit", kind)
	}
}

func (b *catalogBuilder) zone() {
	name := b.c.spec.DefaultTimezone
	if name == "" {
		b.fault("default_timezone", "is required, for instance UTC")
		return
	}
	zone, err := quiet.LoadZone(name)
	if err != nil {
		b.fault("default_timezone", "%s", faultOf(err))
	}
	b.c.zone = zone
}

func (b *catalogBuilder) channels() {
	if len(b.c.spec.Channels) == 0 {
		b.fault("channels", "at least one channel is needed")
	}
	for i, name := range b.c.spec.Channels {
		field := index("channels", i)
		b.name(field, "channel", name)
		if b.c.HasChannel(name) {
			b.fault(field, "channel %q is declared twice", name)
			continue
		}
		b.c.channels = append(b.c.channels, name)
	}
}

func (b *catalogBuilder) topic(name string, spec TopicSpec) {
	path := "topics." + name
	b.name(path, "topic", name)
	t := &Topic{Name: name, defaults: map[string]bool{}}
	t.Category = b.c.categories[spec.Category]
	switch {
	case spec.Category == "":
		b.fault(path, "a category is required")
	case t.Category == nil:
		b.fault(path+".category", "there is no category %q", Clip(spec.Category))
	}
	def := b.toggle(path+".default", spec.Default, t.Category)
	for _, channel := range b.c.channels {
		t.defaults[channel] = def
	}
	for _, channel := range slices.Sorted(maps.Keys(spec.Channels)) {
		field := path + ".channels." + channel
		if !b.c.HasChannel(channel) {
			b.fault(field, "there is no channel %q", Clip(channel))
		}
		t.defaults[channel] = b.toggle(field, spec.Channels[channel], t.Category)
	}
	b.c.topics[name] = t
}

// toggle reads `on` or `off`; nothing is on.
func (b *catalogBuilder) toggle(field, word string, of *Category) bool {
	on := true
	choose(b, field, word, &on, choices[bool]{{"on", true}, {"off", false}})
	if !on && of != nil && of.Essential {
		b.fault(field, "an essential topic cannot be off by default")
	}
	return on
}

func (b *catalogBuilder) category(name string, spec CategorySpec) {
	path := "categories." + name
	b.name(path, "category", name)
	cat, ok := presets[spec.Class]
	switch {
	case spec.Class == "":
		b.fault(path, "a class is required: essential, transactional or marketing")
	case !ok:
		b.fault(path+".class", "must be essential, transactional or marketing, not %q", Clip(spec.Class))
	}
	cat.Name = name
	b.c.categories[name] = &cat
	if cat.Essential {
		b.refuseEssential(path, spec)
		return
	}
	choose(b, path+".filter_hit", spec.FilterHit, &cat.FilterHit, choices[FilterHit]{{"reject", HitReject}, {"verify", HitVerify}})
	choose(b, path+".in_quiet_hours", spec.InQuietHours, &cat.InQuietHours, choices[QuietPolicy]{{"defer", QuietDefer}, {"suppress", QuietSuppress}, {"ignore", QuietIgnore}})
	choose(b, path+".on_cap", spec.OnCap, &cat.OnCap, choices[CapPolicy]{{"suppress", CapSuppress}, {"defer", CapDefer}})
	choose(b, path+".on_unverifiable", spec.OnUnverifiable, &cat.OnUnverifiable, unverifiablePolicies)
	b.counting(path, spec, &cat)
	for i, c := range spec.Caps {
		b.cap(index(path+".caps", i), c, &cat)
	}
	b.userCaps(path+".user_caps", spec.UserCaps, &cat)
	b.allowedHours(path, spec.AllowedHours, &cat)
}

func (b *catalogBuilder) refuseEssential(path string, spec CategorySpec) {
	for _, m := range []struct {
		name string
		set  bool
	}{
		{"filter_hit", spec.FilterHit != ""}, {"in_quiet_hours", spec.InQuietHours != ""}, {"on_cap", spec.OnCap != ""},
		{"on_unverifiable", spec.OnUnverifiable != ""}, {"count", spec.Count != ""}, {"hold", spec.Hold != ""},
		{"caps", spec.Caps != nil}, {"user_caps", spec.UserCaps != nil}, {"allowed_hours", spec.AllowedHours != nil},
	} {
		if m.set {
			b.fault(path+"."+m.name, "an essential category takes no %s: nothing but a hard hold stops it", m.name)
		}
	}
}

var unverifiablePolicies = choices[UnverifiablePolicy]{{"suppress", UnverifiableSuppress}, {"allow", UnverifiableAllow}}

// choices are the words for the values of a policy.
type choices[T any] []struct {
	word  string
	value T
}

// choose overrides a preset where a word is given.
func choose[T any](b *catalogBuilder, field, word string, into *T, among choices[T]) {
	if word == "" {
		return
	}
	words := make([]string, 0, len(among))
	for _, c := range among {
		if c.word == word {
			*into = c.value
			return
		}
		words = append(words, c.word)
	}
	b.fault(field, "must be %s, not %q", strings.Join(words, " or "), Clip(word))
}

func (b *catalogBuilder) userCaps(path string, spec *UserCapsSpec, cat *Category) {
	switch {
	case spec == nil:
		return
	case spec.Ceiling == nil:
		b.fault(path, "a ceiling is required")
	case *spec.Ceiling < 0 || *spec.Ceiling > MaxCapLimit:
		b.fault(path+".ceiling", "must be from 0 to %d", MaxCapLimit)
	default:
		cat.UserCaps, cat.UserCapCeiling = true, *spec.Ceiling
	}
}

// maxAllowedHours bounds the windows of one category on one channel, all of
// which are looked at for every instant that is judged.
const maxAllowedHours = 16

func (b *catalogBuilder) allowedHours(path string, specs []AllowedHoursSpec, cat *Category) {
	for i, spec := range specs {
		at := index(path+".allowed_hours", i)
		w, err := quiet.NewWindow(spec.Start, spec.End, spec.Days)
		if err != nil {
			field, why := at, faultOf(err)
			var qe *quiet.Error
			if errors.As(err, &qe) {
				field = at + "." + qe.Field
			}
			b.fault(field, "%s", why)
			continue
		}
		channels := spec.Channels
		if len(channels) == 0 {
			channels = b.c.channels
		}
		for j, channel := range channels {
			if !b.c.HasChannel(channel) {
				b.fault(index(at+".channels", j), "there is no channel %q", Clip(channel))
				continue
			}
			if cat.allowed == nil {
				cat.allowed = map[string][]quiet.Window{}
			}
			if len(cat.allowed[channel]) == maxAllowedHours {
				b.fault(at, "a category has at most %d windows of allowed hours on one channel, and %s has them", maxAllowedHours, channel)
				continue
			}
			cat.allowed[channel] = append(cat.allowed[channel], w)
		}
	}
	if cat.allowed != nil && cat.InQuietHours == QuietIgnore {
		b.fault(path+".allowed_hours", "in_quiet_hours is ignore, so that allowed hours would do nothing")
	}
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// faultOf is the sentence of a fault that package quiet found.
func faultOf(err error) string {
	var qe *quiet.Error
	if errors.As(err, &qe) {
		return qe.Detail
	}
	return fmt.Sprint(err)
}

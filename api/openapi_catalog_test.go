package api

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pb33f/libopenapi/datamodel/high/base"

	"github.com/sendgate/sendgate"
)

// TestTheCatalogIsDescribed holds the schema of the catalog against the types that
// are written as it: each has the members of the other, required where they are
// always written. The validator does not look into what additionalProperties
// describes.
func TestTheCatalogIsDescribed(t *testing.T) {
	schema := readContract(t).model.Components.Schemas.GetOrZero("Catalog")
	sameMembers(t, "catalog", reflect.TypeFor[sendgate.CatalogSpec](), schema)
}

func sameMembers(t *testing.T, path string, of reflect.Type, described *base.SchemaProxy) {
	t.Helper()
	schema := described.Schema()
	switch of.Kind() {
	case reflect.Pointer:
		sameMembers(t, path, of.Elem(), described)
	case reflect.Slice:
		sameMembers(t, path+"[]", of.Elem(), schema.Items.A)
	case reflect.Map:
		sameMembers(t, path+".*", of.Elem(), schema.AdditionalProperties.A)
	case reflect.Struct:
		var written, always, known []string
		for member := range of.Fields() {
			name, options, _ := strings.Cut(member.Tag.Get("json"), ",")
			if written = append(written, name); options == "" {
				always = append(always, name)
			}
			if property, ok := schema.Properties.Get(name); ok {
				sameMembers(t, path+"."+name, member.Type, property)
			}
		}
		for name := range schema.Properties.KeysFromOldest() {
			known = append(known, name)
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(known)), slices.Sorted(slices.Values(written))); diff != "" {
			t.Errorf("%s: described (-), written (+):\n%s", path, diff)
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(schema.Required)), slices.Sorted(slices.Values(always))); diff != "" {
			t.Errorf("%s: required (-), always written (+):\n%s", path, diff)
		}
	default:
	}
}

// TestEveryMemberOfTheCatalogIsShown sends what a catalog says through the
// interface: nothing of it is lost, and what it leaves out is left out. An answer
// says what is not as it is by default.
func TestEveryMemberOfTheCatalogIsShown(t *testing.T) {
	for _, c := range []struct {
		name  string
		cap   sendgate.CapSpec
		want  string
		state string // how an answer tells of the cap
	}{
		{"the least", sendgate.CapSpec{By: []sendgate.Field{}, Window: "24h", Limit: ptr(0)}, `{"by":[],"window":"24h","limit":0}`,
			`{"by":[],"window":"24h","limit":0,"used":0}`},
		{"buckets", sendgate.CapSpec{Kind: "buckets", Subject: "household_id", By: []sendgate.Field{"channel"}, Window: "24h", Buckets: ptr(48), Remember: "1h", Limit: ptr(9)},
			`{"kind":"buckets","subject":"household_id","by":["channel"],"window":"24h","buckets":48,"remember":"1h","limit":9}`,
			`{"kind":"buckets","subject":"household_id","by":["channel"],"window":"24h","limit":9,"used":1,"resets_at":`},
		{"the calendar", sendgate.CapSpec{Kind: "calendar", By: []sendgate.Field{"topic"}, Window: "month", Limit: ptr(3), Keep: &sendgate.KeepSpec{Slots: 1, For: "high"}, OnUnverifiable: "allow"},
			`{"kind":"calendar","by":["topic"],"window":"month","limit":3,"keep":{"slots":1,"for":"high"},"on_unverifiable":"allow"}`,
			`{"kind":"calendar","by":["topic"],"window":"month","limit":3,"kept":1,"kept_for":"high","used":1,"resets_at":`},
	} {
		contract, st := readContract(t), newStack(t)
		spec := st.server.o.Gate.Catalog().Spec()
		spec.Categories["marketing"] = sendgate.CategorySpec{Class: "marketing", Count: "on_delivery", Hold: "5m", Caps: []sendgate.CapSpec{c.cap}}
		catalog, err := sendgate.NewCatalog(spec)
		if err != nil {
			t.Fatal(err)
		}
		st.server.o.Gate.SetCatalog(catalog)
		want := `"marketing":{"class":"marketing","count":"on_delivery","hold":"5m","caps":[` + c.want + `]}`
		if got := contract.holds(st, 200, "GET", "/v1/catalog", ""); !strings.Contains(string(got.body), want) {
			t.Errorf("%s: %s\nhas no\n%s", c.name, got.body, want)
		}
		check := `{"notification_id":"n","user_id":"u","topic":"promotions","channel":"push","household_id":"h"}`
		if got := contract.holds(st, 200, "POST", "/v1/check", check); !strings.Contains(string(got.body), c.state) {
			t.Errorf("%s: %s\nhas no\n%s", c.name, got.body, c.state)
		}
	}
}

// Package catalogfile reads the operator's catalog from YAML. A catalog is
// taken whole or not at all, and every fault is shown with its line. The
// sample catalog, which `gate dev` begins with, is here too.
package catalogfile

import (
	"bytes"
	_ "embed" // the sample

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/yamlfile"
)

//go:embed sample.yaml
var sample []byte

// Sample is the sample catalog.
func Sample() *sendgate.Catalog {
	c, err := Parse("sample.yaml", sample)
	if err != nil {
		panic(err) // it is part of the program, and a test reads it
	}
	return c
}

// SampleYAML is the text of the sample catalog.
func SampleYAML() []byte { return bytes.Clone(sample) }

// Load reads a catalog file.
func Load(path string) (*sendgate.Catalog, error) {
	var spec sendgate.CatalogSpec
	file, err := yamlfile.Read(path, &spec)
	if err != nil {
		return nil, err
	}
	return build(file, spec)
}

// Parse reads a catalog from its text. name stands for it in errors.
func Parse(name string, data []byte) (*sendgate.Catalog, error) {
	var spec sendgate.CatalogSpec
	file, err := yamlfile.Decode(name, data, &spec)
	if err != nil {
		return nil, err
	}
	return build(file, spec)
}

func build(file *yamlfile.File, spec sendgate.CatalogSpec) (*sendgate.Catalog, error) {
	catalog, err := sendgate.NewCatalog(spec)
	if err != nil {
		return nil, file.Locate(err)
	}
	return catalog, nil
}

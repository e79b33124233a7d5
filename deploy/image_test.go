package deploy_test

import (
	"bytes"
	"context"
	"debug/elf"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
)

const (
	binaries      = "/usr/local/bin"              // where the image has its programs
	imageBinaries = " -o /image" + binaries + "/" // where the Dockerfile has them compiled to
	version       = "v1.2.3-test"
)

// buildCommand is the line of shell that the Dockerfile compiles with.
func buildCommand(t *testing.T) string {
	t.Helper()
	return shellOf(t, stagesOf(t, "Dockerfile")[0], "go build")
}

func packagesBuilt(t *testing.T) (packages []string) {
	t.Helper()
	for _, word := range strings.Fields(buildCommand(t)) {
		if strings.HasPrefix(word, "./") {
			packages = append(packages, word)
		}
	}
	return packages
}

// TestTheBuildMakesNothingDynamic holds the Dockerfile to the flags that a
// program in an empty root needs.
func TestTheBuildMakesNothingDynamic(t *testing.T) {
	command := buildCommand(t)
	if !strings.Contains(command, " -trimpath ") || !strings.Contains(command, imageBinaries) {
		t.Errorf("the build is %q", command)
	}
	env := one[*instructions.EnvCommand](t, stagesOf(t, "Dockerfile")[0]).Env
	if !slices.ContainsFunc(env, func(p instructions.KeyValuePair) bool { return p.Key == "CGO_ENABLED" && p.Value == "0" }) {
		t.Errorf("the environment of the build is %v", env)
	}
	if want := []string{"./cmd/gate", "./cmd/bloombuilder"}; !slices.Equal(packagesBuilt(t), want) {
		t.Errorf("built are %v, want %v", packagesBuilt(t), want)
	}
}

// built compiles the programs once, by the command of the Dockerfile, and
// returns their folder.
var built = struct {
	once   sync.Once
	folder string
	err    error
}{}

func programs(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		if built.folder, built.err = os.MkdirTemp("", "sendgate-deploy-"); built.err != nil {
			return
		}
		cmd := exec.Command("sh", "-c", strings.Replace(buildCommand(t), imageBinaries, " -o "+built.folder+"/", 1))
		cmd.Dir, cmd.Stderr, cmd.Env = root, os.Stderr, append(os.Environ(), "CGO_ENABLED=0", "VERSION="+version)
		built.err = cmd.Run()
	})
	if built.err != nil {
		t.Fatalf("build as the Dockerfile does: %v", built.err)
	}
	return built.folder
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.folder != "" {
		_ = os.RemoveAll(built.folder)
	}
	os.Exit(code)
}

// TestTheProgramsAreStatic: no interpreter is asked for, and no library.
func TestTheProgramsAreStatic(t *testing.T) {
	folder := programs(t)
	for _, pkg := range packagesBuilt(t) {
		f, err := elf.Open(filepath.Join(folder, filepath.Base(pkg)))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
				t.Errorf("%s has a segment %s", pkg, p.Type)
			}
		}
		if libraries, err := f.ImportedLibraries(); err != nil || len(libraries) > 0 {
			t.Errorf("%s needs %v (%v)", pkg, libraries, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// container is a root folder that has what the image has, less the certificates.
type container struct {
	root string
	user uint32
}

// program is one that runs in a container.
type program struct {
	*exec.Cmd
	log *bytes.Buffer // to be read once it has ended
}

// imageUser is the number of the image's user and group.
func imageUser(t *testing.T) uint32 {
	t.Helper()
	stages := stagesOf(t, "Dockerfile")
	user, group, _ := strings.Cut(one[*instructions.UserCommand](t, stages[len(stages)-1]).User, ":")
	number, err := strconv.ParseUint(user, 10, 31)
	if err != nil || user != group {
		t.Fatalf("the image's user is %s:%s", user, group)
	}
	return uint32(number)
}

// newContainer makes a root folder with the programs and folders that its user
// owns, and may write to nothing else.
func newContainer(t *testing.T, folders ...string) *container {
	t.Helper()
	c := &container{root: t.TempDir(), user: imageUser(t)}
	for _, folder := range append(folders, binaries) {
		if err := os.MkdirAll(c.path(folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, pkg := range packagesBuilt(t) {
		name := filepath.Base(pkg)
		code, err := os.ReadFile(filepath.Join(programs(t), name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(c.path(binaries, name), code, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getuid() == 0 {
		for _, folder := range folders {
			if err := os.Chown(c.path(folder), int(c.user), int(c.user)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c
}

func (c *container) path(parts ...string) string {
	return filepath.Join(append([]string{c.root}, parts...)...)
}

// mount copies a file of this repository to where the container expects it.
func (c *container) mount(t *testing.T, source, target string) {
	t.Helper()
	data, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(c.path(target)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.path(target), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// command is a program in the container, not started: its root is the folder,
// its user the image's, its environment nothing but what is given. Who is not
// root does that in a user namespace.
func (c *container) command(t *testing.T, env []string, name string, args ...string) program {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	cmd := program{exec.CommandContext(ctx, filepath.Join(binaries, name), args...), new(bytes.Buffer)}
	cmd.Dir, cmd.Env, cmd.Stderr = "/", append([]string{"PATH=" + binaries}, env...), cmd.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: c.root, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: c.user, Gid: c.user}
	} else {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: int(c.user), HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: int(c.user), HostID: os.Getgid(), Size: 1}}
	}
	return cmd
}

// files lists what is in the container but the programs.
func (c *container) files(t *testing.T) (names []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(c.root), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && "/"+filepath.Dir(path) != binaries {
			names = append(names, "/"+path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
)

type object = map[string]any

// cloud is the pretended organization: a file of objects by kind and id, and the servers that stand for its services.
type cloud struct {
	alone                          sync.Mutex
	file, bootstrap, registry, iam string
	objects                        map[string]map[string]object
}

func newCloud() (*cloud, error) {
	c := &cloud{
		file:      os.Getenv("CONFLUENT_STANDIN_STATE"),
		bootstrap: os.Getenv("CONFLUENT_STANDIN_BOOTSTRAP"),
		registry:  os.Getenv("CONFLUENT_STANDIN_REGISTRY"),
		iam:       os.Getenv("CONFLUENT_STANDIN_IAM"),
	}
	if c.file == "" || c.bootstrap == "" || c.registry == "" {
		return nil, errors.New("this is a stand-in for Confluent: CONFLUENT_STANDIN_STATE (a file), " +
			"CONFLUENT_STANDIN_BOOTSTRAP (a broker) and CONFLUENT_STANDIN_REGISTRY (a registry) must be set")
	}
	return c, nil
}

// during does something with the organization, and writes down what has changed, also when it failed half-way. Nobody
// else does anything meanwhile: Terraform works on resources at the same time, in one process a stack.
func (c *cloud) during(do func() error) error {
	c.alone.Lock()
	defer c.alone.Unlock()
	lock, err := os.OpenFile(c.file+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	if err := c.load(); err != nil {
		return err
	}
	return errors.Join(do(), c.save())
}

func (c *cloud) load() error {
	c.objects = map[string]map[string]object{}
	raw, err := os.ReadFile(c.file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &c.objects); err != nil {
		return fmt.Errorf("%s: %w", c.file, err)
	}
	return nil
}

func (c *cloud) save() error {
	raw, err := json.MarshalIndent(c.objects, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.file+".unfinished", append(raw, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(c.file+".unfinished", c.file)
}

func (c *cloud) put(kind, id string, o object) {
	if c.objects[kind] == nil {
		c.objects[kind] = map[string]object{}
	}
	c.objects[kind][id] = o
}

// needed is an object that something else names. That it is not there may mean that it is not there yet.
func (c *cloud) needed(kind, id string) (object, error) {
	if o := c.objects[kind][id]; o != nil {
		return o, nil
	}
	return nil, fmt.Errorf("404 Not Found: there is no confluent_%s %q (yet: is a depends_on missing?)", kind, id)
}

// userOf names an object that is part of another one: Confluent refuses to delete what has parts.
func (c *cloud) userOf(kind, id string) string {
	for child, k := range kinds {
		for path, parent := range k.partOf {
			for childID, o := range c.objects[child] {
				if parent == kind && stored(o, path) == id {
					return "confluent_" + child + " " + childID
				}
			}
		}
	}
	return ""
}

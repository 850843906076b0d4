package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

// kind is a type of resource: what it takes, and what Confluent does with it. Only arguments and id must be there.
type kind struct {
	arguments attributes
	// id of what is made of these arguments.
	id func(d *schema.ResourceData) string
	// partOf says, by the path of an argument, of which kind the object is that this is a part of.
	partOf map[string]string
	// may says whether the credentials are good for it; asked before anything is done.
	may func(c *cloud, d *schema.ResourceData) error
	// fits says whether all else is there that Confluent looks for when one is made.
	fits func(c *cloud, d *schema.ResourceData) error
	// filled are the attributes that Confluent fills in when one is made.
	filled func(c *cloud, d *schema.ResourceData) object
	// shown are those that it tells anew each time.
	shown func(c *cloud, id string) object
	plan  schema.CustomizeDiffFunc
	// outside is the real thing that the resource stands for, if there is one.
	outside outside
	// gone is what goes with one.
	gone func(c *cloud, id string)
}

// outside is what is on the broker or in the registry, and not in the file only.
type outside interface {
	create(c *cloud, d *schema.ResourceData) error
	read(c *cloud, d *schema.ResourceData) (isThere bool, err error)
	update(c *cloud, d *schema.ResourceData) error
	delete(c *cloud, d *schema.ResourceData) error
}

type step = func(*cloud, *schema.ResourceData) error

func (k kind) resource(name string) *schema.Resource {
	run := func(do step) func(context.Context, *schema.ResourceData, any) diag.Diagnostics {
		return func(_ context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
			c := meta.(*cloud)
			err := c.during(func() error {
				if k.may != nil {
					if err := k.may(c, d); err != nil {
						return err
					}
				}
				return do(c, d)
			})
			if err != nil {
				return diag.Errorf("confluent_%s %s: %s", name, d.Id(), err)
			}
			return nil
		}
	}
	r := &schema.Resource{
		Schema:        k.arguments,
		CustomizeDiff: k.plan,
		CreateContext: run(func(c *cloud, d *schema.ResourceData) error { return k.create(c, d, name) }),
		ReadContext:   run(func(c *cloud, d *schema.ResourceData) error { return k.read(c, d, name) }),
		DeleteContext: run(func(c *cloud, d *schema.ResourceData) error { return k.delete(c, d, name) }),
	}
	for _, argument := range k.arguments {
		if (argument.Required || argument.Optional) && !argument.ForceNew {
			// The SDK refuses a function for what can only be replaced.
			r.UpdateContext = run(func(c *cloud, d *schema.ResourceData) error { return k.update(c, d, name) })
		}
	}
	return r
}

func (k kind) create(c *cloud, d *schema.ResourceData, name string) error {
	id := k.id(d)
	if k.outside == nil && c.objects[name][id] != nil {
		return fmt.Errorf("409 Conflict: %s is there already", id)
	}
	for path, parent := range k.partOf {
		if wanted := given(d, path); wanted != "" {
			if _, err := c.needed(parent, wanted); err != nil {
				return err
			}
		}
	}
	if k.fits != nil {
		if err := k.fits(c, d); err != nil {
			return err
		}
	}
	if k.outside != nil {
		if err := k.outside.create(c, d); err != nil {
			return err
		}
	}
	d.SetId(id)
	o := k.kept(d)
	if k.filled != nil {
		for attribute, value := range k.filled(c, d) {
			o[attribute] = value
		}
	}
	c.put(name, id, o)
	return k.read(c, d, name)
}

// read shows what is there, so that whatever was changed behind Terraform's back is seen.
func (k kind) read(c *cloud, d *schema.ResourceData, name string) error {
	o := c.objects[name][d.Id()]
	if o == nil {
		d.SetId("")
		return nil
	}
	if err := show(d, o); err != nil {
		return err
	}
	if k.shown != nil {
		if err := show(d, k.shown(c, d.Id())); err != nil {
			return err
		}
	}
	if k.outside == nil {
		return nil
	}
	isThere, err := k.outside.read(c, d)
	if err == nil && !isThere {
		delete(c.objects[name], d.Id())
		d.SetId("")
	}
	return err
}

func (k kind) update(c *cloud, d *schema.ResourceData, name string) error {
	if k.outside != nil {
		if err := k.outside.update(c, d); err != nil {
			d.Partial(true) // else Terraform would take what was wanted for what is there
			return err
		}
	}
	o := c.objects[name][d.Id()]
	for attribute, value := range k.kept(d) {
		if argument := k.arguments[attribute]; argument.Required || argument.Optional {
			o[attribute] = value
		}
	}
	return k.read(c, d, name)
}

func (k kind) delete(c *cloud, d *schema.ResourceData, name string) error {
	if user := c.userOf(name, d.Id()); user != "" {
		return fmt.Errorf("409 Conflict: %s is a part of it", user)
	}
	if isOn, _ := c.objects[name][d.Id()]["deletion_protection"].(bool); isOn {
		return errors.New("deletion_protection is on")
	}
	if k.outside != nil {
		if err := k.outside.delete(c, d); err != nil {
			return err
		}
	}
	if k.gone != nil {
		k.gone(c, d.Id())
	}
	delete(c.objects[name], d.Id())
	return nil
}

// kept are the arguments as the file has them: without credentials.
func (k kind) kept(d *schema.ResourceData) object {
	o := object{}
	for attribute := range k.arguments {
		if attribute == "credentials" {
			continue
		}
		o[attribute] = d.Get(attribute)
		if set, is := o[attribute].(*schema.Set); is {
			o[attribute] = set.List()
		}
	}
	return o
}

func show(d *schema.ResourceData, o object) error {
	for attribute, value := range o {
		if err := d.Set(attribute, value); err != nil {
			return fmt.Errorf("%s: %w", attribute, err)
		}
	}
	return nil
}

// given is the text at a path of arguments, like "environment.0.id"; stored is that of an object in the file.
func given(d *schema.ResourceData, path string) string {
	found, _ := d.Get(path).(string)
	return found
}

func stored(o object, path string) string {
	steps := strings.Split(path, ".0.")
	value := o[steps[0]]
	for _, name := range steps[1:] {
		list, _ := value.([]any)
		if len(list) == 0 {
			return ""
		}
		inner, _ := list[0].(object)
		value = inner[name]
	}
	found, _ := value.(string)
	return found
}

// hashed is an id of a prefix and a hash of what names the object; joined is one that is made of the names themselves.
func hashed(prefix string, paths ...string) func(*schema.ResourceData) string {
	return func(d *schema.ResourceData) string {
		sum := sha256.New()
		for _, path := range paths {
			fmt.Fprintf(sum, "%s\x00", given(d, path))
		}
		return prefix + hex.EncodeToString(sum.Sum(nil))[:6]
	}
}

func joined(paths ...string) func(*schema.ResourceData) string {
	return func(d *schema.ResourceData) string {
		parts := make([]string, 0, len(paths))
		for _, path := range paths {
			parts = append(parts, given(d, path))
		}
		return strings.Join(parts, "/")
	}
}

package main

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

// lookUp is a data source: how something that exists is found, and what is told of it.
type lookUp struct {
	arguments attributes
	find      func(c *cloud, d *schema.ResourceData) (id string, err error)
	shown     func(c *cloud, id string) object
}

func (l lookUp) source(name string) *schema.Resource {
	return &schema.Resource{
		Schema: l.arguments,
		ReadContext: func(_ context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
			c := meta.(*cloud)
			err := c.during(func() error {
				id, err := l.find(c, d)
				if err != nil {
					return err
				}
				d.SetId(id)
				told := object{"id": id}
				for _, part := range []object{c.objects[name][id], l.shown(c, id)} {
					for attribute, value := range part {
						if l.arguments[attribute] != nil {
							told[attribute] = value
						}
					}
				}
				return show(d, told)
			})
			if err != nil {
				return diag.Errorf("confluent_%s: %s", name, err)
			}
			return nil
		},
	}
}

// byIDOrName finds an object by its id, or by its name within the environment that is given, if one is.
func byIDOrName(kind string) func(*cloud, *schema.ResourceData) (string, error) {
	return func(c *cloud, d *schema.ResourceData) (string, error) {
		environment, id, name := given(d, "environment.0.id"), given(d, "id"), given(d, "display_name")
		for found, o := range c.objects[kind] {
			isThere := environment == "" || stored(o, "environment.0.id") == environment
			if isThere && (found == id || id == "" && name != "" && o["display_name"] == name) {
				return found, nil
			}
		}
		return "", fmt.Errorf("404 Not Found: there is no confluent_%s %q", kind, id+name)
	}
}

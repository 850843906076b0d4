package main

import (
	"regexp"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/validation"
)

type (
	attributes = map[string]*schema.Schema
	trait      = func(*schema.Schema)
)

func required(s *schema.Schema)  { s.Required = true }
func optional(s *schema.Schema)  { s.Optional = true }
func computed(s *schema.Schema)  { s.Computed = true }
func sensitive(s *schema.Schema) { s.Sensitive = true }

// defaulted is optional, and Confluent fills it in if it is left out.
func defaulted(s *schema.Schema) { s.Optional, s.Computed = true, true }

// fixed: a change of it replaces the resource.
func fixed(s *schema.Schema) { s.ForceNew = true }

func standard(value any) trait { return func(s *schema.Schema) { s.Default = value } }

func fromEnvironment(name string) trait {
	return func(s *schema.Schema) { s.DefaultFunc = schema.EnvDefaultFunc(name, "") }
}

func oneOf(words ...string) trait {
	return func(s *schema.Schema) { s.ValidateFunc = validation.StringInSlice(words, false) }
}

func like(pattern string) trait {
	return func(s *schema.Schema) {
		s.ValidateFunc = validation.StringMatch(regexp.MustCompile(pattern), "it must match "+pattern)
	}
}

// exactlyOne of these arguments must be given.
func exactlyOne(names ...string) trait { return func(s *schema.Schema) { s.ExactlyOneOf = names } }

func text(traits ...trait) *schema.Schema {
	return with(&schema.Schema{Type: schema.TypeString}, traits)
}
func number(traits ...trait) *schema.Schema {
	return with(&schema.Schema{Type: schema.TypeInt}, traits)
}
func flag(traits ...trait) *schema.Schema { return with(&schema.Schema{Type: schema.TypeBool}, traits) }

func texts(kind schema.ValueType, traits ...trait) *schema.Schema {
	return with(&schema.Schema{Type: kind, Elem: &schema.Schema{Type: schema.TypeString}}, traits)
}

// blocks are nested blocks, any number of them; block is one that stands once at most.
func blocks(kind schema.ValueType, inner attributes, traits ...trait) *schema.Schema {
	return with(&schema.Schema{Type: kind, Elem: &schema.Resource{Schema: inner}}, traits)
}

func block(inner attributes, traits ...trait) *schema.Schema {
	s := blocks(schema.TypeList, inner, traits...)
	s.MaxItems = 1
	return s
}

// reference is a block that names another object by its id.
func reference(traits ...trait) *schema.Schema {
	return block(attributes{"id": text(required, fixed)}, append(traits, fixed)...)
}

// credentials are the API key that a request is made with. Confluent never gives them back, and they are not kept.
func credentials() *schema.Schema {
	return block(attributes{"key": text(required, sensitive), "secret": text(required, sensitive)}, optional)
}

// address is where a service answers. At Confluent a change of it replaces what is there; here a local world has other
// ports each time it starts, and nothing moves.
func address() *schema.Schema { return text(optional, like("^http")) }

func with(s *schema.Schema, traits []trait) *schema.Schema {
	for _, t := range traits {
		t(s)
	}
	return s
}

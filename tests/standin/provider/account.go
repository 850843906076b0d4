package main

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

var accountKind = kind{
	arguments: attributes{
		"display_name": text(required), "description": text(defaulted), "api_version": text(computed), "kind": text(computed),
	},
	id: hashed("sa-", "display_name"),
	filled: func(*cloud, *schema.ResourceData) object {
		return object{"api_version": "iam/v2", "kind": "ServiceAccount"}
	},
}

var keyKind = kind{
	arguments: attributes{
		"display_name": text(optional), "description": text(optional), "disable_wait_for_ready": flag(optional, standard(false)),
		"secret": text(computed, sensitive),
		"owner": block(attributes{
			"id": text(required, fixed, like("^(u-|sa-)")), "kind": text(required, fixed, oneOf("User", "ServiceAccount")),
			"api_version": text(required, fixed),
		}, required, fixed),
		"managed_resource": block(attributes{
			"id": text(required, fixed), "kind": text(required, fixed, oneOf("Cluster", "Region", "Tableflow", "ksqlDB", "Global")),
			"api_version": text(required, fixed),
			"environment": block(attributes{"id": text(required, fixed)}, optional, fixed),
		}, optional, fixed),
	},
	id: func(d *schema.ResourceData) string {
		names := strings.Join([]string{given(d, "owner.0.id"), given(d, "managed_resource.0.id"), given(d, "display_name")}, "\x00")
		sum := sha256.Sum256([]byte(names))
		return strings.ToUpper(hex.EncodeToString(sum[:])[:16])
	},
	partOf: map[string]string{"owner.0.id": "service_account"},
	fits: func(c *cloud, d *schema.ResourceData) error {
		opened := map[string]string{"cmk/v2": "kafka_cluster", "srcm/v3": "schema_registry_cluster"}
		if kind := opened[given(d, "managed_resource.0.api_version")]; kind != "" {
			_, err := c.needed(kind, given(d, "managed_resource.0.id"))
			return err
		}
		return nil
	},
	filled: func(*cloud, *schema.ResourceData) object { return object{"secret": "standin-" + rand.Text()} },
}

var bindingKind = kind{
	arguments: attributes{
		"principal": text(required, fixed, like("^User:")), "role_name": text(required, fixed),
		"crn_pattern": text(required, fixed, like("^crn://")), "disable_wait_for_ready": flag(optional, standard(false)),
	},
	id: hashed("rb-", "principal", "role_name", "crn_pattern"),
	fits: func(c *cloud, d *schema.ResourceData) error {
		if _, err := c.needed("service_account", strings.TrimPrefix(given(d, "principal"), "User:")); err != nil {
			return err
		}
		named := map[string]string{"environment": "environment", "cloud-cluster": "kafka_cluster",
			"schema-registry": "schema_registry_cluster", "provider-integration": "provider_integration"}
		for _, part := range strings.Split(given(d, "crn_pattern"), "/") {
			what, id, _ := strings.Cut(part, "=")
			if kind := named[what]; kind != "" {
				if _, err := c.needed(kind, id); err != nil {
					return err
				}
			}
		}
		return nil
	},
}

// allowed says whether credentials open a resource, and whether their owner has a role on everything that is named.
func allowed(c *cloud, d *schema.ResourceData, resource string, wanted map[string][]string) error {
	id := given(d, "credentials.0.key")
	key := c.objects["api_key"][id]
	secret, _ := key["secret"].(string)
	isRight := subtle.ConstantTimeCompare([]byte(secret), []byte(given(d, "credentials.0.secret"))) == 1
	if key == nil || !isRight || stored(key, "managed_resource.0.id") != resource {
		return fmt.Errorf("401 Unauthorized: %q is no API key of %s, or its secret is wrong", id, resource)
	}
	principal := "User:" + stored(key, "owner.0.id")
	for crn, roles := range wanted {
		if !hasRole(c, principal, crn, roles) {
			return fmt.Errorf("403 Forbidden: %s is none of %s on %s (yet: is a depends_on on the role binding missing?)",
				principal, strings.Join(roles, ", "), crn)
		}
	}
	return nil
}

func hasRole(c *cloud, principal, crn string, roles []string) bool {
	for _, binding := range c.objects["role_binding"] {
		pattern, role := stored(binding, "crn_pattern"), stored(binding, "role_name")
		prefix, isPrefix := strings.CutSuffix(pattern, "*")
		covers := crn == pattern || strings.HasPrefix(crn, pattern+"/") || isPrefix && strings.HasPrefix(crn, prefix)
		if stored(binding, "principal") == principal && slices.Contains(roles, role) && covers {
			return true
		}
	}
	return false
}

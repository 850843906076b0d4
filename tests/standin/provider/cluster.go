package main

import (
	"errors"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

const organization = "crn://confluent.cloud/organization=standin"

func environmentCRN(id string) string { return organization + "/environment=" + id }

func clusterCRN(c *cloud, id string) string {
	return environmentCRN(stored(c.objects["kafka_cluster"][id], "environment.0.id")) + "/cloud-cluster=" + id
}

func registryCRN(c *cloud, id string) string {
	environment := stored(c.objects["schema_registry_cluster"][id], "environment.0.id")
	return environmentCRN(environment) + "/schema-registry=" + id
}

var environmentKind = kind{
	arguments: attributes{
		"display_name":      text(required),
		"stream_governance": block(attributes{"package": text(required, oneOf("ESSENTIALS", "ADVANCED"))}, defaulted),
		"resource_name":     text(computed),
	},
	id:    hashed("env-", "display_name"),
	shown: environmentShown,
	gone: func(c *cloud, id string) {
		delete(c.objects["schema_registry_cluster"], registryOf(c, id))
	},
}

var environmentLookUp = lookUp{
	arguments: attributes{
		"id": text(defaulted, exactlyOne("id", "display_name")), "display_name": text(defaulted), "resource_name": text(computed),
	},
	find:  byIDOrName("environment"),
	shown: environmentShown,
}

func environmentShown(_ *cloud, id string) object { return object{"resource_name": environmentCRN(id)} }

var sizes = exactlyOne("basic", "standard", "dedicated", "enterprise", "freight")

func size() *schema.Schema {
	return blocks(schema.TypeList, attributes{"max_ecku": number(defaulted)}, optional, sizes)
}

var clusterKind = kind{
	arguments: attributes{
		"display_name": text(required),
		"availability": text(required, fixed, oneOf("SINGLE_ZONE", "MULTI_ZONE", "LOW", "HIGH")),
		"cloud":        text(required, fixed, oneOf("AWS", "AZURE", "GCP")),
		"region":       text(required, fixed),
		"environment":  reference(required),
		"basic":        size(),
		"standard":     size(),
		"enterprise":   size(),
		"freight":      size(),
		"dedicated": block(attributes{
			"cku": number(required), "encryption_key": text(defaulted), "zones": texts(schema.TypeList, computed),
		}, optional, sizes),
		"network":             reference(defaulted),
		"byok_key":            reference(defaulted),
		"deletion_protection": flag(optional),
		"bootstrap_endpoint":  text(computed),
		"rest_endpoint":       text(computed),
		"rbac_crn":            text(computed),
		"api_version":         text(computed),
		"kind":                text(computed),
	},
	id:     hashed("lkc-", "display_name", "environment.0.id"),
	partOf: map[string]string{"environment.0.id": "environment"},
	filled: func(c *cloud, d *schema.ResourceData) object {
		withRegistry(c, given(d, "environment.0.id"), given(d, "region"))
		return object{"api_version": "cmk/v2", "kind": "Cluster"}
	},
	shown: clusterShown,
}

var clusterLookUp = lookUp{
	arguments: attributes{
		"id": text(defaulted, exactlyOne("id", "display_name")), "display_name": text(defaulted), "environment": reference(required),
		"availability": text(computed), "cloud": text(computed), "region": text(computed), "api_version": text(computed),
		"kind": text(computed), "bootstrap_endpoint": text(computed), "rest_endpoint": text(computed), "rbac_crn": text(computed),
	},
	find:  byIDOrName("kafka_cluster"),
	shown: clusterShown,
}

// clusterShown has the broker's address of today. The address of the REST interface is nobody's: topics are made by the
// protocol of Kafka.
func clusterShown(c *cloud, id string) object {
	return object{
		"bootstrap_endpoint": "SASL_SSL://" + c.bootstrap,
		"rest_endpoint":      "https://" + id + ".standin.invalid:443",
		"rbac_crn":           clusterCRN(c, id),
	}
}

// withRegistry makes an environment's registry with its first cluster, as Confluent does.
func withRegistry(c *cloud, environment, region string) {
	if registryOf(c, environment) != "" {
		return
	}
	governance := stored(c.objects["environment"][environment], "stream_governance.0.package")
	if governance == "" {
		governance = "ESSENTIALS"
	}
	c.put("schema_registry_cluster", "lsrc-"+environment[len("env-"):], object{
		"display_name": "Stream Governance Package", "environment": []any{object{"id": environment}}, "package": governance,
		"cloud": "AWS", "region": region, "api_version": "srcm/v3", "kind": "Cluster",
	})
}

func registryOf(c *cloud, environment string) string {
	for id, o := range c.objects["schema_registry_cluster"] {
		if stored(o, "environment.0.id") == environment {
			return id
		}
	}
	return ""
}

var registryLookUp = lookUp{
	arguments: attributes{
		"id": text(defaulted), "display_name": text(defaulted), "environment": reference(required), "package": text(computed),
		"cloud": text(computed), "region": text(computed), "rest_endpoint": text(computed), "catalog_endpoint": text(computed),
		"resource_name": text(computed), "api_version": text(computed), "kind": text(computed),
	},
	find: func(c *cloud, d *schema.ResourceData) (string, error) {
		if id := registryOf(c, given(d, "environment.0.id")); id != "" {
			return id, nil
		}
		return "", errors.New("404 Not Found: an environment has a registry when it has a cluster (is a depends_on missing?)")
	},
	shown: func(c *cloud, id string) object {
		return object{"rest_endpoint": c.registry, "catalog_endpoint": c.registry, "resource_name": registryCRN(c, id)}
	},
}

package main

import (
	"context"

	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

// kinds are all resources, by their type without "confluent_".
var kinds = map[string]kind{
	"environment":          environmentKind,
	"kafka_cluster":        clusterKind,
	"service_account":      accountKind,
	"api_key":              keyKind,
	"role_binding":         bindingKind,
	"kafka_topic":          topicKind,
	"kafka_acl":            aclKind,
	"schema":               subjectKind,
	"provider_integration": integrationKind,
	"tableflow_topic":      tableflowKind,
	"catalog_integration":  catalogKind,
}

// lookUps are all data sources, likewise.
var lookUps = map[string]lookUp{
	"environment":             environmentLookUp,
	"kafka_cluster":           clusterLookUp,
	"schema_registry_cluster": registryLookUp,
}

func newProvider() *schema.Provider {
	p := &schema.Provider{
		Schema: attributes{
			"cloud_api_key":    text(optional, sensitive, fromEnvironment("CONFLUENT_CLOUD_API_KEY")),
			"cloud_api_secret": text(optional, sensitive, fromEnvironment("CONFLUENT_CLOUD_API_SECRET")),
			"endpoint":         text(optional),
			"max_retries":      number(optional),
		},
		ResourcesMap:   map[string]*schema.Resource{},
		DataSourcesMap: map[string]*schema.Resource{},
		ConfigureContextFunc: func(context.Context, *schema.ResourceData) (any, diag.Diagnostics) {
			c, err := newCloud()
			return c, diag.FromErr(err)
		},
	}
	for name, k := range kinds {
		p.ResourcesMap["confluent_"+name] = k.resource(name)
	}
	for name, l := range lookUps {
		p.DataSourcesMap["confluent_"+name] = l.source(name)
	}
	return p
}

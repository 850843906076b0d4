package main

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

var integrationKind = kind{
	arguments: attributes{
		"display_name": text(required, fixed), "environment": reference(required), "usages": texts(schema.TypeList, computed),
		"aws": block(attributes{
			"customer_role_arn": text(required, fixed), "iam_role_arn": text(computed), "external_id": text(computed),
		}, optional, fixed, exactlyOne("aws")),
	},
	id:     hashed("cspi-", "display_name", "environment.0.id", "aws.0.customer_role_arn"),
	partOf: map[string]string{"environment.0.id": "environment"},
	filled: func(_ *cloud, d *schema.ResourceData) object {
		return object{"usages": []any{}, "aws": []any{object{
			"customer_role_arn": given(d, "aws.0.customer_role_arn"),
			"iam_role_arn":      "arn:aws:iam::999999999999:role/" + d.Id(),
			"external_id":       hashed("standin-", "display_name", "environment.0.id", "aws.0.customer_role_arn")(d),
		}}}
	},
}

// lands: whoever makes tables administers the cluster and owns the integration that they are written by.
func lands(integration string) step {
	return func(c *cloud, d *schema.ResourceData) error {
		cluster, id := given(d, "kafka_cluster.0.id"), given(d, integration)
		wanted := map[string][]string{clusterCRN(c, cluster): clusterAdmins}
		if id != "" {
			wanted[environmentCRN(given(d, "environment.0.id"))+"/provider-integration="+id] = []string{"ResourceOwner"}
		}
		return allowed(c, d, "tableflow", wanted)
	}
}

func tableflowArguments() attributes {
	return attributes{
		"display_name": text(required, fixed), "kafka_cluster": reference(required), "environment": reference(required),
		"credentials": credentials(),
		"byob_aws": block(attributes{
			"bucket_name": text(required, fixed), "provider_integration_id": text(required, fixed), "bucket_region": text(computed),
		}, optional, fixed, exactlyOne("byob_aws", "managed_storage")),
		"managed_storage": blocks(schema.TypeList, attributes{}, optional, exactlyOne("byob_aws", "managed_storage")),
		"table_formats":   texts(schema.TypeSet, defaulted), "retention_ms": text(optional, standard("604800000")),
		"data_retention_ms":             text(defaulted),
		"error_handling":                block(attributes{"mode": text(defaulted), "log_target": text(defaulted)}, defaulted),
		"record_failure_strategy":       text(defaulted),
		"metadata_column_naming_scheme": text(defaulted, oneOf("DEFAULT", "PORTABLE")),
		"table_path":                    text(computed), "write_mode": text(computed), "suspended": flag(computed),
		"enable_compaction": flag(computed), "enable_partitioning": flag(computed),
	}
}

var tableflowKind = kind{
	arguments: tableflowArguments(),
	id:        joined("display_name"),
	partOf: map[string]string{
		"environment.0.id": "environment", "kafka_cluster.0.id": "kafka_cluster",
		"byob_aws.0.provider_integration_id": "provider_integration",
	},
	may:    lands("byob_aws.0.provider_integration_id"),
	fits:   canLand,
	filled: landed,
}

// canLand looks at what Confluent looks at: the topic, a schema of its values, and the customer's role with its rights.
func canLand(c *cloud, d *schema.ResourceData) error {
	name := given(d, "display_name")
	if err := topicExists(c, name); err != nil {
		return err
	}
	isFound, err := asked(c, http.MethodGet, subjectPath(name+"-value")+"/versions/latest", nil, nil)
	if err != nil {
		return err
	}
	if !isFound {
		return fmt.Errorf("404 Not Found: the registry has no schema %s-value (yet: is a depends_on missing?)", name)
	}
	if id := given(d, "byob_aws.0.provider_integration_id"); id != "" {
		return canAssume(c, id, "s3:PutObject", "arn:aws:s3:::"+given(d, "byob_aws.0.bucket_name")+"/")
	}
	return nil
}

func landed(c *cloud, d *schema.ResourceData) object {
	or := func(path, otherwise string) string {
		if found := given(d, path); found != "" {
			return found
		}
		return otherwise
	}
	name, cluster := given(d, "display_name"), given(d, "kafka_cluster.0.id")
	told := object{
		"write_mode": writeMode(c, name), "suspended": false, "enable_compaction": true, "enable_partitioning": false,
		"data_retention_ms":             or("data_retention_ms", "31536000000"),
		"record_failure_strategy":       or("record_failure_strategy", "SUSPEND"),
		"metadata_column_naming_scheme": or("metadata_column_naming_scheme", "DEFAULT"),
		"error_handling": []any{object{
			"mode": or("error_handling.0.mode", "SUSPEND"), "log_target": or("error_handling.0.log_target", "error_log"),
		}},
		"table_path": "confluent-managed://" + cluster + "/" + name,
	}
	if d.Get("table_formats").(*schema.Set).Len() == 0 {
		told["table_formats"] = []any{"ICEBERG"}
	}
	if bucket := given(d, "byob_aws.0.bucket_name"); bucket != "" {
		told["table_path"] = "s3://" + bucket + "/" + cluster + "/" + name
		told["byob_aws"] = []any{object{
			"bucket_name": bucket, "provider_integration_id": given(d, "byob_aws.0.provider_integration_id"),
			"bucket_region": stored(c.objects["kafka_cluster"][cluster], "region"),
		}}
	}
	return told
}

var catalogKind = kind{
	arguments: attributes{
		"display_name": text(required), "kafka_cluster": reference(required), "environment": reference(required),
		"credentials": credentials(), "suspended": flag(computed),
		"aws_glue": block(attributes{
			"provider_integration_id": text(required, fixed), "custom_database": text(optional),
		}, optional, exactlyOne("aws_glue")),
	},
	id: hashed("tci-", "kafka_cluster.0.id"), // a cluster has one of a kind of catalog
	partOf: map[string]string{
		"environment.0.id": "environment", "kafka_cluster.0.id": "kafka_cluster",
		"aws_glue.0.provider_integration_id": "provider_integration",
	},
	may: lands("aws_glue.0.provider_integration_id"),
	fits: func(c *cloud, d *schema.ResourceData) error {
		database := given(d, "aws_glue.0.custom_database")
		if database == "" {
			database = given(d, "kafka_cluster.0.id")
		}
		if len(c.objects["tableflow_topic"]) == 0 {
			return errors.New("there is no table to publish (yet: is a depends_on missing?)")
		}
		return canAssume(c, given(d, "aws_glue.0.provider_integration_id"), "glue:CreateTable", ":database/"+database)
	},
	filled: func(*cloud, *schema.ResourceData) object { return object{"suspended": false} },
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/customdiff"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const patience = 20 * time.Second

var clusterAdmins = []string{"CloudClusterAdmin", "EnvironmentAdmin", "OrganizationAdmin"}

// manages: whoever makes a topic is its owner, or an administrator of its cluster.
func manages(c *cloud, d *schema.ResourceData) error {
	id := given(d, "kafka_cluster.0.id")
	if _, err := c.needed("kafka_cluster", id); err != nil {
		return err
	}
	crn := clusterCRN(c, id) + "/kafka=" + id + "/topic=" + given(d, "topic_name")
	return allowed(c, d, id, map[string][]string{crn: append([]string{"ResourceOwner"}, clusterAdmins...)})
}

// administers: whoever makes permissions is an administrator of their cluster: they need ALTER on it, which no role on a
// topic has.
func administers(c *cloud, d *schema.ResourceData) error {
	id := given(d, "kafka_cluster.0.id")
	if _, err := c.needed("kafka_cluster", id); err != nil {
		return err
	}
	return allowed(c, d, id, map[string][]string{clusterCRN(c, id): clusterAdmins})
}

var topicKind = kind{
	arguments: attributes{
		"kafka_cluster": reference(optional), "topic_name": text(required, fixed, like(`^[a-zA-Z0-9._\-]+$`)),
		"partitions_count": number(optional, standard(6)), "config": texts(schema.TypeMap, defaulted),
		"rest_endpoint": address(), "credentials": credentials(),
	},
	id:     joined("kafka_cluster.0.id", "topic_name"),
	partOf: map[string]string{"kafka_cluster.0.id": "kafka_cluster"},
	may:    manages,
	plan: customdiff.ForceNewIfChange("partitions_count", func(_ context.Context, old, now, _ any) bool {
		return now.(int) < old.(int) // partitions can be added, never taken away
	}),
	outside: topic{},
}

var aclKind = kind{
	arguments: attributes{
		"kafka_cluster": reference(optional), "resource_name": text(required, fixed), "principal": text(required, fixed, like("^User:")),
		"resource_type": text(required, fixed, oneOf("TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN")),
		"pattern_type":  text(required, fixed, oneOf("LITERAL", "PREFIXED")), "host": text(required, fixed),
		"operation": text(required, fixed, oneOf("ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION",
			"DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE")),
		"permission": text(required, fixed, oneOf("ALLOW", "DENY")), "rest_endpoint": address(), "credentials": credentials(),
	},
	id: joined("kafka_cluster.0.id", "resource_type", "resource_name", "pattern_type", "principal", "host", "operation",
		"permission"),
	partOf: map[string]string{"kafka_cluster.0.id": "kafka_cluster"},
	may:    administers,
	fits: func(c *cloud, d *schema.ResourceData) error {
		_, err := c.needed("service_account", strings.TrimPrefix(given(d, "principal"), "User:"))
		return err
	},
}

// topic is a topic on the broker.
type topic struct{}

func onBroker(c *cloud, do func(context.Context, *kadm.Client) error) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(c.bootstrap, ",")...))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	return do(ctx, kadm.NewClient(client))
}

// told waits until the broker's metadata say whether a topic is there: they follow its creation or deletion.
func told(ctx context.Context, admin *kadm.Client, name string, isThere bool) error {
	for {
		all, err := admin.ListTopics(ctx, name)
		if err != nil || (all[name].Err == nil) == isThere {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func settings(d *schema.ResourceData) map[string]*string {
	found := map[string]*string{}
	for name, value := range d.Get("config").(map[string]any) {
		written := value.(string)
		found[name] = &written
	}
	return found
}

func (topic) create(c *cloud, d *schema.ResourceData) error {
	return onBroker(c, func(ctx context.Context, admin *kadm.Client) error {
		name := given(d, "topic_name")
		made, err := admin.CreateTopic(ctx, int32(d.Get("partitions_count").(int)), -1, settings(d), name)
		if err := errors.Join(err, made.Err); err != nil {
			return err
		}
		return told(ctx, admin, name, true)
	})
}

func (topic) read(c *cloud, d *schema.ResourceData) (isThere bool, err error) {
	err = onBroker(c, func(ctx context.Context, admin *kadm.Client) error {
		name := given(d, "topic_name")
		all, err := admin.ListTopics(ctx, name)
		if err != nil || errors.Is(all[name].Err, kerr.UnknownTopicOrPartition) {
			return err
		}
		isThere = true
		described, err := admin.DescribeTopicConfigs(ctx, name)
		if err != nil {
			return err
		}
		own := map[string]string{} // those of the topic itself, not the broker's
		for _, each := range described[0].Configs {
			if each.Source == kmsg.ConfigSourceDynamicTopicConfig && each.Value != nil {
				own[each.Key] = *each.Value
			}
		}
		return show(d, object{"partitions_count": len(all[name].Partitions), "config": own})
	})
	return isThere, err
}

func (topic) update(c *cloud, d *schema.ResourceData) error {
	return onBroker(c, func(ctx context.Context, admin *kadm.Client) error {
		name := given(d, "topic_name")
		if d.HasChange("partitions_count") {
			grown, err := admin.UpdatePartitions(ctx, d.Get("partitions_count").(int), name)
			if err := errors.Join(err, grown[name].Err); err != nil {
				return err
			}
		}
		if !d.HasChange("config") {
			return nil
		}
		wanted := settings(d)
		changes := []kadm.AlterConfig{}
		for key, value := range wanted {
			changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: key, Value: value})
		}
		before, _ := d.GetChange("config")
		for key := range before.(map[string]any) {
			if wanted[key] == nil {
				changes = append(changes, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: key})
			}
		}
		altered, err := admin.AlterTopicConfigs(ctx, changes, name)
		if err != nil {
			return err
		}
		return altered[0].Err
	})
}

func (topic) delete(c *cloud, d *schema.ResourceData) error {
	return onBroker(c, func(ctx context.Context, admin *kadm.Client) error {
		name := given(d, "topic_name")
		gone, err := admin.DeleteTopic(ctx, name)
		if errors.Is(gone.Err, kerr.UnknownTopicOrPartition) {
			return nil
		}
		if err := errors.Join(err, gone.Err); err != nil {
			return err
		}
		return told(ctx, admin, name, false)
	})
}

// topicExists says whether a topic is there, whoever made it.
func topicExists(c *cloud, name string) error {
	return onBroker(c, func(ctx context.Context, admin *kadm.Client) error {
		all, err := admin.ListTopics(ctx, name)
		if err == nil && all[name].Err != nil {
			return fmt.Errorf("404 Not Found: there is no topic %q (yet: is a depends_on missing?)", name)
		}
		return err
	})
}

// writeMode is what Tableflow chooses: a compacted topic is a state, any other one is appended.
func writeMode(c *cloud, name string) string {
	mode := "APPEND"
	err := onBroker(c, func(ctx context.Context, admin *kadm.Client) error {
		described, err := admin.DescribeTopicConfigs(ctx, name)
		if err != nil {
			return err
		}
		for _, each := range described[0].Configs {
			if each.Key == "cleanup.policy" && each.Value != nil && strings.Contains(*each.Value, "compact") {
				mode = "UPSERT"
			}
		}
		return nil
	})
	if err != nil {
		return "UNKNOWN"
	}
	return mode
}

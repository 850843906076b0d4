// A stand-in for the Terraform provider confluentinc/confluent, for one machine without Confluent Cloud.
//
// It takes the same arguments of the same resources, as far as Frazil's stacks use them. Topics are made on a real
// Kafka broker and schemas registered in a real registry; everything else is kept in one JSON file, which stands for
// the organization. Ids are made of names, so that two runs give the same plan.
package main

import "github.com/hashicorp/terraform-plugin-sdk/v2/plugin"

func main() {
	plugin.Serve(&plugin.ServeOpts{ProviderFunc: newProvider})
}

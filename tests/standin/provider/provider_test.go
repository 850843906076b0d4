package main

import "testing"

// Terraform finds an invalid schema only when it plans.
func TestTheSDKTakesTheSchemas(t *testing.T) {
	if err := newProvider().InternalValidate(); err != nil {
		t.Fatal(err)
	}
}

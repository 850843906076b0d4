package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

var web = &http.Client{Timeout: patience}

var subjectKind = kind{
	arguments: attributes{
		"schema_registry_cluster": reference(optional), "rest_endpoint": address(), "credentials": credentials(),
		"subject_name": text(required, fixed), "format": text(required, fixed, oneOf("AVRO", "JSON", "PROTOBUF")),
		"schema": text(defaulted), "version": number(computed), "schema_identifier": number(computed),
		"hard_delete": flag(optional, standard(false)), "recreate_on_update": flag(optional, standard(false)),
		"skip_validation_during_plan": flag(optional, standard(false)),
		"schema_reference": blocks(schema.TypeSet, attributes{
			"name": text(required), "subject_name": text(required), "version": number(required),
		}, optional),
	},
	id: joined("schema_registry_cluster.0.id", "subject_name"),
	may: func(c *cloud, d *schema.ResourceData) error {
		id := given(d, "schema_registry_cluster.0.id")
		if _, err := c.needed("schema_registry_cluster", id); err != nil {
			return err
		}
		crn := registryCRN(c, id) + "/subject=" + given(d, "subject_name")
		return allowed(c, d, id, map[string][]string{crn: {"ResourceOwner", "DeveloperManage", "EnvironmentAdmin"}})
	},
	plan:    compatible,
	outside: subject{},
}

// subject is a subject of the registry, of which the newest version is meant.
type subject struct{}

// asked sends a request to the registry; 404 is an answer, not an error.
func asked(c *cloud, method, path string, body, answer any) (isFound bool, err error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return false, err
	}
	request, err := http.NewRequest(method, strings.TrimRight(c.registry, "/")+path, bytes.NewReader(raw))
	if err != nil {
		return false, err
	}
	request.Header.Set("Content-Type", "application/vnd.schemaregistry.v1+json")
	response, err := web.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode == http.StatusNotFound {
		return false, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return false, fmt.Errorf("%s %s: %d %s", method, path, response.StatusCode, said)
	}
	if answer == nil {
		return true, nil
	}
	return true, json.Unmarshal(said, answer)
}

func subjectPath(name string) string { return "/subjects/" + url.PathEscape(name) }

func registration(get func(string) any) object {
	references := []object{}
	for _, each := range get("schema_reference").(*schema.Set).List() {
		one := each.(object)
		references = append(references, object{"name": one["name"], "subject": one["subject_name"], "version": one["version"]})
	}
	return object{"schema": get("schema"), "schemaType": get("format"), "references": references}
}

func (subject) create(c *cloud, d *schema.ResourceData) error {
	isFound, err := asked(c, http.MethodPost, subjectPath(given(d, "subject_name"))+"/versions", registration(d.Get), nil)
	if err == nil && !isFound {
		err = fmt.Errorf("404 Not Found: %s is no schema registry", c.registry)
	}
	return err
}

func (s subject) update(c *cloud, d *schema.ResourceData) error {
	if !d.HasChanges("schema", "schema_reference") {
		return nil
	}
	return s.create(c, d)
}

func (subject) read(c *cloud, d *schema.ResourceData) (isThere bool, err error) {
	var newest struct {
		ID, Version int
		Schema      string
	}
	isThere, err = asked(c, http.MethodGet, subjectPath(given(d, "subject_name"))+"/versions/latest", nil, &newest)
	if err != nil || !isThere {
		return isThere, err
	}
	written := given(d, "schema")
	if !isSame(written, newest.Schema) {
		written = newest.Schema
	}
	return true, show(d, object{"version": newest.Version, "schema_identifier": newest.ID, "schema": written})
}

func (subject) delete(c *cloud, d *schema.ResourceData) error {
	path := subjectPath(given(d, "subject_name"))
	isFound, err := asked(c, http.MethodDelete, path, nil, nil)
	if err == nil && isFound && d.Get("hard_delete").(bool) {
		_, err = asked(c, http.MethodDelete, path+"?permanent=true", nil, nil)
	}
	return err
}

// compatible asks the registry, while planning, whether a new version fits those that are there.
func compatible(_ context.Context, d *schema.ResourceDiff, meta any) error {
	c, isConfigured := meta.(*cloud)
	isAsked := isConfigured && !d.Get("skip_validation_during_plan").(bool) && d.NewValueKnown("schema")
	if !isAsked || !d.HasChange("schema") {
		return nil
	}
	before, now := d.GetChange("schema")
	if isSame(before.(string), now.(string)) {
		return d.Clear("schema")
	}
	if d.Id() != "" {
		for _, attribute := range []string{"version", "schema_identifier"} {
			if err := d.SetNewComputed(attribute); err != nil {
				return err
			}
		}
	}
	var answer struct {
		IsCompatible bool     `json:"is_compatible"`
		Messages     []string // Confluent's word for why
		Reason       string   // Apicurio's
	}
	name := d.Get("subject_name").(string)
	path := "/compatibility" + subjectPath(name) + "/versions/latest?verbose=true"
	isFound, err := asked(c, http.MethodPost, path, registration(d.Get), &answer)
	if err != nil || !isFound || answer.IsCompatible {
		return err
	}
	return fmt.Errorf("the schema of %s does not fit the newest version: %s", name, strings.Join(append(answer.Messages, answer.Reason), "; "))
}

// isSame says whether two schemas say the same: a registry writes them in its own way.
func isSame(one, other string) bool {
	var first, second any
	if json.Unmarshal([]byte(one), &first) != nil || json.Unmarshal([]byte(other), &second) != nil {
		return strings.TrimSpace(one) == strings.TrimSpace(other)
	}
	ours, _ := json.Marshal(first)
	theirs, _ := json.Marshal(second)
	return bytes.Equal(ours, theirs)
}

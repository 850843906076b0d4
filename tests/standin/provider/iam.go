package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// canAssume looks at the customer's role as Confluent would find it: its trust lets the integration's own role in, with
// its external id and with tags, and one of its attached policies allows an action where it is needed.
func canAssume(c *cloud, integration, action, place string) error {
	o := c.objects["provider_integration"][integration]
	role := stored(o, "aws.0.customer_role_arn")
	name := role[strings.LastIndex(role, "/")+1:]
	var found struct {
		Trust string `xml:"GetRoleResult>Role>AssumeRolePolicyDocument"`
	}
	if err := askIAM(c, url.Values{"Action": {"GetRole"}, "RoleName": {name}}, &found); err != nil {
		return err
	}
	trust, err := statements(found.Trust)
	if err != nil {
		return err
	}
	theirs, externalID := stored(o, "aws.0.iam_role_arn"), stored(o, "aws.0.external_id")
	isLetIn := slices.ContainsFunc(trust, func(s statement) bool {
		return s.allows("sts:AssumeRole") && s.Principal.AWS == theirs && s.Condition["StringEquals"]["sts:ExternalId"] == externalID
	})
	mayTag := slices.ContainsFunc(trust, func(s statement) bool { return s.allows("sts:TagSession") && s.Principal.AWS == theirs })
	if !isLetIn || !mayTag {
		return fmt.Errorf("403 Forbidden: %s does not let %s in with its external id and tags", role, theirs)
	}
	rights, err := attached(c, name)
	if err != nil {
		return err
	}
	isAllowed := slices.ContainsFunc(rights, func(s statement) bool {
		return s.allows(action) && slices.ContainsFunc(s.Resource, func(r string) bool { return strings.Contains(r, place) })
	})
	if !isAllowed {
		return fmt.Errorf("403 Forbidden: %s may not %s on %s (yet: is a depends_on on its rights missing?)", role, action, place)
	}
	return nil
}

// attached are the statements of the managed policies of a role.
func attached(c *cloud, role string) ([]statement, error) {
	var list struct {
		ARNs []string `xml:"ListAttachedRolePoliciesResult>AttachedPolicies>member>PolicyArn"`
	}
	if err := askIAM(c, url.Values{"Action": {"ListAttachedRolePolicies"}, "RoleName": {role}}, &list); err != nil {
		return nil, err
	}
	all := []statement{}
	for _, arn := range list.ARNs {
		var policy struct {
			Version string `xml:"GetPolicyResult>Policy>DefaultVersionId"`
		}
		var version struct {
			Document string `xml:"GetPolicyVersionResult>PolicyVersion>Document"`
		}
		if err := askIAM(c, url.Values{"Action": {"GetPolicy"}, "PolicyArn": {arn}}, &policy); err != nil {
			return nil, err
		}
		asked := url.Values{"Action": {"GetPolicyVersion"}, "PolicyArn": {arn}, "VersionId": {policy.Version}}
		if err := askIAM(c, asked, &version); err != nil {
			return nil, err
		}
		found, err := statements(version.Document)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// several is a text or a list of texts: IAM takes either.
type several []string

func (s *several) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*s = several{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(s))
}

type statement struct {
	Effect    string
	Action    several
	Resource  several
	Principal struct{ AWS string }
	Condition map[string]map[string]any
}

func (s statement) allows(action string) bool {
	return s.Effect == "Allow" && slices.Contains(s.Action, action)
}

func statements(escaped string) ([]statement, error) {
	text, err := url.QueryUnescape(escaped)
	if err != nil {
		return nil, err
	}
	var document struct{ Statement []statement }
	err = json.Unmarshal([]byte(text), &document)
	return document.Statement, err
}

func askIAM(c *cloud, question url.Values, answer any) error {
	if c.iam == "" {
		return errors.New("CONFLUENT_STANDIN_IAM must be set: it is asked about the role that Confluent assumes")
	}
	question.Set("Version", "2010-05-08")
	request, err := http.NewRequest(http.MethodPost, c.iam, strings.NewReader(question.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	// A stand-in of IAM finds by this which service is meant, and checks no signature.
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=standin/20260101/us-east-1/iam/aws4_request, SignedHeaders=host, Signature=0")
	response, err := web.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s of %s: %d (is a depends_on on the role missing?)", question.Get("Action"),
			question.Get("RoleName")+question.Get("PolicyArn"), response.StatusCode)
	}
	return xml.Unmarshal(said, answer)
}

package surrogate.impersonation_test

import data.surrogate.impersonation

strangers(stage, actor_organizations, subject_organizations) if {
	"no_common_organization" in impersonation.deny with input as {
		"stage": stage,
		"actor": {"id": "a1", "organizations": actor_organizations},
		"subject": {"id": "u1", "organizations": subject_organizations},
	}
}

outside(actor_organizations) if {
	"actor_outside_organization" in impersonation.deny with input as {
		"stage": "exchange",
		"actor": {"id": "a1", "organizations": actor_organizations},
		"subject": {"id": "u1", "organizations": ["acme", "other"]},
		"organization": {"id": "other"},
	}
}

test_one_in_common_is_enough if not strangers("exchange", ["help", "acme"], ["acme", "other"])

test_none_in_common_is_refused if strangers("exchange", ["help"], ["acme"])

test_members_of_nothing_are_refused if strangers("exchange", [], [])

test_a_named_actor_is_looked_at_before_minting if strangers("mint", ["help"], ["acme"])

test_without_actor_minting_goes_on_and_exchange_does_not if {
	alone := {"id": "u1", "organizations": ["acme"]}
	not "no_common_organization" in impersonation.deny with input as {"stage": "mint", "subject": alone}
	"no_common_organization" in impersonation.deny with input as {"stage": "exchange", "subject": alone}
}

test_the_organization_of_the_token_must_be_the_one_in_common if {
	outside(["acme"])
	not outside(["acme", "other"])
}

test_nobody_is_inside_no_organization if {
	"actor_outside_organization" in impersonation.deny with input as {
		"stage": "exchange",
		"subject": {"id": "u1", "organizations": ["other"]},
		"organization": {"id": "other"},
	}
}

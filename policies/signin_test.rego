package surrogate.signin_test

import data.surrogate.signin

# What other files add is left out of the decision: these tests hold beside any rules of yours.
asked(stage, available, policy) := {
	"version": 1,
	"stage": stage,
	"factors": {"available": available, "used": ["password"]},
	"settings": {"mfa": {"policy": policy, "factors": ["totp"], "organizationPolicy": "NoPrompt", "organizations": []}},
}

allowed(required) := {"allow": true, "require": required, "session": {}}

requires(question, wanted) if {
	wanted in signin.require with input as question
}

test_somebody_without_a_factor_needs_none if {
	signin.decision == allowed([]) with input as asked("mfa", [], "NoPrompt")
		with signin.deny as set()
		with signin.require as set()
		with signin.idle_ttl as set()
		with signin.absolute_ttl as set()
}

test_whoever_has_a_factor_is_asked_for_it if {
	every policy in ["NoPrompt", "PromptOnlyAtSignIn", "PromptAtSignInAndSignUp", "Mandatory"] {
		every stage in ["mfa", "finish"] {
			requires(asked(stage, ["totp"], policy), "mfa")
		}
	}
}

test_before_anybody_is_known_no_factor_is_asked_for if {
	not requires(asked("prove", ["totp"], "Mandatory"), "mfa")
	not requires(asked("prove", [], "Mandatory"), "enrol")
}

test_a_session_that_exists_was_begun_under_the_settings if {
	known_device := {"device": {"known": true}, "failures": 0}
	not requires(object.union(asked("session", ["totp"], "Mandatory"), known_device), "mfa")
	not requires(object.union(asked("session", [], "Mandatory"), known_device), "enrol")
}

test_mandatory_makes_people_enrol if {
	requires(asked("mfa", [], "Mandatory"), "mfa")
	requires(asked("mfa", [], "Mandatory"), "enrol")
	requires(asked("finish", [], "Mandatory"), "enrol")
}

test_settings_that_enable_no_factor_ask_for_none if {
	question := object.union(asked("mfa", [], "Mandatory"), {"settings": {"mfa": {"factors": []}}})
	not requires(question, "enrol")
}

test_whoever_has_a_factor_need_not_enrol if not requires(asked("mfa", ["totp"], "Mandatory"), "enrol")

of_members(policy, organizations) := object.union(
	asked("mfa", [], "NoPrompt"),
	{"settings": {"mfa": {"organizationPolicy": policy, "organizations": organizations}}},
)

test_an_organization_may_make_it_mandatory if {
	requires(of_members("Mandatory", ["acme"]), "enrol")
	not requires(of_members("Mandatory", []), "enrol")
	not requires(of_members("NoPrompt", ["acme"]), "enrol")
}

test_an_objection_denies if {
	signin.decision == {"allow": false, "reason": "a"} with input as asked("mfa", [], "NoPrompt")
		with signin.deny as {"b", "a"}
}

test_an_objection_is_stronger_than_any_requirement if {
	signin.decision.allow == false with input as asked("mfa", ["totp"], "Mandatory")
		with signin.deny as {"a"}
}

test_the_shortest_session_counts if {
	signin.decision.session == {"idle": 600, "absolute": 3600} with input as asked("finish", [], "NoPrompt")
		with signin.deny as set()
		with signin.idle_ttl as {900, 600}
		with signin.absolute_ttl as {3600}
}

test_no_input_is_no_decision if {
	not signin.decision with input as {} with signin.deny as set()
	not signin.decision with input as {"version": 2} with signin.deny as set()
}

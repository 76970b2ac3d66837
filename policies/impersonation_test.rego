package surrogate.impersonation_test

import data.surrogate.impersonation

# What other files add to the rules is left out: these tests hold beside any rules of yours.
asked(stage) := {"version": 1, "stage": stage, "subject": {"id": "u1"}, "scopes": ["read:orders", "write:orders"]}

test_allows_minting if {
	impersonation.decision == {"allow": true} with input as asked("mint")
		with impersonation.deny as set()
		with impersonation.step_up as set()
		with impersonation.require as set()
		with impersonation.withheld as set()
		with impersonation.max_ttl as set()
		with impersonation.read_only as false
		with impersonation.grounds as set()
}

test_allows_exchange if {
	impersonation.decision == {"allow": true} with input as asked("exchange")
		with impersonation.deny as set()
		with impersonation.step_up as set()
		with impersonation.require as set()
		with impersonation.withheld as set()
		with impersonation.max_ttl as set()
		with impersonation.read_only as false
		with impersonation.grounds as set()
}

test_tells_what_speaks_for_it if {
	impersonation.decision == {"allow": true, "grounds": ["approved", "on_call"]} with input as asked("exchange")
		with impersonation.deny as set()
		with impersonation.step_up as set()
		with impersonation.require as set()
		with impersonation.withheld as set()
		with impersonation.max_ttl as set()
		with impersonation.read_only as false
		with impersonation.grounds as {"on_call", "approved"}
}

test_tells_the_first_reason_to_refuse if {
	impersonation.decision == {"allow": false, "reason": "a"} with input as asked("mint")
		with impersonation.deny as {"b", "a"}
}

test_steps_down_and_shortens_the_life if {
	impersonation.decision == {"allow": true, "scopes": ["read:orders"], "maxTtl": 300} with input as asked("exchange")
		with impersonation.deny as set()
		with impersonation.step_up as set()
		with impersonation.require as set()
		with impersonation.withheld as {"write:orders"}
		with impersonation.max_ttl as {300, 900}
		with impersonation.read_only as false
		with impersonation.grounds as set()
}

test_tells_how_to_step_up if {
	impersonation.decision == {"allow": false, "reason": "step_up_required", "acr_values": ["b"], "max_age": 60} with input as asked("mint")
		with impersonation.deny as set()
		with impersonation.step_up as {{"acr_values": ["b"], "max_age": 60}}
}

test_an_objection_answers_before_a_step_up if {
	impersonation.decision == {"allow": false, "reason": "a"} with input as asked("mint")
		with impersonation.deny as {"a"}
		with impersonation.step_up as {{"max_age": 60}}
}

test_asks_for_an_approval_and_lets_only_read if {
	impersonation.decision == {"allow": true, "require": ["approval"], "readOnly": true} with input as asked("exchange")
		with impersonation.deny as set()
		with impersonation.step_up as set()
		with impersonation.require as {"approval"}
		with impersonation.withheld as set()
		with impersonation.max_ttl as set()
		with impersonation.read_only as true
		with impersonation.grounds as set()
}

administrator := object.union(asked("mint"), {"subject": {"id": "u1", "managementScopes": ["users"]}})

test_nobody_acts_as_an_administrator if {
	"subject_is_administrator" in impersonation.deny with input as administrator
		with impersonation.administrators_permitted as false
}

test_unless_a_rule_permits_it if {
	not "subject_is_administrator" in impersonation.deny with input as administrator
		with impersonation.administrators_permitted as true
}

test_gives_no_decision_on_an_input_it_does_not_know if {
	not impersonation.decision with input as {"version": 2, "stage": "mint"}
		with impersonation.deny as set()
		with impersonation.step_up as set()
}
